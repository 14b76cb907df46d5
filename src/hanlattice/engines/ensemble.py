"""An ensemble of FLAT and a linear tagger: the scores of both are added before the best tags are searched.

The two models make different errors: FLAT reads the sentence as a whole, and a linear tagger remembers n-grams and
words. The probability of tags is proportional to a product of powers of the probabilities of both models, a
logarithmic opinion pool (Smith, Cohn and Osborne 2005, "Logarithmic opinion pools for conditional random fields",
https://aclanthology.org/P05-1003/). The file ``ensemble.toml`` in the folder of FLAT names the linear tagger.

A user adds few words that are not names. So a word without a label that the user added increases the scores of the
tags that begin and end an entity where the word does. A list of very many words is a general dictionary; its words
have no such effect.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.linear.tables import GROUPS, columns_of_tags
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.engines.predicting import PredictingEngine
from hanlattice.engines.second_model import SecondModel, read_settings
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import ENSEMBLE, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jaxtyping import Float, Int

    from hanlattice.pipeline import NER, Engine, WindowReader
    from hanlattice.spans import FoundSpans

LARGEST = 1000.0  # weight or temperature
LARGEST_SCORE = 500.0  # of a transition, whose exponential has to be finite


@dataclass(frozen=True)
class EnsembleSettings:
    """The contents of a file ``ensemble.toml``.

    Attributes:
        second: the linear tagger: the name of a packaged model, or a folder relative to that of FLAT.
        weight: the scores of the linear tagger are multiplied by it.
        temperature: the sums of the scores are divided by it. It changes confidences only.
        user_word: by how much a word without a label that the user added increases the score of an entity in its
            place. See :data:`hanlattice.inputs.reader.MOST_USER_WORDS`.
        convention_weight: instead of ``weight`` in other conventions than the default one; None for the same.
    """

    second: str
    weight: float
    temperature: float
    user_word: float = 0.0
    convention_weight: float | None = None

    @classmethod
    def of(cls, folder: ModelFolder) -> EnsembleSettings:
        """The settings in the folder of a model.

        Raises:
            EngineError: the folder has no such file.
            ModelError: the file is broken.
        """
        found = read_settings(folder, ENSEMBLE, [field.name for field in fields(cls)])
        second, weight, temperature = (found.get(name) for name in ("second", "weight", "temperature"))
        user_word = found.get("user_word", 0.0)
        if not (isinstance(second, str) and _is_positive(weight) and _is_positive(temperature)):
            raise ModelError(
                f"{folder.path / ENSEMBLE}: needs second, the name of a model, and weight and temperature, numbers"
                f" above 0.0 and at most {LARGEST}"
            )
        if not (user_word == 0.0 or _is_positive(user_word)):
            raise ModelError(f"{folder.path / ENSEMBLE}: user_word is a number from 0.0 to {LARGEST}")
        convention_weight = found.get("convention_weight", weight)
        if not _is_positive(convention_weight):
            raise ModelError(
                f"{folder.path / ENSEMBLE}: convention_weight is a number above 0.0 and at most {LARGEST}"
            )
        return cls(second, weight, temperature, user_word, convention_weight)


def _is_positive(number: object) -> TypeGuard[float]:
    return isinstance(number, float) and 0 < number <= LARGEST


class EnsembleSentences(Sentences):
    """Sentences as FLAT reads them (``first``), and in ``second`` as the linear tagger reads them."""

    __slots__ = ("second",)

    def __init__(self, first: Sentences, second: Sentences):
        self._arrays, self._filled, self.texts = first._arrays, first._filled, first.texts
        self.second = second

    def __reduce__(self) -> tuple[Any, ...]:
        return EnsembleSentences, (Sentences(*self.arrays, self.texts), self.second)

    def _part(self, first: int, last: int) -> EnsembleSentences:
        return EnsembleSentences(Sentences._part(self, first, last), self.second[first:last])


class EnsembleReader:
    """Converts texts to the ids of both models.

    Args:
        first: converts texts for FLAT.
        second: the linear tagger.
    """

    def __init__(self, first: WindowReader, second: SecondModel):
        self._first, self._second = first, second

    def read(
        self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None
    ) -> EnsembleSentences:
        """Convert texts; the arguments are those of :meth:`hanlattice.inputs.reader.Reader.read`."""
        return EnsembleSentences(
            self._first.read(texts, lexicon, user_labels), self._second.read(texts, lexicon, user_labels)
        )


class _Pool:
    """The sums of the scores of both models in one convention.

    Args:
        rules, scores: the tags of FLAT, and the scores of their transitions.
        second: the linear tagger of the convention; it is softened so that the scores which it adds are multiplied
            by ``weight / temperature``.
        weight, temperature: see :class:`EnsembleSettings`.

    Raises:
        EngineError: FLAT has other tags than a linear tagger.
        ModelError: scores of transitions are too large.
    """

    def __init__(self, rules: TagRules, scores: TagScores, second: LinearTagger, weight: float, temperature: float):
        if rules.scheme != "BMES" or rules.names[0] != "O":
            raise EngineError(
                "the first model of an ensemble needs the tag scheme BMES without additional tags; train it with"
                " --decoder.scheme BMES --decoder.extra_tags 0"
            )
        second.soften(temperature / weight)
        self._second, self._by = second, np.float32(1 / temperature)
        lanes = second.tables.rows.shape[1] // GROUPS
        self._columns = columns_of_tags(rules.names, second.labels, lanes)
        added, by = transition_scores(second, rules, self._columns), np.float32(weight / temperature)
        sums = [a * self._by + b * by for a, b in zip(scores, added, strict=True)]
        if max(float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in sums) > LARGEST_SCORE:
            raise ModelError(
                "the scores of tags in the ensemble are too large; have a smaller weight or a larger temperature in"
                f" {ENSEMBLE}"
            )
        self._chain = ChainKernel(rules, TagScores(*sums))
        self._begins, self._ends = (
            np.array([i for i, name in enumerate(rules.names) if name[0] == mark]) for mark in "BE"
        )

    def add(self, emissions: Float[np.ndarray, "N W"], sentences: Sentences) -> None:
        """Make the emissions of FLAT those of the ensemble; ``sentences`` are as the linear tagger reads them."""
        emissions *= self._by
        self._second.add_to(emissions, sentences, self._columns)

    def favour(
        self, emissions: Float[np.ndarray, "N W"], start: Int[np.ndarray, K], end: Int[np.ndarray, K], by: float
    ) -> None:
        """Increase the score of entities from the characters ``start`` to ``end``, exclusive, with any label."""
        half = np.float32(by / 2) * self._by
        emissions[start[:, None], self._begins] += half
        emissions[end[:, None] - 1, self._ends] += half

    def read(self, emissions: Float[np.ndarray, "N W"], sentences: Sentences) -> FoundSpans:
        """The entities of each sentence."""
        return self._chain.read(emissions, sentences)


class Ensemble(PredictingEngine):
    """The engine of an ensemble; it reads :class:`EnsembleSentences`.

    FLAT alone reads conventions that the linear tagger lacks. Words of the user increase scores in the default
    convention only.

    Args:
        first: FLAT.
        second: the linear tagger, with the same labels.
        weight, temperature, user_word, convention_weight: see :class:`EnsembleSettings`.
        user_kind: the kind of words that a user added without a label, as FLAT reads them.

    Raises:
        EngineError: FLAT has other tags than a linear tagger.
        ModelError: scores of transitions are too large.
    """

    def __init__(
        self,
        first: NativeTagger,
        second: LinearTagger,
        weight: float,
        temperature: float,
        *,
        user_word: float = 0.0,
        user_kind: int = 0,
        convention_weight: float | None = None,
    ):
        self.first, self.second = first, second
        self._user_word, self._user_kind = user_word, user_kind
        self._weight, self._convention_weight = weight, convention_weight or weight
        self.soften(temperature)

    def soften(self, temperature: float) -> None:
        """Divide the sums of scores by a temperature, in all conventions that both models have.

        Raises:
            EngineError, ModelError: see :class:`Ensemble`.
        """
        self.temperature = temperature
        self._pools: dict[str, _Pool] = {}
        self._pool_of("")  # so that tags that do not fit are refused at once

    def combines(self, convention: str) -> bool:
        """Whether both models have a convention; otherwise FLAT alone reads it."""
        return convention in self.second.conventions

    def _pool_of(self, convention: str) -> _Pool:
        """The sums in a convention; their tables are built at the first use."""
        pool = self._pools.get(convention)
        if pool is None:
            tags, second = self.first.tags[convention], self.second.of(convention)
            weight = self._convention_weight if convention else self._weight
            pool = self._pools[convention] = _Pool(*tags, second, weight, self.temperature)
        return pool

    @classmethod
    def open(
        cls, folder: ModelFolder, first: Engine, convention: str = "", settings: EnsembleSettings | None = None
    ) -> NER:
        """The pipeline of an ensemble: the model of a folder, run by ``first``, and its second model.

        Args:
            folder: the folder of the first model.
            first: runs it.
            convention: the annotation convention; empty for the default one.
            settings: instead of those in the folder.

        Raises:
            EngineError: the folder names no second model, or its model is not a FLAT with the tags of a linear
                tagger.
            ModelError: the second model is missing or broken, or does not fit.
        """
        settings = settings or EnsembleSettings.of(folder)
        if not isinstance(first, NativeTagger):
            raise EngineError(f"{folder.path} has no FLAT, to which a second model could be added")
        ner = folder.read_by(first, convention)
        second = SecondModel(settings.second, folder, ner.base)
        ner.engine = cls(
            first,
            second.tagger,
            settings.weight,
            settings.temperature,
            user_word=settings.user_word,
            user_kind=folder.vocabulary.user_kind,
            convention_weight=settings.convention_weight,
        )
        ner.reader = EnsembleReader(ner.reader, second)
        return ner

    def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE) -> FoundSpans:
        """Spans of each sentence; the arguments are those of :meth:`NativeTagger.find`."""
        if not self.combines(convention):
            return self.first.find(sentences, convention, batch_size=batch_size)
        return self.first.in_shares(sentences, partial(self._found, convention=convention))

    def _found(self, sentences: Sentences, convention: str) -> FoundSpans:
        assert isinstance(sentences, EnsembleSentences)
        pool, emissions = self._pool_of(convention), self.first.emissions(sentences, convention)
        pool.add(emissions, sentences.second)
        if self._user_word and not convention:
            words = np.flatnonzero(sentences.word_labels == self._user_kind)
            if len(words):
                first = sentences.first_char[np.searchsorted(sentences.first_word, words, side="right") - 1]
                pool.favour(
                    emissions, first + sentences.start[words], first + sentences.end[words], self._user_word
                )
        return pool.read(emissions, sentences)


def transition_scores(tagger: LinearTagger, rules: TagRules, columns: np.ndarray) -> TagScores:
    """The scores of a linear tagger other than emissions, in the form of a tag decoder.

    Args:
        tagger: the linear tagger, whose tags have the scheme BMES.
        rules: tags with the same labels.
        columns: ``[Y]``, the column of each tag in the tables of the linear tagger.
    """
    t, lanes = tagger.tables.transitions, tagger.tables.rows.shape[1] // GROUPS
    group, lane = columns // lanes, columns % lanes  # groups: O and single, begin, inside, end
    begins, ends = group < 2, (group == 0) | (group == 3)
    fresh, closed = np.where(group == 0, lane, lanes + lane), np.where(group == 3, lanes + lane, lane)
    fresh, closed = np.where(begins, fresh, 0), np.where(ends, closed, 0)
    inner = t.inner[np.where(group == 1, 0, 1)[:, None] + np.where(group == 3, 2, 0), lane[:, None]]
    pair = np.where(ends[:, None] & begins, t.fresh[closed][:, fresh], inner)
    scored = ((rules.start, t.first[fresh]), (rules.pair, pair), (rules.end, t.last[closed]))
    scale = np.float32(tagger.tables.scale)
    return TagScores(*(np.where(there, x * scale, -np.inf).astype(np.float32) for there, x in scored))
