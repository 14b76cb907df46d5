"""Confidences that mean what they say: a temperature fitted on held-out texts, and a copy of the model with it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hanlattice import corpus
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.errors import DataError, ModelError
from hanlattice.files import atomic_folder, atomic_write
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, CONFIG, GRAPH, WEIGHTS, ModelFolder
from hanlattice.model.weights import load_model, save_weights, stored_precision
from hanlattice.pipeline import NER
from hanlattice.tagger import Head, Tagger

# Powers of two between which temperatures are looked for, and how near to the best one the search must come.
LOWEST, HIGHEST, PRECISION = -4.0, 4.0, 0.03
# Confidences are taken to be at least so far from 0 and from 1, or one wrong entity could cost without end.
FARTHEST = 1e-6


class Confidences(NamedTuple):
    """Of found entities, how sure the model was of each and whether it was right."""

    p: list[float]
    right: list[bool]

    @property
    def error(self) -> float:
        """The expected calibration error; see :func:`hanlattice.evaluation.calibration.calibration_error`."""
        return calibration_error(self.p, self.right)

    @property
    def loss(self) -> float:
        """The mean negative log-likelihood of what was right and what wrong; infinite where nothing is found."""
        p = np.clip(self.p, FARTHEST, 1 - FARTHEST)
        return float(-np.log(np.where(self.right, p, 1 - p)).mean()) if self.p else np.inf


@dataclass(frozen=True)
class Calibrated:
    """What came of it; ``exported`` tells that the model was an exported one, which its copy is not."""

    folder: Path
    temperature: float
    before: Confidences
    after: Confidences
    exported: bool


def calibrate(
    model: str | Path | None, dev: str | Path, output: str | Path, *, convention: str = "", trust: bool = False
) -> Calibrated:
    """Write to the new folder ``output`` a copy of a model whose confidences are calibrated on a corpus.

    Only the answers by one ``convention`` change, those by the model's default one where it is empty: the corpus
    has to be annotated by it.

    All scores are divided by one temperature, as Guo et al. 2017 (https://arxiv.org/abs/1706.04599) divide those of
    a classifier, which changes how sure the model is and hardly anything else: see
    :meth:`hanlattice.decoders.base.Decoder.soften`. The temperature is the one under which what became of the found
    entities, right or wrong, is the likeliest. That is the event whose probability is printed beside an entity, as
    Kuleshov and Liang 2015 ("Calibrated structured prediction") have it, and a proper score of it. The decoders'
    own losses are not taken: some of them are no likelihood at all, others weigh gold and other spans differently,
    and those that are one are of the answer to a whole sentence.

    The corpus should be one that the model has not learnt from; a model that was chosen by it is fine.
    ``trust``: as in :func:`hanlattice.load`.

    Raises:
        DataError: the corpus cannot be read, or what is found in it cannot tell a temperature.
        ModelError: the folder is no model, or its decoder has no temperature; ``output`` exists.
        UnknownConvention: the model did not learn the convention.
    """
    folder, output = ModelFolder.open(model), Path(output)
    if output.exists():
        raise ModelError(f"{output} exists already; name a new folder for the calibrated model")
    documents = list(corpus.read(dev))
    ner = load_model(folder.path, convention=convention, trust=trust)
    before = read(ner, documents)
    _need_both(before, dev)
    temperature = _fitted(ner, documents, before)
    changed = _decoding(ner).decoder.soften(temperature)
    with atomic_folder(output) as draft:
        shutil.copytree(folder.path, draft, dirs_exist_ok=True, ignore=shutil.ignore_patterns(GRAPH, CHECKPOINT))
        save_config(_changed(folder.config, ner.head, changed), draft / CONFIG)
        save_weights(ner.tagger.state_dict(), draft / WEIGHTS, precision=stored_precision(folder.path / WEIGHTS))
        after = read(load_model(draft, convention=convention, trust=trust), documents)
        done = Calibrated(output, temperature, before, after, (folder.path / GRAPH).is_file())
        _note(draft / CARD, done, f"{Path(dev).name}{convention and f' by convention {convention}'}")
        record(draft)
    return done


def _decoding(ner: NER) -> Tagger | Head:
    """What holds the decoder of the active convention."""
    return ner.tagger.head(ner.head) or ner.tagger


def _changed(config: Config, head: str, settings: Mapping[str, Any]) -> Config:
    """The configuration with other settings of the decoder of a convention."""
    if not head:
        return replace(config, decoder=config.decoder.with_settings(settings))
    further = config.conventions[head]
    further = replace(further, decoder=further.decoder.with_settings(settings))
    return replace(config, conventions={**config.conventions, head: further})


def read(ner: NER, documents: list[Document]) -> Confidences:
    """The entities that a model finds in annotated documents."""
    found: list[tuple[float, bool]] = []
    for gold, document in zip(documents, ner.pipe(d.text for d in documents), strict=True):
        spans = set(gold.spans)
        found += [(entity.score or 0.0, entity.span in spans) for entity in document.entities]
    return Confidences([p for p, _ in found], [right for _, right in found])


def _need_both(found: Confidences, dev: str | Path) -> None:
    n_right = sum(found.right)
    if not 0 < n_right < len(found.right):
        what = f"all {len(found.right):,} entities that are" if n_right else "no entity that is"
        raise DataError(
            f"{what} found here {'are' if n_right else 'is'} right, so there is nothing to fit a temperature to;"
            " name a larger corpus with the model's labels that it has not learnt from",
            dev,
        )


def _fitted(ner: NER, documents: list[Document], before: Confidences) -> float:
    """The best temperature; 1 unless another one is better."""
    holder = _decoding(ner)
    decoder = holder.decoder

    def loss(power: float) -> float:
        holder.decoder = deepcopy(decoder)
        holder.decoder.soften(2**power)
        return read(ner, documents).loss

    power = lowest(loss, LOWEST, HIGHEST, PRECISION)
    better = loss(power) < before.loss
    holder.decoder = decoder
    return 2**power if better else 1.0


def lowest(loss: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Where a function that falls and then rises is lowest, by golden sections (Kiefer 1953)."""
    share = (sqrt(5) - 1) / 2
    a, b = high - share * (high - low), low + share * (high - low)
    at_a, at_b = loss(a), loss(b)
    while high - low > precision:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - share * (high - low)
            at_a = loss(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + share * (high - low)
            at_b = loss(b)
    return (low + high) / 2


def _note(card: Path, done: Calibrated, corpus_name: str) -> None:
    written = card.read_text(encoding="utf-8").rstrip() + "\n\n" if card.is_file() else ""
    with atomic_write(card) as stream:
        stream.write(
            f"{written}## Confidences\n\n"
            f"Calibrated by `hanlattice calibrate` on {corpus_name}: scores are divided by {done.temperature:.3f}."
            f" The expected calibration error there, over {len(done.after.p):,} found entities, is"
            f" {done.after.error:.4f}, before {done.before.error:.4f}. Scores above are those before.\n"
        )


def calibration_error(confidences: Sequence[float], correct: Sequence[bool], bins: int = 10) -> float:
    """How far confidences are from the share of predictions that are right: the expected calibration error.

    Predictions are sorted into ``bins`` of equal width by their confidence in [0, 1]; the error is the mean, over
    predictions, of the distance in their bin between the mean confidence and the share that is correct (Naeini et
    al. 2015, https://doi.org/10.1609/aaai.v29i1.9602). 0 where there are no predictions.
    """
    p, right = np.asarray(confidences, float), np.asarray(correct, float)
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    apart = np.bincount(bin_of, right - p, bins)  # of each bin, summed over its predictions
    return float(np.abs(apart).sum() / max(len(p), 1))
