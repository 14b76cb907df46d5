"""Weights as they are stored: which are int8, what is finite, which types and files there are."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hanlattice.config.settings import Config
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import RECORD, digest, faults, forget, record
from hanlattice.model.folder import NUMPY_TYPES, SCALE, ModelFolder, decoder_prefix, is_finite, save_lexicon
from hanlattice.model.weights import _dimensions, load_weights, save_weights, stored_precision

STATE = {
    "table": torch.arange(4004.0).view(1001, 4) - 700,
    "thousand": torch.ones(1000, 2) / 3,
    "cube": torch.ones(1001, 1, 1) / 3,
    "counts": torch.arange(1001)[:, None] * 70_000,
}


def test_large_matrices_alone_become_int8(tmp_path: Path) -> None:
    STATE["table"][5] = 0
    save_weights(STATE, tmp_path / "w.safetensors", precision="int8")
    stored = load_file(tmp_path / "w.safetensors")
    assert {name: tensor.dtype for name, tensor in stored.items()} == {
        "table": torch.int8,
        f"table{SCALE}": torch.float16,
        "thousand": torch.float16,
        "cube": torch.float16,
        "counts": torch.int64,
    }
    scale = (STATE["table"].abs().amax(1) / 127).half()
    assert torch.equal(stored[f"table{SCALE}"], scale[:, None])
    for row, (values, step) in enumerate(zip(STATE["table"].tolist(), scale.tolist(), strict=True)):
        quotients = [min(max(round(value / step), -127), 127) if step else 0 for value in values]
        assert stored["table"][row].tolist() == quotients
    loaded = load_weights(tmp_path / "w.safetensors")
    assert loaded.keys() == STATE.keys()
    assert torch.equal(loaded["table"], stored["table"].float() * scale.float()[:, None])
    assert torch.equal(loaded["counts"], STATE["counts"])
    assert loaded["thousand"].dtype == torch.float32


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_the_precision_of_a_file(tmp_path: Path, precision: str) -> None:
    save_weights(STATE, tmp_path / "w.safetensors", precision=precision)
    assert stored_precision(tmp_path / "w.safetensors") == precision
    if precision == "float32":
        assert all(torch.equal(t, STATE[name]) for name, t in load_weights(tmp_path / "w.safetensors").items())


def test_scales_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    save_file({"a": torch.ones(3, 2), f"a{SCALE}": torch.ones(4, 1)}, tmp_path / "w.safetensors")
    with pytest.raises(ModelError, match="scales do not fit their tables"):
        load_weights(tmp_path / "w.safetensors")


def test_widths_of_tables() -> None:
    state = {
        "embedding.chars.weight": torch.ones(9, 5),
        "embedding.parts.a.bigrams.weight": torch.ones(9, 6),
        "encoder.words.table.weight": torch.ones(9, 7),
        "other.words.table.weight": torch.ones(9, 8),
        "embedding.chars.norm.weight": torch.ones(3),
    }
    assert _dimensions(state) == {"chars": 5, "bigrams": 6, "words": 7}
    assert _dimensions({"x.chars.weight": torch.ones(4)}) == {"chars": 1, "bigrams": 1, "words": 1}


def test_what_is_finite() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    assert [is_finite(every[i : i + 1]) for i in range(0, 2**16, 7)] == np.isfinite(every[::7]).tolist()
    assert is_finite(every[np.isfinite(every)])
    for value in (np.nan, np.inf, -np.inf):
        assert not is_finite(np.array([0, value, 1], np.float16))
        assert not is_finite(np.array([0, value, 1], np.float32))
    assert is_finite(np.array([3e38, -1], np.float32))


def test_types_that_numpy_reads(tmp_path: Path) -> None:
    expected = {"BOOL", "F16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64"}
    assert expected == NUMPY_TYPES
    save_file({"a": torch.ones(3, dtype=torch.bfloat16)}, tmp_path / "model.safetensors")
    folder = ModelFolder(tmp_path, Config(), VOCABULARY)
    with pytest.raises(EngineError, match="has numbers of the type BF16; load the model with engine='torch'"):
        folder.weights()
    save_file({"a": torch.ones(3, dtype=torch.int16)}, tmp_path / "model.safetensors")
    assert folder.weights()["a"].tolist() == [1, 1, 1]


VOCABULARY = Vocabulary(chars=("重",), bigrams=(), words=(), word_labels=(), labels=("PER",))
TAGS = ("O", "B-PER", "M-PER", "E-PER", "S-PER")


def decoder(**settings: Any) -> ModelFolder:
    return ModelFolder(Path("m"), Config().with_settings({"decoder": settings}), VOCABULARY)


@pytest.mark.parametrize("name", ["crf", "softmax"])
def test_scores_of_transitions(name: str) -> None:
    """Forbidden ones are minus infinity, unless the decoder is not constrained; only a CRF has learned ones."""
    learned: dict[str, Any] = {
        "decoder.start": np.arange(5, dtype=np.float16),
        "decoder.transitions": np.arange(25, dtype=np.int8).reshape(5, 5),
        f"decoder.transitions{SCALE}": np.full((5, 1), 0.5, np.float16),
        "decoder.end": np.arange(5, dtype=np.float32) - 1,
    }
    rules, scores = decoder(name=name).tags(learned)
    assert tuple(rules.names) == TAGS
    follows = [[b in ("O", "B", "S") if a in "OES" else b in "ME" for b in "OBMES"] for a in "OBMES"]
    bonus = (1, 1, 1) if name == "crf" else (0, 0, 0)
    tables: tuple[tuple[Any, Any], ...] = (
        ([a in "OBS" for a in "OBMES"], bonus[0] * np.arange(5)),
        (follows, bonus[1] * np.arange(25).reshape(5, 5) / 2),
        ([a in "OES" for a in "OBMES"], bonus[2] * (np.arange(5) - 1)),
    )
    for found, (allowed, extra) in zip(scores, tables, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.where(allowed, extra, -np.inf).astype(np.float32))
    _, free = decoder(name=name, constrained=False).tags(learned)
    for found, (_, extra) in zip(free, tables, strict=True):
        np.testing.assert_array_equal(found, np.asarray(extra, np.float32))
    _, plain = decoder(name=name, constrained=False).tags({})
    assert not any(table.any() for table in plain)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"decoder.end": np.zeros(4)}, r"m: weights do not fit .*decoder.end has the shape \(4,\), not \(5,\)"),
        ({"decoder.start": np.full(5, np.nan)}, "m: weights are broken .*decoder.start has numbers that are not"),
    ],
)
def test_broken_scores_of_transitions(weights: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        decoder(name="crf").tags(weights)


def test_conventions_of_a_folder() -> None:
    config = Config().with_settings({"conventions": {"msra": {"decoder": {"name": "softmax", "scheme": "BIO"}}}})
    folder = ModelFolder(Path("m"), config, replace(VOCABULARY, conventions={"msra": ("LOC",)}))
    assert folder.conventions == ("", "msra")
    assert (folder.decoder().name, folder.decoder("msra").name) == ("crf", "softmax")
    assert (decoder_prefix(""), decoder_prefix("msra")) == ("decoder.", "conventions.msra.decoder.")
    assert tuple(folder.tags({}, "msra")[0].names) == ("O", "B-LOC", "I-LOC")
    assert tuple(folder.tags({})[0].names) == TAGS


def test_a_word_list_has_labels_and_weights_where_there_are_any(tmp_path: Path) -> None:
    words = [("重庆", None, None), ("李明", "PER", None), ("药店", None, 2.5), ("渝中区", "LOC", 1234567.0)]
    save_lexicon(Lexicon(words), tmp_path / "lexicon.txt")
    lines = (tmp_path / "lexicon.txt").read_text("utf-8").splitlines()
    assert sorted(lines) == sorted(["重庆", "李明\tPER", "药店\t\t2.5", "渝中区\tLOC\t1.234567e+06"])


def test_digests_are_of_the_files_of_the_model_alone(tmp_path: Path) -> None:
    for name in ("b", "sub/a", "checkpoint.safetensors", ".hidden", "sub/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    record(tmp_path)
    recorded = json.loads((tmp_path / RECORD).read_text("utf-8"))
    assert recorded == {name: hashlib.sha256(name.encode()).hexdigest() for name in ("b", "sub/a")}
    assert list(faults(tmp_path)) == []
    (tmp_path / "b").unlink()
    (tmp_path / "c").touch()
    (tmp_path / "sub" / "a").write_text("x")
    assert list(faults(tmp_path)) == [
        "b: missing",
        "c: not there when the model was saved",
        "sub/a: changed since the model was saved",
    ]
    forget(tmp_path)
    forget(tmp_path)
    assert [fault.split(",")[0] for fault in faults(tmp_path)] == [f"{RECORD}: missing"]
    with pytest.raises(ModelError, match="nothing cannot be read: No such file"):
        digest(tmp_path / "nothing")
