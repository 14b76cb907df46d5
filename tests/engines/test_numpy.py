"""The numpy engine: the same numbers as the modules of torch, and the same entities as the other engines."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hanlattice
import tiny
from hanlattice.engines.folding import Settings
from hanlattice.engines.numpy import flat as engine
from hanlattice.engines.numpy.flat import FlatArrays
from hanlattice.engines.numpy.tagger import NumpyTagger
from hanlattice.errors import EngineError, ModelError
from hanlattice.model.folder import CONFIG, DEFAULT
from hanlattice.pipeline import NER
from untrained_flat import TEXTS, VARIANTS, emissions, encoded, untrained


def arrays_of(ner: NER) -> FlatArrays:
    weights = {name: tensor.numpy() for name, tensor in ner.tagger.state_dict().items()}
    given = {k: v for k, v in ner.config.encoder.settings.items() if k in ("residual", "scaled", "origin")}
    return FlatArrays(weights, Settings(ner.config.text.window, **given))


@pytest.mark.parametrize("scores_at_once", [engine.SCORES_AT_ONCE, 3000])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_same_emissions(
    variant: dict[str, object], scores_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all queries in one block, and with blocks of a few queries."""
    monkeypatch.setattr(engine, "SCORES_AT_ONCE", scores_at_once)
    ner = untrained(**variant)
    ner.lexicon.update(["人和药店的长江大桥局很好", "长江大桥局很好,赵子龙说人和药店"])
    arrays = arrays_of(ner)
    texts = [text for text in [*TEXTS, TEXTS[4][:64], TEXTS[4][3:40]] if 0 < len(text) <= 64]
    for some in (texts, texts[:1], texts[1:2], texts[-1:]):
        sentences = encoded(ner, some)
        np.testing.assert_allclose(arrays.read(sentences), emissions(ner, sentences), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("convention", ["open", "names"])
@pytest.mark.parametrize("batch_size", [1, 32])
def test_the_same_entities(convention: str, batch_size: int) -> None:
    folder = tiny.two_conventions()
    expected = hanlattice.load(folder, engine="torch", convention=convention)
    found = hanlattice.load(folder, engine="numpy", convention=convention)
    assert isinstance(found.engine, NumpyTagger)
    texts = [*TEXTS, *(document.text for document in tiny.documents()[:20])]
    pairs = list(zip(expected(texts), found.pipe(texts, batch_size=batch_size), strict=True))
    assert sum(len(a.entities) for a, _ in pairs) > 20
    for a, b in pairs:
        assert a.spans == b.spans
        np.testing.assert_allclose(tiny.scores(a), tiny.scores(b), atol=1e-3)


def test_the_packaged_model_needs_numpy_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    document = hanlattice.load(engine="numpy")("雷军在北京发布小米14")
    assert [(e.text, e.label) for e in document.entities][:2] == [("雷军", "PER"), ("北京", "LOC")]
    with pytest.raises(EngineError, match=r"hanlattice export FOLDER --model default .with: pip install") as error:
        hanlattice.load(engine="onnx")
    assert "\n" not in str(error.value)


def test_the_packaged_model_holds_no_graph() -> None:
    """ONNX Runtime is an extra; `hanlattice export` writes a graph for it."""
    assert not list(DEFAULT.glob("*.onnx"))


def test_int8_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="numpy engine has no int8 products: the model runs in float32"):
        hanlattice.load(engine="numpy", int8=True)


def test_weights_whose_products_overflow_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "model"
    folder.mkdir()
    for path in tiny.two_conventions().iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    weights = load_file(folder / "model.safetensors")
    for name in ("encoder.char_projection.weight", "encoder.layers.0.attention.query.weight"):
        weights[name] = np.full_like(weights[name], 1e30, np.float32)
    save_file(weights, folder / "model.safetensors")
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ModelError, match="products of them are not finite") as error,
    ):
        hanlattice.load(folder, engine="numpy")
    assert not isinstance(error.value, EngineError)
    assert str(folder) in str(error.value)


def test_another_encoder_needs_another_engine(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    hanlattice.train(output=folder, settings=tiny.settings(epochs=1) | {"encoder": {"name": "none"}})
    assert 'name = "none"' in (folder / CONFIG).read_text("utf-8")
    with pytest.raises(EngineError, match="neither C kernels nor numpy run the encoder 'none'"):
        hanlattice.load(folder, engine="numpy")
