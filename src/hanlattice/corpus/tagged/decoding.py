"""Turn sentences of tokens and tags into documents, whatever file the sentences come from.

A sentence becomes a document in four steps: normalise the tags, guess the tag scheme from all tags so far
(unless the user names it), read the tags into spans over tokens, and map the spans to character offsets::

    tokens      李      明      在     北京
    tags        B-PER   E-PER   O      S-LOC
    spans       [0, 2) PER             [3, 4) LOC       over tokens
    entities    [0, 2) PER             [3, 5) LOC       over characters

The Weibo corpus writes each character with its position in its word (``科0 技1 越10``; ``110`` is the character 1
at position 10). If every token of the first sentences has this form, the first character is the token, and its
position goes to ``meta["positions"]``. Several U+FFFD before a position are a broken emoji, and stay one token.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from hanlattice.corpus.source import Source
from hanlattice.corpus.tagged.tags import canonical, have_letter_last, scheme_named
from hanlattice.corpus.tokens import Tokens, aligned, joined
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.spans import Span, from_tags, guess_scheme, ill_formed

_HEAD = 2000
"""Number of sentences read ahead: they show the scheme, the form of tags (``B-PER``, ``PER-B``), and positions."""

_POSITIONED = re.compile("(\ufffd+|.)([0-9]{1,9})", re.DOTALL)


@dataclass(slots=True)
class Sentence:
    """Tokens and their tags.

    Args:
        line: line of the first token.
        tokens: the tokens.
        tags: one tag per token.
        columns: further columns, one list per token.
        in_columns: whether each token has its own line.
        id: id of the document.
        text: the text, if the file gives it; otherwise the tokens are joined.
        meta: further fields of the document's ``meta``.
    """

    line: int
    tokens: list[str]
    tags: list[str]
    columns: list[list[str]] | None = None
    in_columns: bool = True
    id: str | None = None
    text: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def line_of(self, token: int) -> int:
        return self.line + token if self.in_columns else self.line


def documents(
    sentences: Iterable[Sentence], source: Source, *, positions: bool | None = False
) -> Iterator[Document]:
    """One document per sentence, one at a time.

    Args:
        sentences: tokens and tags.
        source: file, options and receiver of defects.
        positions: whether tokens end in Weibo's positions; ``None`` to find out.

    Raises:
        DataError: a tag belongs to no scheme, and there is no ``on_defect``; or tags are read strictly, and later
            tags show that the scheme was guessed wrongly.
        HanlatticeError: the scheme that the user names does not exist.
    """
    sentences = iter(sentences)
    head = list(islice(sentences, _HEAD))
    if positions is None:
        positions = _has_positions(head)
    tags = _TagReader(source, letter_last=have_letter_last(tag for sentence in head for tag in sentence.tags))
    for sentence in head:
        sentence.tags = tags.canonical(sentence.tags)
        tags.learn(sentence)
    for sentence in chain(head, _canonical(sentences, tags)):
        yield _document(sentence, tags.spans(sentence), positions, source)


def _canonical(sentences: Iterable[Sentence], tags: "_TagReader") -> Iterator[Sentence]:
    for sentence in sentences:
        sentence.tags = tags.canonical(sentence.tags)
        yield sentence


def _has_positions(sentences: Sequence[Sentence]) -> bool:
    """Whether all tokens end in a number, and (nearly) all numbers count up from 0 within words."""
    consecutive = n_later = 0
    for sentence in sentences:
        before = -1
        for token in sentence.tokens:
            match = _POSITIONED.fullmatch(token)
            if match is None:
                return False
            position = int(match[2])
            consecutive += position in (0, before + 1)
            n_later += position > 0  # characters after the first of a word
            before = position
    total = sum(len(sentence.tokens) for sentence in sentences)
    return n_later > 0 and consecutive >= 0.99 * total


class _TagReader:
    """Reads the tags of one file into spans over tokens. Without a named scheme, all tags so far decide it."""

    def __init__(self, source: Source, *, letter_last: bool):
        self._source, self._letter_last = source, letter_last
        self._named = None if source.scheme is None else scheme_named(source.scheme)
        self._scheme = self._named or "BIO"
        self._known = {"O"}
        self._canonical: dict[str, str] = {}
        self._has_read = False

    def canonical(self, tags: list[str]) -> list[str]:
        """The tags, normalised by `hanlattice.corpus.tagged.tags.canonical`."""
        for tag in set(tags) - self._canonical.keys():
            self._canonical[tag] = canonical(tag, letter_last=self._letter_last, scheme=self._named)
        return [self._canonical[tag] for tag in tags]

    def learn(self, sentence: Sentence) -> None:
        """Update the scheme by the tags of a sentence; tags that belong to no scheme become ``O`` in it."""
        new = set(sentence.tags) - self._known
        if not new:
            return
        try:
            scheme = self._scheme_with(new)
        except HanlatticeError:
            new = self._without_unknown(sentence, new)
            scheme = self._scheme_with(new)
        if self._source.strict and self._has_read and scheme != self._scheme:
            message = f"the tags before this line are {self._scheme}, but the tags here are {scheme}"
            raise DataError(f"{message}; name the scheme to read strictly", self._source.file, sentence.line)
        self._known |= new
        self._scheme = scheme

    def spans(self, sentence: Sentence) -> list[Span]:
        """The spans of a sentence over its tokens."""
        self.learn(sentence)
        self._has_read = True
        if self._source.on_defect is not None:
            self._report_ill_formed(sentence)
        return from_tags(sentence.tags, self._scheme, self._source.strict)

    def _scheme_with(self, new: set[str]) -> str:
        """The scheme of the tags so far together with new ones.

        Raises:
            HanlatticeError: they belong to no scheme, or not to the scheme that the user names.
        """
        if self._named is None:
            return guess_scheme(self._known | new)
        from_tags(sorted(new), self._scheme)
        return self._scheme

    def _without_unknown(self, sentence: Sentence, new: set[str]) -> set[str]:
        """Report each tag that fits no scheme together with the tags before it, and return the other tags."""
        kept: set[str] = set()
        for i, tag in enumerate(sentence.tags):
            if tag not in new or tag in kept:
                continue
            try:
                self._scheme_with(kept | {tag})
                kept.add(tag)
            except HanlatticeError as error:
                fix = "correct the tag, or name the scheme of the file"
                self._source.defect("unknown tag", str(error), fix, line=sentence.line_of(i))
                sentence.tags[i] = "O"
        return kept

    def _report_ill_formed(self, sentence: Sentence) -> None:
        for i, before, tag in ill_formed(sentence.tags, self._scheme):
            if not tag:
                message = f"the sentence ends after {before}, which leaves the entity open"
            elif not before:
                message = f"the sentence starts with {tag}"
            else:
                message = f"{tag} after {before}"
            line = sentence.line_of(min(i, len(sentence.tags) - 1))
            fix = "correct the tags; they are read leniently, or the entity is left out with --strict"
            self._source.defect("ill-formed tags", f"{message} ({self._scheme})", fix, line=line, lossy=False)


def _document(sentence: Sentence, spans: list[Span], positions: bool, source: Source) -> Document:
    meta: dict[str, Any] = {"@line": sentence.line, **sentence.meta}
    if positions:
        tokens, meta["positions"] = _split_positions(sentence, source)
        sentence = replace(sentence, tokens=tokens)
    if sentence.columns is not None:
        meta["columns"] = sentence.columns
    text, bounds = _text(sentence, source)
    if bounds is not None:
        spans = [Span(bounds[s.start][0], bounds[s.end - 1][1], s.label) for s in spans]
    entities = tuple(Entity.of(text, span) for span in spans)
    return Document(text, entities, id=sentence.id, tokens=bounds, meta=meta)


def _text(sentence: Sentence, source: Source) -> tuple[str, Tokens | None]:
    """The text, and the offsets of its tokens unless every character is a token."""
    tokens, text = sentence.tokens, "".join(sentence.tokens)
    if sentence.text is not None and sentence.text != text:
        bounds = aligned(sentence.text, tokens)
        if bounds is not None:
            return sentence.text, bounds
        message, fix = f"the text {sentence.text[:40]!r} differs from its tokens", "correct it; the tokens are read"
        source.defect("text unlike its tokens", message, fix, line=sentence.line, lossy=False)
    return (text, None) if len(text) == len(tokens) else joined(tokens)


def _split_positions(sentence: Sentence, source: Source) -> tuple[list[str], list[int | None]]:
    tokens: list[str] = []
    positions: list[int | None] = []
    for i, token in enumerate(sentence.tokens):
        match = _POSITIONED.fullmatch(token)
        if match is None:
            message = f"token {token!r} does not end in its position in the word, as the others do"
            fix = "write the character and its position, such as 科0"
            source.defect("missing position", message, fix, line=sentence.line_of(i))
        tokens.append(match[1] if match else token)
        positions.append(int(match[2]) if match else 0)
    return tokens, positions
