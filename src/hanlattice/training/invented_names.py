"""Replaces gold names by invented ones.

A model knows most names of its training corpora from their characters. To learn how far it can rely on a word that
a user adds, it has to see words that only the user's dictionary shows to be names.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from hanlattice.training.noise import renamed
from hanlattice.training.window import AnnotatedWindow

SPLICED, WITH_ENDING = 0.4, 0.3  # shares of invented names; the others are made of pieces of text alone
LONGEST = 12  # characters of an invented name


class InventedNames:
    """Invents names from the characters of a corpus.

    An invented name is the first half of one name and the second half of another with the same label, or a piece
    of text with the end of a name, or one or two pieces of text.

    Args:
        windows: the corpus.
    """

    def __init__(self, windows: Iterable[AnnotatedWindow]) -> None:
        self.texts: list[str] = []
        self.names: dict[str, list[str]] = defaultdict(list)
        for window in windows:
            if len(window.text) < 2 or not any(map(str.isalnum, window.text)):
                continue
            self.texts.append(window.text)
            for span in window.spans:
                if 2 <= span.end - span.start <= LONGEST and not span.gaps:
                    self.names[span.label].append(window.text[span.start : span.end])

    def __call__(self, window: AnnotatedWindow, draw: np.random.Generator) -> AnnotatedWindow:
        """The window with invented names in place of its names, except those that overlap another one."""
        return renamed(window, lambda span: self._name(span.label, draw) if span.label in self.names else None)

    def _name(self, label: str, draw: np.random.Generator) -> str:
        how = draw.random()
        known = self.names[label]
        second = known[int(draw.integers(len(known)))]
        if how < SPLICED:
            first = known[int(draw.integers(len(known)))]
            return first[: (len(first) + 1) // 2] + second[len(second) // 2 :]
        if how < SPLICED + WITH_ENDING:
            return self._piece(draw) + second[-max(1, len(second) // 3) :]
        piece = self._piece(draw)
        return piece + self._piece(draw) if len(piece) == 1 or draw.random() < 0.6 else piece

    def _piece(self, draw: np.random.Generator) -> str:
        """Two characters of a random text, or one where it has a character that cannot be part of a name."""
        while True:
            text = self.texts[int(draw.integers(len(self.texts)))]
            at = int(draw.integers(len(text) - 1))
            if piece := "".join(c for c in text[at : at + 2] if c.isalnum()):
                return piece
