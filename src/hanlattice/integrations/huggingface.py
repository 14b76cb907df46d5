"""Hugging Face: models in folders with a model card, and the output shape of the token classification pipeline.

Nothing here uses the network. ``hf upload NAME FOLDER`` publishes a saved folder, and ``hf download NAME
--local-dir FOLDER`` fetches one.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, overload

from hanlattice.api import load
from hanlattice.document import Document
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.evaluation.scores import Report
from hanlattice.files import read_text
from hanlattice.model.folder import CARD
from hanlattice.model.saving import save
from hanlattice.pipeline import BATCH_SIZE, NER

Aggregation = Literal["simple", "none"]
_FENCE = "---\n"


def save_pretrained(
    ner: NER,
    folder: str | Path,
    *,
    name: str = "",
    license: str = "",  # noqa: A002  # the word of the Hub
    datasets: Sequence[str] = (),
    report: Report | None = None,
) -> Path:
    """Write a model to a new folder whose model card has metadata for the Hugging Face Hub.

    Args:
        ner: a model that was loaded from a folder; edits of its lexicon are saved too.
        folder: the new folder, which must not exist.
        name: name of the model in its card, by default that of the folder.
        license: identifier of the license, such as ``apache-2.0``.
        datasets: identifiers of the training corpora on the Hub.
        report: scores to record in the metadata; needs ``datasets``, of which the first is named as test corpus.

    Raises:
        ConfigError: there are scores but no name of a corpus.
        HanlatticeError: the model was not loaded from a folder.
        ModelError: ``folder`` exists.
    """
    from huggingface_hub import EvalResult, ModelCardData

    if report is not None and not datasets:
        raise ConfigError("scores need the name of their corpus: datasets=['NAME']")
    scores = [] if report is None else [("precision", report.micro.precision), ("recall", report.micro.recall)]
    scores += [] if report is None else [("f1", report.micro.f1)]
    results = [
        EvalResult("token-classification", datasets[0], datasets[0], metric, round(value, 6))
        for metric, value in scores
    ]
    data = ModelCardData(
        language="zh",
        library_name="hanlattice",
        pipeline_tag="token-classification",
        tags=["named-entity-recognition", "chinese", "word-lattice"],
        license=license or None,
        datasets=list(datasets) or None,
        model_name=name or Path(folder).name,
        eval_results=results or None,
    )
    own = "" if ner.folder is None or not (ner.folder / CARD).is_file() else read_text(ner.folder / CARD)
    return save(ner, folder, card=f"{_FENCE}{data.to_yaml()}\n{_FENCE}\n{_without_metadata(own)}")


def _without_metadata(card: str) -> str:
    """The text of a card without the metadata at its start."""
    if not card.startswith(_FENCE):
        return card
    _, fence, text = card.removeprefix(_FENCE).partition(f"\n{_FENCE}")
    return text.lstrip("\n") if fence else card


def from_pretrained(folder: str | Path, **options: Any) -> NER:
    """Load a model from a local folder, such as one of :func:`save_pretrained` or of the cache of the Hub.

    ``options`` are those of :func:`hanlattice.load`.

    Raises:
        ModelError: there is no such folder, or it is not a model of this library.
    """
    if not Path(folder).is_dir():
        raise ModelError(
            f"{folder}: no such folder, and hanlattice never uses the network; download the model first:"
            f" hf download {folder} --local-dir FOLDER"
        )
    return load(Path(folder), **options)  # a string may name a packaged model


class TokenClassifier:
    """A callable with the arguments and the output of ``transformers.pipeline("token-classification")``.

    With ``aggregation_strategy="simple"``, a row is an entity: ``entity_group``, ``score``, ``word``, ``start``,
    ``end``. With ``"none"``, a row is a character of an entity: ``entity`` (a BIO tag), ``score``, ``index`` (from
    1), ``word``, ``start``, ``end``. A discontinuous entity is one row from its start to its end.

    Raises:
        ConfigError: there is no such strategy.
    """

    def __init__(self, ner: NER, *, aggregation_strategy: Aggregation = "simple"):
        if aggregation_strategy not in get_args(Aggregation):
            raise ConfigError(f"aggregation_strategy must be 'simple' or 'none', not {aggregation_strategy!r}")
        self.ner, self.aggregation_strategy = ner, aggregation_strategy

    @overload
    def __call__(self, inputs: str, *, batch_size: int = BATCH_SIZE) -> list[dict[str, Any]]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, inputs: Iterable[str], *, batch_size: int = BATCH_SIZE) -> list[list[dict[str, Any]]]: ...
    def __call__(
        self, inputs: str | Iterable[str], *, batch_size: int = BATCH_SIZE
    ) -> list[dict[str, Any]] | list[list[dict[str, Any]]]:
        """The rows of one text, or a list of rows for each of several texts.

        Raises:
            DataError: an input is not a string.
        """
        if isinstance(inputs, str):
            return self._rows(self.ner(inputs))
        texts = [_checked(text, i) for i, text in enumerate(inputs)]
        return [self._rows(document) for document in self.ner.pipe(texts, batch_size=batch_size)]

    def _rows(self, document: Document) -> list[dict[str, Any]]:
        if self.aggregation_strategy == "none":
            return list(_characters(document))
        return [
            {"entity_group": e.label, "score": e.score, "word": e.text, "start": e.start, "end": e.end}
            for e in document.entities
        ]


def _characters(document: Document) -> Iterator[dict[str, Any]]:
    for entity in document.entities:
        for i in range(entity.start, entity.end):
            tag = f"{'B' if i == entity.start else 'I'}-{entity.label}"
            row = {"entity": tag, "score": entity.score, "index": i + 1, "word": document.text[i]}
            yield {**row, "start": i, "end": i + 1}


def _checked(text: object, i: int) -> str:
    if not isinstance(text, str):
        raise DataError(f"input {i} is {type(text).__name__}, not a text")
    return text
