"""Temperature scaling: fit one temperature to annotated documents, and write a calibrated copy of the model."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from hanlattice import corpus
from hanlattice.atomic import atomic_folder, atomic_write
from hanlattice.config.files import save_config
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import Config
from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.errors import DataError
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.evaluate import Evaluation
from hanlattice.model.copies import check_new, copy_files
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, CONFIG, ENSEMBLE, GRAPH, WEIGHTS, ModelFolder
from hanlattice.pipeline import NER

# What imports torch is imported where it is used: linear taggers are calibrated without it.
if TYPE_CHECKING:
    from hanlattice.engines.linear.tagger import LinearTagger
    from hanlattice.tagger import Head, Tagger

# The search covers temperatures from 2**LOWEST to 2**HIGHEST and ends with an interval of PRECISION powers of two.
LOWEST, HIGHEST, PRECISION = -4.0, 4.0, 0.03
_CONFIDENCES = re.compile(r"^## Confidences\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)  # a section of a model card


@dataclass(frozen=True)
class Calibrated:
    """The result of a calibration.

    Attributes:
        folder: the calibrated copy.
        temperature: all scores are divided by it.
        before, after: the confidences of the model and of its copy on the corpus.
        exported: whether the model is an exported one. The copy never is.
    """

    folder: Path
    temperature: float
    before: Confidences
    after: Confidences
    exported: bool


def calibrate(
    model: str | Path | None,
    dev: str | Path,
    output: str | Path,
    *,
    convention: str = "",
    labels: Mapping[str, str] = MappingProxyType({}),
    trust: bool = False,
) -> Calibrated:
    """Write a copy of a model with confidences calibrated on a corpus.

    All scores are divided by one temperature (Guo et al. 2017, https://arxiv.org/abs/1706.04599). This changes the
    confidences and hardly anything else; see :meth:`hanlattice.decoders.base.Decoder.soften`.

    The temperature minimises the negative log-likelihood of one event for each predicted entity: it is correct or
    not. The score printed beside an entity is the probability of this event (Kuleshov and Liang 2015, "Calibrated
    structured prediction"). The losses of the decoders are not used, because some of them are not likelihoods,
    some weigh gold spans differently, and the others describe whole sentences.

    Args:
        model: folder of a model; None for the packaged one.
        dev: annotated corpus that the model was not trained on. The corpus that its best epoch was chosen by is
            fine.
        output: a new folder.
        convention: annotation convention of ``dev``, and the only one whose confidences change; the model's default
            convention if empty. The conventions that both models of an ensemble have share one temperature.
        labels: new names of labels of ``dev``.
        trust: as in :func:`hanlattice.load`.

    Raises:
        DataError: the corpus cannot be read, or all or none of the entities predicted on it are correct.
        EngineError: the model is an ensemble, and the kernels are not compiled.
        ModelError: the folder is not a model, its decoder has no temperature, or ``output`` exists.
        UnknownConvention: the model does not have this convention.
    """
    folder, output = ModelFolder.open(model), Path(output)
    check_new(output, "the calibrated model")
    documents = list(relabelled(corpus.read(dev), labels))
    ner = _opened(folder, convention, trust)
    before = confidences(ner, documents)
    _need_right_and_wrong(before, dev)
    temperature = _fitted(ner, documents, before)
    with atomic_folder(output) as draft:
        copy_files(folder.path, draft, GRAPH, CHECKPOINT)
        _write_softened(ner, temperature, folder.config, draft)
        after = confidences(_opened(ModelFolder.open(draft), convention, trust), documents)
        done = Calibrated(output, temperature, before, after, (folder.path / GRAPH).is_file())
        _add_to_card(draft / CARD, done, f"{Path(dev).name}{convention and f' by convention {convention}'}")
        record(draft)
    return done


def _opened(folder: ModelFolder, convention: str, trust: bool) -> NER:
    """The model, with the engine whose decoder has a temperature.

    For a convention that only one model of an ensemble has, it is that model.
    """
    if (folder.path / ENSEMBLE).is_file():
        ner = Ensemble.open(folder, NativeTagger(folder), convention)
        if cast(Ensemble, ner.engine).combines(ner.head):
            return ner
    if linear_settings(folder.config) is not None:
        from hanlattice.engines.linear.tagger import LinearTagger

        return folder.read_by(LinearTagger.open(folder), convention)
    from hanlattice.model.weights import load_model

    return load_model(folder.path, convention=convention, trust=trust)


def _write_softened(ner: NER, temperature: float, config: Config, draft: Path) -> None:
    """Change the files of a copy of a model so that its scores are divided by a temperature."""
    if isinstance(ner.engine, Ensemble):
        _soften_ensemble(draft / ENSEMBLE, ner.engine.temperature * temperature)
        return
    soften = _soften if linear_settings(config) is None else _softened_settings
    settings = soften(ner, temperature, draft)
    save_config(_with_decoder_settings(config, ner.head, settings), draft / CONFIG)


def _soften_ensemble(path: Path, temperature: float) -> None:
    """Replace the temperature in an ``ensemble.toml``, and keep its other lines."""
    text = re.sub(r"(?m)^temperature *=.*$", f"temperature = {temperature!r}", path.read_text(encoding="utf-8"))
    with atomic_write(path) as stream:
        stream.write(text)


def _softened_settings(ner: NER, temperature: float, folder: Path) -> Mapping[str, Any]:
    """The settings of a convention's decoder of a linear tagger, whose temperature is one of them."""
    settings = linear_settings(ner.config)
    assert settings is not None
    own = settings.conventions[ner.head] if ner.head else settings
    return {"temperature": own.temperature * temperature}


def _soften(ner: NER, temperature: float, folder: Path) -> Mapping[str, Any]:
    """Divide the logits of a tagger, write its weights, and return the settings of its decoder that change."""
    from hanlattice.model.weights import save_weights, stored_precision

    settings: Mapping[str, Any] = _decoder_owner(ner).decoder.soften(temperature)
    save_weights(ner.tagger.state_dict(), folder / WEIGHTS, precision=stored_precision(folder / WEIGHTS))
    return settings


def confidences(ner: NER, documents: list[Document]) -> Confidences:
    """The confidences of the entities that a model predicts in annotated documents."""
    return Evaluation.run(ner, documents, upper_bound=False).confidences()


def _decoder_owner(ner: NER) -> "Tagger | Head":
    """The object whose ``decoder`` belongs to the active convention."""
    return ner.tagger.head(ner.head) or ner.tagger


def _with_decoder_settings(config: Config, head: str, settings: Mapping[str, Any]) -> Config:
    """The configuration with other settings for the decoder of a convention."""
    if not head:
        return replace(config, decoder=config.decoder.with_settings(settings))
    further = config.conventions[head]
    further = replace(further, decoder=further.decoder.with_settings(settings))
    return replace(config, conventions={**config.conventions, head: further})


def _need_right_and_wrong(found: Confidences, dev: str | Path) -> None:
    """
    Raises:
        DataError: all entities are correct, or none is.
    """
    n_correct = sum(found.correct)
    if not 0 < n_correct < len(found.correct):
        what = f"all {len(found.correct):,} predicted entities are" if n_correct else "no predicted entity is"
        raise DataError(
            f"{what} correct here, so there is nothing to fit a temperature to; name a larger corpus with the"
            " model's labels (rename others with --map OLD=NEW) that the model was not trained on",
            dev,
        )


def _fitted(ner: NER, documents: list[Document], before: Confidences) -> float:
    """The temperature with the lowest loss; 1 unless another one is better."""
    with _trials(ner) as soften:

        def loss(power: float) -> float:
            soften(2**power)
            return confidences(ner, documents).loss

        power = minimum(loss, LOWEST, HIGHEST, PRECISION)
        return 2**power if loss(power) < before.loss else 1.0


@contextmanager
def _trials(ner: NER) -> Iterator[Callable[[float], object]]:
    """A function that sets a temperature, which replaces the one set before; at the end there is none again."""
    if not hasattr(ner.engine, "decoder"):
        engine = cast("Ensemble | LinearTagger", ner.engine)
        tagger = engine if isinstance(engine, Ensemble) else engine.of(ner.head)
        first = tagger.temperature
        try:
            yield lambda temperature: tagger.soften(first * temperature)
        finally:
            tagger.soften(first)
        return
    owner = _decoder_owner(ner)
    decoder = owner.decoder

    def soften(temperature: float) -> None:
        owner.decoder = deepcopy(decoder)
        owner.decoder.soften(temperature)

    try:
        yield soften
    finally:
        owner.decoder = decoder


def minimum(loss: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """The argument at which a unimodal function is smallest, by golden-section search (Kiefer 1953).

    Args:
        loss: the function.
        low, high: the range of arguments.
        precision: the search ends when the range is at most this wide.
    """
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


def _add_to_card(card: Path, done: Calibrated, corpus_name: str) -> None:
    written = card.read_text(encoding="utf-8") if card.is_file() else ""
    written = _CONFIDENCES.sub("", written).rstrip()
    written = f"{written}\n\n" if written else ""
    with atomic_write(card) as stream:
        stream.write(
            f"{written}## Confidences\n\n"
            f"Calibrated by `hanlattice calibrate` on {corpus_name}: scores are divided by {done.temperature:.3f}."
            f" The expected calibration error on this corpus, over {len(done.after.p):,} predicted entities, is"
            f" {done.after.error:.4f} (before: {done.before.error:.4f}). The scores above were measured before.\n"
        )
