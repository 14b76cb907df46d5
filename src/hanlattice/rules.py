"""The rules of a user: texts that are always an entity, and texts that never are.

A rule is compared with a text twice. In normal form it also applies to full-width or traditional characters. As it
was given it applies whatever is beside it: the normal form of a blank depends on its neighbours. A rule with an
emoji is compared only as given, because all emoji have the same normal form.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from hanlattice.lexicon import Lexicon
from hanlattice.spans import ScoredSpan, Span
from hanlattice.text.edges import cuts_a_word
from hanlattice.text.normalise import Normalised
from hanlattice.text.tidy import SYMBOL

Block = Mapping[str, str | Collection[str] | None]
"""Maps a text to the labels that it never has as an entity: one label, several, or None for all labels."""


class Forced:
    """Texts that are always an entity.

    Args:
        labels: the label of each text.
        plain: gives the normal forms of texts.

    Attributes:
        labels: as given.
    """

    def __init__(self, labels: Mapping[str, str], plain: Callable[[Sequence[str]], Sequence[str]]):
        forms = zip(plain(list(labels)), labels.values(), strict=True)
        self.labels = labels
        self._given = Lexicon((text, label, None) for text, label in labels.items())
        self._plain = Lexicon((form, label, None) for form, label in forms if form and SYMBOL not in form)

    def spans(self, text: str, plain: Normalised) -> list[ScoredSpan]:
        """The forced spans of a text in its normal form: from left to right, the longest first.

        Args:
            text: the text as given.
            plain: its normal form.
        """
        matches = []  # those of the texts as given come first: they win if two texts have the same normal form
        for match in _whole(self._given, text):
            start, end = _within(plain, match.start, match.end)
            if start < end:
                matches.append((start, end, match.label))
        matches += [(match.start, match.end, match.label) for match in _whole(self._plain, plain.text)]
        chosen: list[ScoredSpan] = []
        for start, end, label in sorted(matches, key=lambda match: (match[0], -match[1])):
            if not chosen or chosen[-1].end <= start:
                chosen.append(ScoredSpan(start, end, label, 1.0))
        return chosen

    def ranges(self, text: str, plain: Normalised) -> list[tuple[int, int]]:
        """The ranges of the forced spans in the text as given."""
        return [plain.original(span.start, span.end) for span in self.spans(text, plain)]


class Blocked:
    """Texts that are never an entity, or never one with certain labels.

    Args:
        labels: the labels of each text; see :data:`Block`.
        plain: gives the normal forms of texts.
    """

    def __init__(self, labels: Block, plain: Callable[[Sequence[str]], Sequence[str]]):
        forms = zip(plain(list(labels)), labels.values(), strict=True)
        self._given, self._plain = labels, {form: found for form, found in forms if SYMBOL not in form}

    def blocks(self, given: str, plain: str, label: str) -> bool:
        """Whether a text is never an entity with a label; it is ``given``, and ``plain`` in normal form."""
        return _has(self._given, given, label) or _has(self._plain, plain, label)


def _has(block: Block, text: str, label: str) -> bool:
    if text not in block:
        return False
    labels = block[text]
    return labels is None or label == labels or (not isinstance(labels, str) and label in labels)


def _whole(words: Lexicon, text: str) -> Iterable[Span]:
    """The matches that are not a part of a longer run of Latin letters and digits: not AI in OpenAI."""
    matches = words.match(text)
    rows = zip(matches.start.tolist(), matches.end.tolist(), matches.word.tolist(), strict=True)
    return [
        Span(start, end, words.label(word) or "")
        for start, end, word in rows
        if not (cuts_a_word(text, start) or cuts_a_word(text, end))
    ]


def _within(plain: Normalised, start: int, end: int) -> tuple[int, int]:
    """The range of the normal form that comes from a range of the text as given, and from nothing else."""
    if plain.is_aligned:
        return start, end
    return int(np.searchsorted(plain.starts, start)), int(np.searchsorted(plain.ends, end, side="right"))
