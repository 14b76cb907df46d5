"""Encoders other than FLAT by numpy: the same numbers as the modules of torch, and the same entities."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import hanlattice
import tiny
from hanlattice.errors import EngineError, HanlatticeError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.model.folder import WEIGHTS
from hanlattice.model.weights import save_model
from hanlattice.pipeline import NER
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare
from untrained_flat import TEXTS

ENCODERS: dict[str, dict[str, Any]] = {
    "bilstm": {"name": "bilstm", "d_hidden": 12},
    "bilstm of two layers": {"name": "bilstm", "d_hidden": 12, "layers": 2},
    "lattice LSTM": {"name": "lattice_lstm", "d_hidden": 12},
    "lattice LSTM of the authors' code": {"name": "lattice_lstm", "d_hidden": 12, "coupled": True},
    "lattice LSTM, words from vectors only": {"name": "lattice_lstm", "d_hidden": 12, "composition": False},
    "idcnn": {"name": "idcnn", "d_hidden": 12},
    "idcnn, repeated": {"name": "idcnn", "d_hidden": 12, "repeats": 3, "dilations": [1, 3]},
    "idcnn, blocks of their own": {
        "name": "idcnn", "d_hidden": 12, "repeats": 2, "share": False, "output": "concat", "first": "linear",
    },
}  # fmt: skip
EMBEDDINGS: dict[str, dict[str, Any]] = {
    "characters": {"name": "characters"},
    "characters without bigrams": {"name": "characters", "bigrams": False},
    "soft lexicon": {"name": "soft_lexicon"},
    "soft lexicon without none": {"name": "soft_lexicon", "none": False, "composition": False},
}
WORDS = ["人和药店的长江大桥局很好", "长江大桥局很好,赵子龙说人和药店", "桥", "大桥"]


def settings(embedding: str, encoder: str) -> dict[str, Any]:
    given = tiny.settings(epochs=1)
    return {**given, "embedding": EMBEDDINGS[embedding], "encoder": ENCODERS[encoder]}


def untrained(given: Mapping[str, Any], folder: Path) -> Path:
    """The folder of a model with random weights."""
    torch.manual_seed(0)
    ner = prepare(tiny.config().with_settings(given), "cpu", Silent()).ner
    for parameter in ner.tagger.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    save_model(folder, ner.tagger, ner.vocabulary, ner.lexicon, ner.config)
    return folder


@pytest.fixture(scope="module", params=[(x, h) for x in EMBEDDINGS for h in ENCODERS], ids=" + ".join)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return untrained(settings(*request.param), tmp_path_factory.mktemp("numpy") / "model")


def with_words(folder: Path, engine: Any) -> NER:
    ner = hanlattice.load(folder, engine=engine)
    ner.lexicon.update(WORDS)
    return ner


def test_the_same_emissions(folder: Path) -> None:
    """For sentences of different lengths in one batch, and for one sentence."""
    by_torch, by_numpy = with_words(folder, "torch"), with_words(folder, "numpy")
    texts = [text for text in [*TEXTS, TEXTS[4][:64], TEXTS[4][3:40]] if 0 < len(text) <= 64]
    for some in (texts, texts[:1], texts[1:2], texts[::-1]):
        sentences = by_torch.reader.read(some, by_torch.lexicon)
        batch = collate(sentences)
        with torch.inference_mode():
            expected = by_torch.tagger(batch)[batch.mask].numpy()
        found = by_numpy.engine.emissions(by_numpy.reader.read(some, by_numpy.lexicon))  # type: ignore[attr-defined]
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)


def test_the_same_entities_without_torch(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*TEXTS, *(document.text for document in tiny.documents()[:10])]
    expected = [document.spans for document in with_words(folder, "torch")(texts)]
    assert sum(map(len, expected)) > 10
    monkeypatch.setitem(sys.modules, "torch", None)
    ner = with_words(folder, "auto")
    for batch_size in (1, 3, 64):
        assert [document.spans for document in ner.pipe(texts, batch_size=batch_size)] == expected


CHANGED: Mapping[str, Any] = {
    "a row less": lambda a: a[:-1],
    "a row more": lambda a: np.concatenate([a, a[:1]]),
    "another axis": lambda a: a[..., None],
    "not a number": lambda a: np.full_like(a, np.nan) if a.dtype.kind == "f" else a[:-1],
    "another type": lambda a: a.astype(np.int32),
}


@pytest.mark.parametrize("change", CHANGED)
def test_every_weight_is_checked(folder: Path, change: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in folder.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    whole = load_file(folder / WEIGHTS)
    for name, array in whole.items():
        save_file({**whole, name: np.ascontiguousarray(CHANGED[change](array))}, broken / WEIGHTS)
        with pytest.raises(ModelError, match="weights") as error:
            hanlattice.load(broken, engine="numpy")
        assert "\n" not in str(error.value)
    save_file({k: v for k, v in whole.items() if k != name}, broken / WEIGHTS)
    with pytest.raises(ModelError, match=f"{name} is missing"):
        hanlattice.load(broken, engine="numpy")


def test_conventions(tmp_path: Path) -> None:
    """Each convention has its own shift of the embedding and its own emissions."""
    given = settings("soft lexicon", "lattice LSTM")
    corpus = str(tiny.folder() / "corpus.bmes")
    given |= {"conventions": {"names": {"corpus": [corpus], "weight": 1.0}}}
    folder = untrained(given, tmp_path / "model")
    texts = [document.text for document in tiny.documents()[:10]]
    found = {}
    for convention in hanlattice.load(folder).conventions:
        by_torch, by_numpy = (
            hanlattice.load(folder, engine=engine, convention=convention) for engine in ("torch", "numpy")
        )
        found[convention] = [document.spans for document in by_numpy(texts)]
        assert found[convention] == [document.spans for document in by_torch(texts)]
    assert len(found) == 2
    assert len({str(spans) for spans in found.values()}) == 2


@pytest.mark.parametrize(
    ("embedding", "encoder", "said"),
    [
        ({"name": "soft_lexicon"}, {"name": "flat", "d_model": 20, "heads": 2}, "numpy do not run FLAT over Soft"),
        ({"name": "characters", "segmentation": "softword"}, {"name": "bilstm"}, "embedding.segmentation = 'none'"),
        ({"name": "characters"}, {"name": "cgn"}, "neither C kernels nor numpy run the encoder 'cgn'"),
    ],
)
def test_models_for_other_engines(
    embedding: dict[str, Any], encoder: dict[str, Any], said: str, tmp_path: Path
) -> None:
    given = {**tiny.settings(), "embedding": embedding, "encoder": encoder}
    folder = untrained(given, tmp_path / "model")
    for engine in ("numpy", "native"):
        with pytest.raises(HanlatticeError, match=said) as error:
            hanlattice.load(folder, engine=engine)
        assert isinstance(error.value, EngineError)
    hanlattice.load(folder)


def test_c_kernels_leave_other_encoders_to_numpy(folder: Path) -> None:
    with pytest.raises(EngineError, match="C kernels do not run the encoder"):
        hanlattice.load(folder, engine="native")
