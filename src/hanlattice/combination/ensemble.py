"""Choose the settings of an ensemble on held-out corpora."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import cast

from hanlattice import words
from hanlattice.combination.folder import combined
from hanlattice.combination.held_out import HeldOut, f1
from hanlattice.config.linear import linear_settings
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.errors import ConfigError, EngineError
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, confidences, minimum
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import ENSEMBLE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER

WEIGHTS = [round(0.1 * n, 1) for n in range(1, 16)]
OF_USER_WORDS = [float(n) for n in range(11)]
LONGEST_COMPOUND = 5  # characters
TOLERANCE = 0.1  # points of F1


@dataclass(frozen=True)
class ChosenEnsemble:
    """The settings of an ensemble, and the scores of the ensemble and of its models.

    Attributes:
        settings: the settings.
        corpora: the corpora that chose them.
        scores: F1 in percent of the ensemble, of FLAT and of the linear tagger on each corpus.
        chosen_by: what chose the weight of other conventions; empty if they have the same weight.
    """

    settings: EnsembleSettings
    corpora: Sequence[HeldOut]
    scores: Sequence[tuple[float, float, float]]
    chosen_by: str = ""

    @property
    def gain(self) -> float:
        """How many points of F1 the ensemble gains over FLAT, as the mean over the corpora."""
        return sum(both - first for both, first, _ in self.scores) / len(self.scores)

    def lines(self) -> list[str]:
        """The scores, one line for each corpus."""
        return [
            f"F1 on {len(corpus.documents):,} documents of {corpus.name}: ensemble {both:.2f}, FLAT {first:.2f},"
            f" linear tagger {second:.2f}."
            for corpus, (both, first, second) in zip(self.corpora, self.scores, strict=True)
        ]

    def toml(self) -> str:
        """The contents of ``ensemble.toml``."""
        given = self.settings
        lines = [
            *(f"# {line}" for line in self.lines()),
            f'second = "{given.second}"',
            f"weight = {given.weight!r}",
        ]
        lines += [f"temperature = {given.temperature!r}", f"user_word = {given.user_word!r}"]
        if self.chosen_by:
            lines.append(f"convention_weight = {given.convention_weight!r}  # {self.chosen_by}")
        return "".join(f"{line}\n" for line in lines)


def make_ensemble(
    dev: Sequence[str | Path],
    output: str | Path,
    *,
    second: str | Path,
    model: str | Path | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> ChosenEnsemble:
    """Write a copy of a FLAT that is an ensemble with a linear tagger.

    Args:
        dev: corpora that neither model was trained on. Those that their best epochs were chosen by are fine.
        output: a new folder.
        second: folder of the linear tagger, or ``lite`` for the packaged one.
        model: folder of the FLAT; None for the packaged one.
        labels: new names of labels of the corpora.

    Raises:
        ConfigError: F1 on the corpora is not above that of the FLAT.
        DataError: a corpus cannot be read, or has no entities with a label of the models.
        EngineError: the kernels are not compiled, or ``model`` is not a FLAT with the tags of a linear tagger.
        ModelError: a folder is not a model, the models do not fit each other, or ``output`` exists.
    """
    corpora = [HeldOut.read(path, labels) for path in dev]
    with combined(model, second, Path(output), ENSEMBLE) as draft:
        if linear_settings(draft.first.config) is not None:
            raise EngineError(
                f"{draft.first.path} is a linear tagger; the first model of an ensemble has to be a FLAT"
            )
        for one in corpora:
            one.need_label_of(draft.first.vocabulary.labels)
        chosen = choose(draft.first, draft.source, corpora)
        if chosen.gain <= 0:
            raise ConfigError(
                f"no weight of {second} raises F1 of {model or 'the packaged model'} by more than {TOLERANCE}"
                f" points, so nothing was written: {' '.join(chosen.lines())} A linear tagger helps if it learned"
                " from much text, such as raw text that `hanlattice distill` annotates"
            )
        chosen = replace(chosen, settings=replace(chosen.settings, second=draft.named))
        draft.write(chosen.toml(), "Ensemble", chosen.lines())
    return chosen


def choose(
    folder: ModelFolder,
    second: str,
    corpora: Sequence[HeldOut],
    convention: tuple[str, HeldOut] | None = None,
    report: Callable[[str], object] = lambda line: None,
) -> ChosenEnsemble:
    """Choose the settings of an ensemble.

    The weight is the smallest one, of :data:`WEIGHTS`, whose mean F1 over the corpora is at most
    :data:`TOLERANCE` below the largest: FLAT often learned from more corpora, so it is better on text of other
    kinds. The score of user words is the one, of :data:`OF_USER_WORDS`, with the largest mean F1 when the names of
    each corpus and as many compounds of ordinary words were added without a label; it is 0 if the model finds no
    words, of which compounds could be made. The temperature has the smallest loss, as in
    :func:`hanlattice.evaluation.temperature.calibrate`; it is 1 if all or none of the entities found are correct.

    Args:
        folder: the FLAT.
        second: the linear tagger, as ``ensemble.toml`` will name it.
        corpora: corpora of the default convention that neither model was trained on.
        convention: another convention and a corpus of it, which choose the weight of all other conventions.
        report: is called with a line for each trial.

    Raises:
        EngineError, ModelError: see :meth:`Ensemble.open`.
    """
    settings = EnsembleSettings(second, weight=1.0, temperature=1.0)
    ner = Ensemble.open(folder, NativeTagger(folder, threads=1), settings=settings)
    ensemble = cast(Ensemble, ner.engine)
    trials = Trials(ner, ensemble.first, ensemble.second, folder.vocabulary.user_kind, report)
    weight = trials.weight(corpora)
    settings = replace(settings, weight=weight, user_word=trials.user_word(corpora, weight))
    documents = list(chain.from_iterable(one.documents for one in corpora))
    settings = replace(settings, temperature=trials.temperature(documents, weight))
    chosen_by = ""
    if convention is not None:
        name, held_out = convention
        with ner.using(convention=name):
            settings = replace(settings, convention_weight=trials.weight([held_out]))
        chosen_by = f"chosen on {len(held_out.documents):,} documents of {held_out.name}"
    trials.set(weight, settings.temperature, settings.user_word)
    own = ModelFolder.open(second if second in PACKAGED else folder.path / second)
    models = (ner, folder.read_by(ensemble.first), own.read_by(ensemble.second))
    scores = [tuple(f1(model, one.documents) for model in models) for one in corpora]
    return ChosenEnsemble(settings, corpora, cast("list[tuple[float, float, float]]", scores), chosen_by)


def nearly_best(scores: Mapping[float, float]) -> float:
    """The smallest weight whose F1 is at most :data:`TOLERANCE` below the largest."""
    return min(weight for weight, score in scores.items() if score >= max(scores.values()) - TOLERANCE)


def with_user_words(ner: NER, documents: Sequence[Document]) -> Lexicon | None:
    """A copy of the lexicon, to which names of documents and as many compounds were added, all without labels.

    Compounds are two successive words, of at most `LONGEST_COMPOUND` characters, that share no character with a
    name. Each occurs in the documents too. None if there are no compounds, or the model finds no words.
    """
    if words.CONVENTION not in ner.conventions:
        return None
    copy = ner.lexicon.copy()
    names = {entity.text for document in documents for entity in document.entities}
    names = {name for name in names if name not in copy and 1 < len(name) <= (copy.longest or 0)}
    compounds = set()
    for document, read in zip(documents, ner.pipe(d.text for d in documents), strict=True):
        free = [True] * len(document.text)
        for entity in document.entities:
            free[entity.start : entity.end] = [False] * (entity.end - entity.start)
        for one, other in pairwise(read.words or ()):
            text = document.text[one.start : other.end]
            is_compound = len(text) <= LONGEST_COMPOUND and text.isalpha() and all(free[one.start : other.end])
            if one.end == other.start and is_compound and text not in copy:
                compounds.add(text)
    few = Random(0).sample(sorted(compounds - names), min(len(names), len(compounds - names)))
    copy.update([*sorted(names), *few])
    return copy if few else None


@dataclass(frozen=True)
class Trials:
    """An ensemble of two models, which is scored with different settings.

    Attributes:
        ner: the ensemble.
        flat, linear: its models.
        user_kind: the kind of user words without a label.
        report: is called with a line for each trial.
    """

    ner: NER
    flat: NativeTagger
    linear: LinearTagger
    user_kind: int
    report: Callable[[str], object]

    def set(self, weight: float, temperature: float = 1.0, user_word: float = 0.0) -> None:
        """Give the ensemble other settings."""
        self.ner.engine = Ensemble(
            self.flat, self.linear, weight, temperature, user_word=user_word, user_kind=self.user_kind
        )

    def weight(self, corpora: Sequence[HeldOut]) -> float:
        """The weight for corpora in the active convention."""
        scores = {}
        for weight in WEIGHTS:
            self.set(weight)
            scores[weight] = sum(f1(self.ner, one.documents) for one in corpora) / len(corpora)
            self.report(f"weight {weight}: mean F1 {scores[weight]:.2f}")
        return nearly_best(scores)

    def user_word(self, corpora: Sequence[HeldOut], weight: float) -> float:
        """The score of user words with the largest F1 when each corpus has words of the user."""
        self.set(weight)
        lexicons = [with_user_words(self.ner, one.documents) for one in corpora]
        if None in lexicons:
            return 0.0
        scores = {}
        for user_word in OF_USER_WORDS:
            self.set(weight, user_word=user_word)
            found = []
            for one, lexicon in zip(corpora, lexicons, strict=True):
                with self.ner.using(lexicon=lexicon):
                    found.append(f1(self.ner, one.documents))
            scores[user_word] = sum(found) / len(found)
            self.report(f"user words {user_word}: mean F1 {scores[user_word]:.2f}")
        return max(scores, key=lambda one: scores[one])

    def temperature(self, documents: list[Document], weight: float) -> float:
        """The temperature with the smallest loss; 1 if all or none of the entities found are correct."""

        def loss(power: float) -> float:
            self.set(weight, 2**power)
            return confidences(self.ner, documents).loss

        self.set(weight)
        correct = confidences(self.ner, documents).correct
        if all(correct) or not any(correct):  # the smallest loss is that of an extreme temperature
            return 1.0
        return round(2 ** minimum(loss, LOWEST, HIGHEST, PRECISION), 3)
