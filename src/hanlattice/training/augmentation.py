"""Data augmentation: in each epoch some examples get noise, lose punctuation, or have user words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hanlattice.config.settings import DataConfig
from hanlattice.inputs.reader import Reader
from hanlattice.lexicon import Lexicon
from hanlattice.training.examples import Example, examples
from hanlattice.training.noise import noisy, without_punctuation
from hanlattice.training.user_words import UserWords
from hanlattice.training.window import AnnotatedWindow


@dataclass(frozen=True)
class Variation:
    """Draws the form of every example for an epoch: see :class:`hanlattice.config.settings.DataConfig`.

    ``has_user_words``: the tagger distinguishes user words from others.
    """

    settings: DataConfig
    reader: Reader
    lexicon: Lexicon
    has_user_words: bool

    def __call__(
        self, given: Sequence[Example], labels: Sequence[str], share: float, draw: np.random.Generator
    ) -> list[Example]:
        """The examples of one epoch of a task with these entity ``labels``; a random ``share`` of them."""
        chosen = list(given)
        if share < 1:
            chosen = [chosen[i] for i in draw.permutation(len(chosen))[: share_of(len(chosen), share)].tolist()]
        if self.settings.unpunctuated or self.settings.noise:
            chosen = self._changed(chosen, draw)
        if self.settings.user_words and self.has_user_words:
            user_words = UserWords(self.reader.vocabulary, labels, self.reader.min_word_length)
            picked = draw.random(len(chosen)) < self.settings.user_words
            chosen = [
                replace(e, encoded=user_words(e.encoded, e.spans, draw)) if is_picked else e
                for e, is_picked in zip(chosen, picked.tolist(), strict=True)
            ]
        return chosen

    def _changed(self, chosen: list[Example], draw: np.random.Generator) -> list[Example]:
        bare, noise = self.settings.unpunctuated, self.settings.noise
        others = [e.window for e in chosen] if noise else []
        changed: dict[int, AnnotatedWindow] = {}
        for i, chance in enumerate(draw.random(len(chosen)).tolist()):
            if chance < bare:
                changed[i] = without_punctuation(chosen[i].window)
            elif chance < bare + noise:
                changed[i] = noisy(others[i], others, draw)
        changed = {i: window for i, window in changed.items() if window.text}
        read = examples(changed.values(), self.reader, self.lexicon)
        for i, example in zip(changed, read, strict=True):
            chosen[i] = example
        return chosen


def share_of(n: int, share: float) -> int:
    """The size of a ``share`` of ``n`` examples, at least 1."""
    return max(1, round(n * share)) if n else 0
