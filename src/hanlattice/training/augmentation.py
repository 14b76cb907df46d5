"""Data augmentation: in each epoch some examples are joined, or get other names, noise or user words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hanlattice.config.settings import DataConfig, TextConfig
from hanlattice.inputs.reader import Reader
from hanlattice.lexicon import Lexicon
from hanlattice.text.normalise import Normaliser
from hanlattice.training.examples import Example, examples
from hanlattice.training.invented_names import InventedNames
from hanlattice.training.noise import noisy, normalised, without_punctuation
from hanlattice.training.techniques.joined_sentences import JoinedSentences
from hanlattice.training.techniques.replaced_names import ReplacedNames
from hanlattice.training.user_words import UserWords
from hanlattice.training.window import AnnotatedWindow

INVENTED = 0.6  # of the examples with user words, the share with invented names


@dataclass(frozen=True)
class Variation:
    """Draws the form of every example for an epoch: see :class:`hanlattice.config.settings.DataConfig`.

    ``has_user_words``: the tagger distinguishes user words from others. ``normaliser`` is the model's own, as noise
    is normalised like the noise of a text to predict. ``text`` has the sizes of its windows, and ``gazetteer`` the
    words of the lexicon for each label, which may replace names.
    """

    settings: DataConfig
    reader: Reader
    lexicon: Lexicon
    normaliser: Normaliser
    has_user_words: bool
    text: TextConfig = field(default_factory=TextConfig)
    gazetteer: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __call__(
        self, given: Sequence[Example], labels: Sequence[str], share: float, draw: np.random.Generator
    ) -> list[Example]:
        """The examples of one epoch of a task with these entity ``labels``; a random ``share`` of them."""
        places = list(range(len(given)))
        if share < 1:
            places = draw.permutation(len(given))[: share_of(len(given), share)].tolist()
        chosen = [given[i] for i in places]
        if self.settings.joined:
            chosen = self._joined(given, places, draw)
        if self.settings.replaced_names:
            chosen = self._renamed(given, chosen, draw)
        if self.settings.unpunctuated or self.settings.noise:
            chosen = self._changed(chosen, draw)
        if self.settings.user_words and self.has_user_words:
            chosen = self._with_user_words(chosen, labels, draw)
        return chosen

    def _joined(self, given: Sequence[Example], places: Sequence[int], draw: np.random.Generator) -> list[Example]:
        """The examples at some places of the corpus, some of them with further ones after them."""
        join = joiner([example.window for example in given], self.settings, self.text)
        picked = np.flatnonzero(draw.random(len(places)) < self.settings.joined).tolist()
        return self._replaced([given[i] for i in places], {k: join(places[k], draw) for k in picked})

    def _renamed(
        self, given: Sequence[Example], chosen: Sequence[Example], draw: np.random.Generator
    ) -> list[Example]:
        """The chosen examples, some with other names of the corpus that is ``given``, or of the gazetteer."""
        rename = ReplacedNames((example.window for example in given), self.gazetteer, self.settings.names_from)
        picked = np.flatnonzero(draw.random(len(chosen)) < self.settings.replaced_names).tolist()
        return self._replaced(chosen, {i: rename(chosen[i].window, draw) for i in picked if chosen[i].spans})

    def _changed(self, chosen: list[Example], draw: np.random.Generator) -> list[Example]:
        bare, noise = self.settings.unpunctuated, self.settings.noise
        others = [e.window for e in chosen] if noise else []
        changed: dict[int, AnnotatedWindow] = {}
        for i, chance in enumerate(draw.random(len(chosen)).tolist()):
            if chance < bare:
                changed[i] = without_punctuation(chosen[i].window)
            elif chance < bare + noise:
                changed[i] = normalised(noisy(others[i], others, draw), self.normaliser)
        return self._replaced(chosen, changed)

    def _with_user_words(
        self, chosen: list[Example], labels: Sequence[str], draw: np.random.Generator
    ) -> list[Example]:
        """The examples, some with user words, and some of these with invented names."""
        invented = InventedNames(e.window for e in chosen)
        chance = draw.random(len(chosen))
        picked = np.flatnonzero(chance < self.settings.user_words).tolist()
        renamed = {
            i: invented(chosen[i].window, draw)
            for i in picked
            if chosen[i].spans and chance[i] < self.settings.user_words * INVENTED
        }
        chosen = self._replaced(chosen, renamed)
        user_words = UserWords(self.reader.vocabulary, labels, self.reader.min_word_length)
        for i in picked:
            given = chosen[i]
            chosen[i] = replace(given, encoded=user_words(given.encoded, given.spans, draw, all_names=i in renamed))
        return chosen

    def _replaced(self, chosen: Sequence[Example], changed: Mapping[int, AnnotatedWindow]) -> list[Example]:
        """The examples with other windows at some places; an empty window changes nothing."""
        changed = {i: window for i, window in changed.items() if window.text}
        read = examples(changed.values(), self.reader, self.lexicon)
        found = list(chosen)
        for i, example in zip(changed, read, strict=True):
            found[i] = example
        return found


def joiner(windows: Sequence[AnnotatedWindow], settings: DataConfig, text: TextConfig) -> JoinedSentences:
    """Joins sentences of a corpus, as the settings say."""
    longest = settings.joined_length or text.window
    return JoinedSentences(windows, longest, text.overlap, random=settings.joined_with == "random")


def one_draw(
    windows: Sequence[AnnotatedWindow],
    settings: DataConfig,
    text: TextConfig,
    gazetteer: Mapping[str, Sequence[str]],
    draw: np.random.Generator,
) -> list[AnnotatedWindow]:
    """All windows of a corpus, joined and with other names, if the settings ask for either.

    Training reads such texts, so their bigrams and words need rows in the tables.
    """
    found: list[AnnotatedWindow] = []
    if settings.joined:
        join = joiner(windows, settings, text)
        found += [join(i, draw) for i in range(len(windows))]
    if settings.replaced_names:
        rename = ReplacedNames(windows, gazetteer, settings.names_from)
        found += [rename(window, draw) for window in windows if window.spans]
    return found


def share_of(n: int, share: float) -> int:
    """The size of a ``share`` of ``n`` examples, at least 1."""
    return max(1, round(n * share)) if n else 0
