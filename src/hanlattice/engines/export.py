"""Export a model for ONNX Runtime: ``hanlattice export``.

The graph is compared with the PyTorch modules before the new folder appears.
"""

import json
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hanlattice.atomic import atomic_folder, atomic_write
from hanlattice.config.linear import linear_settings
from hanlattice.document import Document
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import WordEncoder
from hanlattice.encoders.flat import Flat
from hanlattice.encoders.positions import XLNet
from hanlattice.engines.graph import CharacterGraph, FlatGraph, StoredTable, can_export
from hanlattice.engines.onnx import DECODERS, DIGEST, ExportedTagger, feeds
from hanlattice.errors import ModelError
from hanlattice.evaluation.evaluate import evaluate
from hanlattice.inputs.batch import collate
from hanlattice.inputs.encoded import Sentences
from hanlattice.model.copies import check_new, copy_files
from hanlattice.model.digests import CHECKPOINT, digest, record
from hanlattice.model.folder import GRAPH, SCALE, WEIGHTS, ModelFolder
from hanlattice.model.weights import load_model
from hanlattice.pipeline import NER

OPSET = 20
# The largest allowed difference of an emission between the graph and the modules, which comes from rounding.
TOLERANCE = 1e-3
# Batches to trace and check the graph with; the sizes of all axes differ between them.
EXAMPLES = (
    ("重庆人和药店在渝中区开业", "张三", "中国国家主席在北京人民大会堂会见了来访的外国客人，双方交换了意见。"),
    ("南京市长江大桥",),
    ("一",),
    ("上海浦东发展银行股份有限公司今天说，它在二〇〇一年的利润增加了百分之十。", "，", "在武汉", "广东省中山市"),
)


@dataclass(frozen=True)
class Exported:
    """The result of an export.

    ``difference`` is the largest difference of an emission between the graph and the modules; ``float_f1`` and
    ``int8_f1`` are F1 on the dev corpus before and after quantisation, if it was wanted.
    """

    folder: Path
    difference: float
    float_f1: float | None = None
    int8_f1: float | None = None


def export(
    model: str | Path | None,
    output: str | Path,
    *,
    int8: bool = False,
    dev: Sequence[Document] = (),
    most_lost: float = 0.003,
    trust: bool = False,
) -> Exported:
    """Write a copy of a model that ONNX Runtime can run; torch can still run it too.

    Args:
        model: the folder of a model, None for the packaged one.
        output: the new folder.
        int8: whether matrix products with weights use int8.
        dev: documents on which the model with int8 is scored.
        most_lost: the largest loss of F1 on ``dev`` that int8 may cause, from 0 to 1.
        trust: whether parts of other packages that the folder names may be imported.

    Raises:
        ModelError: the folder is not a model or cannot be exported, ``output`` exists, or int8 loses too much F1.
        DataError: a file cannot be copied or written.
    """
    _need_packages()
    folder, output = ModelFolder.open(model), Path(output)
    check_new(output, "the exported model")
    if linear_settings(folder.config) is not None:
        raise ModelError(f"{folder.path} is a linear tagger, which runs without torch as it is; do not export it")
    if int8 and not dev:
        raise ModelError("a model in int8 has to be scored before it is written; name a corpus with --dev FILE")
    ner = load_model(folder.path, trust=trust)
    traced = _traced(ner, folder)
    with atomic_folder(output) as draft:
        copy_files(folder.path, draft, CHECKPOINT)
        _write(traced, draft)
        copy = ModelFolder.open(draft)
        difference = _difference(ner, draft)
        _refuse_difference(difference, folder.path)
        if not int8:
            record(draft)
            return Exported(output, difference)
        before = _f1(copy.read_by(ExportedTagger(copy)), dev)
        _write(_quantised(traced), draft)
        after = _f1(copy.read_by(ExportedTagger(copy)), dev)
        _refuse_loss(before, after, most_lost)
        record(draft)
        return Exported(output, difference, before, after)


def _refuse_difference(difference: float, path: Path) -> None:
    """Check the largest difference of an emission between the graph and the modules.

    Raises:
        ModelError: it is above `TOLERANCE`, or not a number.
    """
    if not difference <= TOLERANCE:  # also if it is NaN
        raise ModelError(f"{path}: exported emissions differ by {difference:.1e}; nothing is written")


def _refuse_loss(before: float, after: float, most_lost: float) -> None:
    """Check F1 without int8 (``before``) and with it (``after``).

    Raises:
        ModelError: F1 falls by more than ``most_lost``.
    """
    if before - after > most_lost:
        raise ModelError(
            f"with int8 F1 on dev falls from {100 * before:.2f} to {100 * after:.2f}, more than"
            f" {100 * most_lost:.2f}; export without --int8, or allow more with --most-lost; nothing is written"
        )


@dataclass(frozen=True)
class _Traced:
    """A graph as a protocol buffer; ``stored`` maps names of its tables to names of tensors in the weights."""

    proto: Any
    stored: Mapping[str, str]


def _need_packages() -> None:
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ModelError(f"export needs {error.name}: pip install 'hanlattice[export]'") from None


def _graph(ner: NER, folder: ModelFolder) -> CharacterGraph | FlatGraph:
    """The graph of a model.

    Raises:
        ModelError: a part of the model cannot be exported.
    """
    tagger = ner.tagger
    for convention in folder.conventions:
        if (name := folder.decoder(convention).name) not in DECODERS:
            raise ModelError(f"{folder.path}: decoder {name!r} cannot be exported; {' and '.join(DECODERS)} can")
    if not isinstance(tagger.embedding, Characters) or tagger.embedding.segmentation is not None:
        name = folder.config.embedding.name
        raise ModelError(f"{folder.path}: the embedding {name!r} cannot be exported; plain characters can")
    if isinstance(tagger.encoder, Flat):
        if (layers := len(tagger.encoder.layers)) > 1:
            raise ModelError(
                f"{folder.path}: this FLAT has {layers} layers; only one with one layer can be exported"
            )
        if not can_export(tagger.encoder):
            raise ModelError(
                f"{folder.path}: this FLAT has an ablation (encoder.distances = 'heads', trained_distances, fusion"
                " or hidden), which cannot be exported"
            )
        return FlatGraph(tagger, folder.config.text.window)
    if any(isinstance(part, WordEncoder | WordEmbedding) for part in tagger.modules()):
        name = folder.config.encoder.name
        raise ModelError(f"{folder.path}: the encoder {name!r} cannot be exported; of those with words, flat can")
    if any(isinstance(part, nn.LSTM) for part in tagger.modules()):
        name = folder.config.encoder.name
        raise ModelError(
            f"{folder.path}: the encoder {name!r} has LSTMs, which cannot be exported; without torch, the engine"
            " numpy runs most models with LSTMs"
        )
    if any(isinstance(part, XLNet) for part in tagger.modules()):
        raise ModelError(f"{folder.path}: the positions 'xlnet' read punctuation and cannot be exported")
    return CharacterGraph(tagger)


def _traced(ner: NER, folder: ModelFolder) -> _Traced:
    graph = _graph(ner, folder).eval()
    names = {id(p): name for name, p in ner.tagger.named_parameters()}
    stored = _stored_tables(graph, names, folder.path / WEIGHTS)
    given = _inputs(ner, EXAMPLES[0], graph.inputs)
    shapes = {name: dict.fromkeys(range(tensor.dim()), torch.export.Dim.DYNAMIC) for name, tensor in given.items()}
    shapes["convention"] = {}
    try:
        with warnings.catch_warnings(), _quiet("torch.onnx"):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                graph, (), kwargs=given, dynamo=True, dynamic_shapes=shapes, opset_version=OPSET, verbose=False
            )
    except Exception as error:  # the exporter raises many kinds of errors
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        name = folder.config.encoder.name
        raise ModelError(f"{folder.path}: encoder {name!r} cannot be exported ({reason})") from error
    assert program is not None
    return _Traced(program.model_proto, stored)


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Within the ``with`` block, a logger passes errors on and nothing else."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _stored_tables(graph: nn.Module, names: Mapping[int, str], weights: Path) -> dict[str, str]:
    """Replace the tables of a graph by their stored form.

    Returns a map from the names of their tensors in the graph to those in the weights.
    """
    from safetensors import safe_open

    stored = {}
    with safe_open(weights, framework="pt") as tensors:
        keys = set(tensors.keys())
        for path, table in list(graph.named_modules()):
            if not isinstance(table, Table) or id(table.weight) not in names:
                continue
            key = names[id(table.weight)]
            scale = tensors.get_tensor(key + SCALE) if key + SCALE in keys else None
            graph.set_submodule(path, StoredTable(tensors.get_tensor(key), scale))
            stored[f"{path}.values"] = key
            if scale is not None:
                stored[f"{path}.scale"] = key + SCALE
    return stored


def _inputs(ner: NER, texts: Sequence[str], names: Sequence[str]) -> dict[str, torch.Tensor]:
    given = feeds(_encoded(ner, texts))
    return {name: torch.from_numpy(given[name]) for name in names}


def _encoded(ner: NER, texts: Sequence[str]) -> Sentences:
    return ner.reader.read([ner.normaliser(text).text for text in texts], ner.lexicon)


def _write(traced: _Traced, folder: Path) -> None:
    """Write the graph. It refers to the tables in the weights file; its metadata has the digest of that file."""
    import onnx

    proto = onnx.ModelProto()
    proto.CopyFrom(traced.proto)
    places = _places(folder / WEIGHTS)
    for tensor in proto.graph.initializer:
        if tensor.name in traced.stored:
            first, last = places[traced.stored[tensor.name]]
            tensor.ClearField("raw_data")
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", WEIGHTS), ("offset", first), ("length", last - first)):
                tensor.external_data.add(key=key, value=str(value))
    proto.metadata_props.add(key=DIGEST, value=digest(folder / WEIGHTS))
    with atomic_write(folder / GRAPH, "wb") as stream:
        stream.write(proto.SerializeToString())


def _places(weights: Path) -> dict[str, tuple[int, int]]:
    """The range of bytes of every tensor in a safetensors file."""
    with weights.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    header.pop("__metadata__", None)
    return {name: tuple(8 + size + at for at in entry["data_offsets"]) for name, entry in header.items()}


def _quantised(traced: _Traced) -> _Traced:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / GRAPH
        quantize_dynamic(
            traced.proto,
            path,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
        import onnx

        return _Traced(onnx.load(path), traced.stored)


def _difference(ner: NER, folder: Path) -> float:
    """The largest difference between emissions of the graph and of the modules, over the examples."""
    exported = ExportedTagger(ModelFolder.open(folder))
    largest = 0.0
    for texts, convention in product(EXAMPLES, ("", *ner.vocabulary.conventions)):
        sentences = _encoded(ner, texts)
        found, n_chars = exported.emissions(sentences, convention)
        real = np.arange(found.shape[1]) < n_chars[:, None]
        with torch.inference_mode():
            expected = ner.tagger(collate(sentences), convention).numpy()
        largest = float(np.maximum(largest, np.abs(found - expected)[real].max()))  # NaN if any is NaN
    return largest


def _f1(ner: NER, documents: Sequence[Document]) -> float:
    return evaluate(ner, documents, upper_bound=False).micro.f1
