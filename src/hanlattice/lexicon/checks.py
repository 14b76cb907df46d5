"""Checks of the words that are added to a lexicon: their characters, labels, lengths and emoji."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hanlattice.errors import DataError
from hanlattice.lexicon.wordlist import line_of
from hanlattice.lexicon.words import LONGEST
from hanlattice.text.code_points import BOUNDARY
from hanlattice.text.tidy import SYMBOL

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from hanlattice.lexicon.words import Traits


def refuse_long(texts: list[str]) -> None:
    """Check the lengths of words.

    Raises:
        DataError: a word has more than `LONGEST` characters.
    """
    longest = max(texts, key=len, default="")
    if len(longest) > LONGEST:
        raise DataError(f"a word of the lexicon has {len(longest):,} characters, more than {LONGEST:,}; shorten it")


def refuse_invalid(texts: list[str]) -> None:
    """Check the characters of words.

    Raises:
        DataError: a word is empty, or has a NUL character, which separates texts.
    """
    if "" in texts or BOUNDARY in "".join(texts):
        problem = "no characters" if "" in texts else "a NUL character"
        raise DataError(f"a word of the lexicon has {problem}; remove it from the list")


def refuse_unknown_labels(
    texts: Sequence[str], traits: Sequence[Traits], known: Collection[str], source: str | Path | None
) -> None:
    """Check the labels of words.

    Raises:
        DataError: a label is not in ``known``.
    """
    for text, (label, _) in zip(texts, traits, strict=True):
        if label and label not in known:
            raise DataError(
                f"the word {text!r} has the label {label!r}, which the model does not know; it knows"
                f" {', '.join(sorted(known))}",
                source,
                None if source is None else line_of(source, text, label),
            )


def refuse_unreadable(
    texts: Sequence[str],
    rewritten: Sequence[str],
    traits: Sequence[Traits],
    longest: int,
    source: str | Path | None,
) -> None:
    """Check the normalised words.

    Raises:
        DataError: nothing is left of a word, or it is longer than the window of the model.
    """
    if all(rewritten) and max(map(len, rewritten), default=0) <= longest:
        return
    for text, word, (label, _) in zip(texts, rewritten, traits, strict=True):
        problem = ""
        if not word:
            problem = f"the word {text!r} has only white space or invisible characters; remove it"
        elif len(word) > longest:
            problem = (
                f"the word {text[:20]!r}… has {len(word):,} characters, more than the {longest} that the model"
                " reads at once (text.window)"
            )
        if problem:
            raise DataError(problem, source, None if source is None else line_of(source, text, label))


def warn_of_two_labels(texts: Sequence[str], traits: Sequence[Traits], source: str | Path | None) -> None:
    """Warn of words that have several labels, of which the last one counts. No word is in the message, as below."""
    labels = [(text, label) for text, (label, _) in zip(texts, traits, strict=True) if label]
    if len(dict(labels)) < len(set(labels)):
        import logging  # slow to import, and rarely needed

        where = "" if source is None else f"{source}: "
        logging.getLogger(__name__).warning(
            "%ssome words have several labels, of which the last one counts; remove the others", where
        )


def warn_of_short(rewritten: Sequence[str], shortest: int, source: str | Path | None) -> None:
    """Warn of words with fewer than ``shortest`` characters. No word is in the message, as below."""
    if any(0 < len(word) < shortest for word in rewritten):
        import logging  # slow to import, and rarely needed

        where = "" if source is None else f"{source}: "
        logging.getLogger(__name__).warning(
            "%swords with fewer than %d characters have no effect, because the model never matches them; for a rule"
            " with them use force",
            *(where, shortest),
        )


def warn_of_emoji(texts: Sequence[str], rewritten: Sequence[str], source: str | Path | None) -> None:
    """Warn of words that match other texts than their own, because a model reads all emoji as one character.

    No word is in the message: a service logs it, and its log has no text of a request.
    """
    if SYMBOL not in "".join(rewritten):
        return
    if any(SYMBOL in word and SYMBOL not in text for text, word in zip(texts, rewritten, strict=True)):
        import logging  # slow to import, and rarely needed

        where = "" if source is None else f"{source}: "
        logging.getLogger(__name__).warning(
            "%swords with emoji or private-use characters match with any of them, because the model reads them all"
            " as one character; for a rule with certain ones use force",
            where,
        )
