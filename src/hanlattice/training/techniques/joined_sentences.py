"""Sentence concatenation: several sentences of a corpus are read as one text."""

import unicodedata
from collections.abc import Sequence

import numpy as np

from hanlattice.training.window import AnnotatedWindow


class JoinedSentences:
    """Appends further sentences to a sentence, as long as they fit.

    Neighbouring sentences give context, as in Luoma and Pyysalo 2020, https://aclanthology.org/2020.coling-main.78.
    A full stop is inserted after a sentence that does not end with punctuation, a symbol or white space.

    Args:
        windows: the sentences of a corpus, in its order.
        longest: the maximum number of characters of a joined text.
        overlap: the number of characters that neighbouring windows of one long sentence share. Such windows are not
            joined, as their shared text would be repeated.
        random: append random sentences instead of the next ones.
    """

    def __init__(self, windows: Sequence[AnnotatedWindow], longest: int, overlap: int, *, random: bool = False):
        self.windows, self.longest, self.overlap, self.random = windows, longest, overlap, random

    def __call__(self, first: int, draw: np.random.Generator) -> AnnotatedWindow:
        """The window with the number ``first`` and what follows it; alone if nothing fits."""
        joined = before = self.windows[first]
        number = first
        while True:
            number += 1
            at = int(draw.integers(len(self.windows))) if self.random else number
            if at >= len(self.windows) or self._share_text(before, self.windows[at]):
                return joined
            before = self.windows[at]
            longer = concatenated(joined, before)
            if len(longer.text) > self.longest or longer == joined:
                return joined
            joined = longer

    def _share_text(self, one: AnnotatedWindow, following: AnnotatedWindow) -> bool:
        shared = one.text[-self.overlap :]
        return self.overlap > 0 and len(shared) == self.overlap and following.text.startswith(shared)


def concatenated(first: AnnotatedWindow, second: AnnotatedWindow) -> AnnotatedWindow:
    """Two texts as one, with a full stop between them if the first has no end mark."""
    is_ended = not first.text or unicodedata.category(first.text[-1])[0] in "PSZC"
    text = first.text if is_ended else first.text + "。"
    return AnnotatedWindow(text + second.text, (*first.spans, *(span.moved(len(text)) for span in second.spans)))
