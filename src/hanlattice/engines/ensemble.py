"""An ensemble of FLAT and a linear tagger: the scores of both are added before the best tags are searched.

The two models make different errors: FLAT reads the sentence as a whole, and a linear tagger remembers n-grams and
words. The probability of tags is proportional to a product of powers of the probabilities of both models, a
logarithmic opinion pool (Smith, Cohn and Osborne 2005, "Logarithmic opinion pools for conditional random fields",
https://aclanthology.org/P05-1003/). The file ``ensemble.toml`` in the folder of FLAT names the linear tagger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.linear.tables import GROUPS, columns_of_tags
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.engines.second_model import SecondModel, read_settings
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import ENSEMBLE, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

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
    """

    second: str
    weight: float
    temperature: float

    @classmethod
    def of(cls, folder: ModelFolder) -> EnsembleSettings:
        """The settings in the folder of a model.

        Raises:
            EngineError: the folder has no such file.
            ModelError: the file is broken.
        """
        found = read_settings(folder, ENSEMBLE)
        second, weight, temperature = (found.get(name) for name in ("second", "weight", "temperature"))
        if not (isinstance(second, str) and _is_positive(weight) and _is_positive(temperature)):
            raise ModelError(
                f"{folder.path / ENSEMBLE}: needs second, the name of a model, and weight and temperature, numbers"
                f" above 0.0 and at most {LARGEST}"
            )
        return cls(second, weight, temperature)


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
    """Converts texts to the ids of both models."""

    def __init__(self, first: WindowReader, second: SecondModel):
        self._first, self._second = first, second

    def read(
        self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None
    ) -> EnsembleSentences:
        """Convert texts; the arguments are those of :meth:`hanlattice.inputs.reader.Reader.read`."""
        first = self._first.read(texts, lexicon, user_labels)
        return EnsembleSentences(first, self._second.read(texts, lexicon, user_labels))


class Ensemble:
    """The engine of an ensemble; it reads :class:`EnsembleSentences`.

    Only the default convention has a second model; FLAT alone reads the others.

    Args:
        first: FLAT.
        second: the linear tagger, with the same labels.
        weight, temperature: see :class:`EnsembleSettings`.

    Raises:
        EngineError: FLAT has other tags than a linear tagger.
        ModelError: scores of transitions are too large.
    """

    nested = False

    def __init__(self, first: NativeTagger, second: LinearTagger, weight: float, temperature: float):
        self.first, self.second = first, second
        rules, scores = first.tags[""]
        if rules.scheme != "BMES" or rules.names[0] != "O":
            raise EngineError("an ensemble needs the tag scheme BMES without additional tags; use engine='native'")
        self._by = np.float32(1 / temperature)
        second.soften(temperature / weight)
        lanes = second.tables.rows.shape[1] // GROUPS
        self._columns = columns_of_tags(rules.names, second.labels, lanes)
        added = transition_scores(second, rules, self._columns)
        by = np.float32(weight / temperature)
        sums = [a * self._by + b * by for a, b in zip(scores, added, strict=True)]
        if max(float(np.abs(x[np.isfinite(x)]).max(initial=0)) for x in sums) > LARGEST_SCORE:
            raise ModelError(
                "the scores of tags in the ensemble are too large; have a smaller weight or a larger temperature in"
                f" {ENSEMBLE}"
            )
        self._chain = ChainKernel(rules, TagScores(*sums))

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
        second = SecondModel(settings.second, folder, ner.lexicon)
        ner.engine = cls(first, second.tagger, settings.weight, settings.temperature)
        ner.reader = EnsembleReader(ner.reader, second)
        return ner

    def is_nested(self, convention: str = "") -> bool:
        """False: tags cannot express spans inside spans."""
        return False

    def eval(self) -> None:
        """Does nothing: there is no training mode."""

    def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE) -> FoundSpans:
        """Spans of each sentence; the arguments are those of :meth:`NativeTagger.find`."""
        if convention:
            return self.first.find(sentences, convention, batch_size=batch_size)
        return self.first.in_shares(sentences, self._found)

    def _found(self, sentences: Sentences) -> FoundSpans:
        assert isinstance(sentences, EnsembleSentences)
        emissions = self.first.emissions(sentences)
        emissions *= self._by
        self.second.add_to(emissions, sentences.second, self._columns)
        return self._chain.read(emissions, sentences)


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
