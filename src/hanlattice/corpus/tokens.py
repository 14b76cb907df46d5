"""Tokens and their text: join tokens into a text, and find the offsets of tokens in a text."""

from collections.abc import Iterable, Sequence

from hanlattice.corpus.source import NotReadable
from hanlattice.document import Document

Tokens = tuple[tuple[int, int], ...]
"""``(start, end)`` of each token in the text, in characters."""


def joined(tokens: Iterable[str]) -> tuple[str, Tokens]:
    """Join tokens into a text, and return it with the offsets of each token.

    Nothing stands between two tokens, except one space where two Latin words (or numbers) would run together.
    """
    fragments: list[str] = []
    bounds = []
    end = 0
    last = ""
    for token in tokens:
        if last and (len(token) > 1 or len(last) > 1) and _is_latin(last[-1]) and _is_latin(token[0]):
            fragments.append(" ")
            end += 1
        fragments.append(token)
        bounds.append((end, end + len(token)))
        end += len(token)
        last = token
    return "".join(fragments), tuple(bounds)


def aligned(text: str, tokens: Sequence[str]) -> Tokens | None:
    """Offsets of the tokens in a text that has only whitespace between them; ``None`` for any other text."""
    bounds: list[tuple[int, int]] = []
    end = 0
    for token in tokens:
        start = text.find(token, end)
        if not token or start < 0 or text[end:start].strip():
            return None
        end = start + len(token)
        bounds.append((start, end))
    return None if text[end:].strip() else tuple(bounds)


def fits_tokens(document: Document) -> bool:
    """Whether joining the tokens gives the text, and every entity starts and ends at a token."""
    if document.tokens is None:
        return True
    starts = {start for start, _ in document.tokens}
    ends = {end for _, end in document.tokens}
    aligned = all(entity.start in starts and entity.end in ends for entity in document.entities)
    tokens = [document.text[start:end] for start, end in document.tokens]
    return aligned and all(tokens) and joined(tokens) == (document.text, tuple(document.tokens))


def checked(tokens: object, name: str) -> list[str]:
    """The tokens, if they are a list of non-empty strings; ``name`` is the field they come from.

    Raises:
        NotReadable: they are not.
    """
    if not isinstance(tokens, list) or not all(isinstance(token, str) and token for token in tokens):
        raise NotReadable(f"{name!r} is not a list of non-empty tokens", 'write ["李", "明"]')
    return tokens


def bounds_or_none(tokens: Sequence[str], bounds: Tokens) -> Tokens | None:
    """The offsets, or ``None`` if every character is a token."""
    return None if all(len(token) == 1 for token in tokens) and bounds[-1:] == _last(tokens) else bounds


def _last(tokens: Sequence[str]) -> Tokens:
    return ((len(tokens) - 1, len(tokens)),) if tokens else ()


def _is_latin(character: str) -> bool:
    return character < "\u0250" and character.isalnum()
