"""Choose the threshold of a cascade on held-out corpora."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np
from jaxtyping import Float, Int

from hanlattice.api import load
from hanlattice.combination.folder import combined
from hanlattice.combination.held_out import HeldOut
from hanlattice.engines.cascade import CascadeSettings, certainties
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.second_model import SecondModel
from hanlattice.errors import ConfigError, EngineError
from hanlattice.evaluation.significance import counts, micro_f1
from hanlattice.model.folder import CASCADE, ENSEMBLE
from hanlattice.pipeline import NER
from hanlattice.text.windows import windows


@dataclass(frozen=True)
class ChosenCascade:
    """The settings of a cascade, and its scores.

    Attributes:
        settings: the settings.
        lost: the largest loss that was allowed, in points of F1.
        lines: the scores, one line for each corpus.
    """

    settings: CascadeSettings
    lost: float
    lines: Sequence[str]

    def toml(self) -> str:
        """The contents of ``cascade.toml``."""
        given = self.settings
        lines = [f"# At most {self.lost:g} points of F1 are lost.", *(f"# {line}" for line in self.lines)]
        lines += [f'second = "{given.second}"', f"threshold = {given.threshold!r}"]
        return "".join(f"{line}\n" for line in lines)


def make_cascade(
    dev: Sequence[str | Path],
    output: str | Path,
    *,
    second: str | Path,
    model: str | Path | None = None,
    lost: float = 0.5,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> ChosenCascade:
    """Write a copy of an accurate model that is a cascade with a linear tagger, the fast model.

    Args:
        dev: corpora that neither model was trained on. Those that their best epochs were chosen by are fine.
        output: a new folder.
        second: folder of the linear tagger, or ``lite`` for the packaged one.
        model: folder of the accurate model; None for the packaged one.
        lost: the largest loss of F1, in points.
        labels: new names of labels of the corpora.

    Raises:
        ConfigError: even the highest threshold loses more.
        DataError: a corpus cannot be read, or has no entities with a label of the models.
        EngineError: the kernels are not compiled or cannot run ``model``, or ``second`` is not a linear tagger.
        ModelError: a folder is not a model, the models do not fit each other, or ``output`` exists.
    """
    corpora = [HeldOut.read(path, labels) for path in dev]
    with combined(model, second, Path(output), CASCADE) as draft:
        for one in corpora:
            one.need_label_of(draft.first.vocabulary.labels)
        is_ensemble = (draft.first.path / ENSEMBLE).is_file()
        accurate = load(draft.first.path.resolve(), engine="ensemble" if is_ensemble else "native")
        fast = load(draft.second.path.resolve())
        own = SecondModel(draft.source, draft.first, accurate.base)
        fast.lexicon = own.lexicon_of(accurate.lexicon)  # edits of the accurate model's lexicon reach both
        chosen = choose(fast, accurate, draft.named, corpora, lost)
        draft.write(chosen.toml(), "Cascade", chosen.lines)
        load(draft.path, engine="cascade")  # the new folder can be opened
    return chosen


def choose(fast: NER, accurate: NER, second: str, corpora: Sequence[HeldOut], lost: float) -> ChosenCascade:
    """Choose the lowest threshold with which the cascade loses at most ``lost`` points of F1 on each corpus.

    No higher threshold loses more than that either.

    Args:
        fast, accurate: both models.
        second: the fast one, as ``cascade.toml`` will name it.
        corpora: corpora that neither model was trained on.
        lost: the largest loss against the accurate model.

    Raises:
        ConfigError: even the highest threshold loses more.
        EngineError: the fast model is not a linear tagger.
    """
    if not isinstance(fast.engine, LinearTagger):
        raise EngineError(f"{second} is not a linear tagger, but the fast model of a cascade has to be one")
    answers = [Answers.of(one, fast, accurate) for one in corpora]
    threshold = max(one.threshold(lost) for one in answers)
    return ChosenCascade(CascadeSettings(second, threshold), lost, [one.described(threshold) for one in answers])


@dataclass(frozen=True)
class Answers:
    """The answers of both models for the documents of a corpus.

    Attributes:
        name: the corpus.
        certainty: for each document, the certainty of the fast model in the window in which it is lowest.
        fast, accurate: for each document, the numbers of gold, predicted and correct entities.
    """

    name: str
    certainty: Float[np.ndarray, " documents"]
    fast: Int[np.ndarray, "documents 3"]
    accurate: Int[np.ndarray, "documents 3"]

    @classmethod
    def of(cls, corpus: HeldOut, fast: NER, accurate: NER) -> "Answers":
        """The answers for a corpus."""
        texts = [document.text for document in corpus.documents]
        gold = [document.spans for document in corpus.documents]
        both = (counts(gold, (found.spans for found in ner.pipe(texts))) for ner in (fast, accurate))
        return cls(corpus.name, _certainties(fast, texts), *both)

    def threshold(self, lost: float) -> float:
        """The lowest threshold with which, as with all higher ones, at most ``lost`` points of F1 are lost.

        Raises:
            ConfigError: even the highest one, 1, loses more.
        """
        order = np.argsort(-self.certainty)
        # With any threshold the fast model answers either all documents of equal certainty, or none.
        is_last = np.append(np.diff(self.certainty[order]) != 0, True)
        gains = np.cumsum((self.fast - self.accurate)[order], 0)  # row k: the fast model answers k + 1 documents
        scores = 100 * micro_f1(self.accurate.sum(0) + gains)
        loses_more = (scores < 100 * micro_f1(self.accurate.sum(0)) - lost) & is_last
        n = int(np.argmax(np.append(loses_more, True)))
        if n == len(order):
            return 0.0
        too_low = self.certainty[order[n]]
        if too_low >= 1:
            raise ConfigError(
                f"on {self.name} the fast model is wrong where it is entirely certain, so each threshold loses more"
                f" than {lost:g} points of F1; allow a larger loss with --lost, or use a better fast model"
            )
        return min(float(np.floor(too_low * 1e6) + 1) / 1e6, 1.0)

    def described(self, threshold: float) -> str:
        """The share that the fast model answers with a threshold, and the scores."""
        is_fast = self.certainty >= threshold
        mixed = np.where(is_fast[:, None], self.fast, self.accurate)
        scores = [100 * micro_f1(x.sum(0)) for x in (mixed, self.accurate, self.fast)]
        return (
            f"On {len(mixed):,} documents of {self.name} the fast model answers {np.mean(is_fast):.1%}."
            f" F1: cascade {scores[0]:.2f}, accurate model {scores[1]:.2f}, fast model {scores[2]:.2f}."
        )


def _certainties(ner: NER, texts: list[str]) -> np.ndarray:
    """For each text, the certainty of a linear tagger in the window in which it is lowest."""
    settings, engine = ner.config.text, cast(LinearTagger, ner.engine)
    found = []
    for plain in ner.normaliser.all(texts):
        cut = windows(plain.text, settings.window, settings.overlap)
        sentences = ner.reader.read([plain.text[w.start : w.end] for w in cut], ner.lexicon, ner.labels)
        found.append(min(certainties(engine, sentences)[1], default=1.0))
    return np.array(found)
