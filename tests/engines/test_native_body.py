"""The kernel of a pretrained body: the same vectors as the module of torch, and the same entities."""

from ctypes import CDLL
from pathlib import Path

import numpy as np
import pytest
import torch

import hanlattice
import tiny
from hanlattice.embeddings.body import Body
from hanlattice.embeddings.body_files import LIMITS, VOCABULARY, Characters, Shape, save_files
from hanlattice.embeddings.body_folder import WEIGHTS as BODY_FILE
from hanlattice.embeddings.body_folder import save_body
from hanlattice.embeddings.own import Own
from hanlattice.engines.native.body import BodyKernel
from hanlattice.engines.shapes import BODY, BodyFiles
from hanlattice.errors import ConfigError, EngineError, ModelError
from hanlattice.inputs.batch import Batch, collate
from hanlattice.kernels import library
from hanlattice.model.weights import save_model
from hanlattice.pipeline import NER
from hanlattice.spans import ScoredSpan
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare
from untrained_flat import encoded

LEVELS = library.levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="no C compiler, or no processor with AVX2 or NEON")
SHAPE = Shape(layers=3, width=96, heads=3, window=20)
TEXT = "李明在北京工作,王小红说人和药店很好A"


def random_body(shape: Shape, known: Characters) -> Body:
    torch.manual_seed(0)
    body = Body(shape, len(known)).eval()
    for name, parameter in body.named_parameters():  # larger than in training, so that attention is not uniform
        torch.nn.init.normal_(parameter, mean=float("norm.weight" in name), std=0.15)
    return body


@pytest.fixture(params=LEVELS)
def kernels(request: pytest.FixtureRequest) -> CDLL:
    return library.opened(request.param)


KNOWN = Characters("".join(tiny.vectors().chars.names))


def kernel_of(body: Body, kernels: CDLL, *, int8: bool = False) -> BodyKernel:
    weights = {f"{BODY}{name}": tensor.numpy() for name, tensor in body.state_dict().items()}
    return BodyKernel(weights, BodyFiles(body.shape, KNOWN), int8=int8, library=kernels)


def by_torch(body: Body, texts: list[str]) -> np.ndarray:
    """The vectors of all characters by the module."""
    own, ner = Own(body, KNOWN).eval(), prepare(tiny.config(), "cpu", Silent()).ner
    batch: Batch = collate(encoded(ner, texts))
    with torch.inference_mode():
        found: np.ndarray = own(batch)[batch.mask].numpy()
    return found


# Every number of characters up to more than a tile of queries and a vector of keys, and all kinds of windows.
LENGTHS = [*range(1, 8), 15, 16, 17, 18, 19, 27, 35, 36, 37, 55]
GIVEN = [[(TEXT * 4)[:n]] for n in LENGTHS] + [[(TEXT * 4)[i : i + n] for i, n in enumerate(LENGTHS)] * 3]


@pytest.mark.parametrize("texts", GIVEN, ids=lambda texts: f"{len(texts)} of {len(texts[0])}")
def test_the_same_vectors(texts: list[str], kernels: CDLL) -> None:
    body = random_body(SHAPE, KNOWN)
    found = kernel_of(body, kernels).read(texts)
    np.testing.assert_allclose(found, by_torch(body, texts), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", [Shape(1, 32, 1, 10), Shape(2, 128, 2, 128)], ids=str)
def test_other_sizes(shape: Shape, kernels: CDLL) -> None:
    body, texts = random_body(shape, KNOWN), [TEXT, TEXT * 8, "李"]
    np.testing.assert_allclose(kernel_of(body, kernels).read(texts), by_torch(body, texts), atol=2e-5, rtol=1e-4)


def test_in_8_bits(kernels: CDLL) -> None:
    body, texts = random_body(SHAPE, KNOWN), GIVEN[-1]
    if not kernels.int8_step():
        with pytest.raises(EngineError, match="no int8 instructions"):
            kernel_of(body, kernels, int8=True)
        return
    found, expected = kernel_of(body, kernels, int8=True).read(texts), by_torch(body, texts)
    error = np.sqrt(((found - expected) ** 2).mean())
    assert 0 < error < 0.05 * 127 / kernels.int8_largest() * expected.std()


def test_no_texts(kernels: CDLL) -> None:
    assert kernel_of(random_body(SHAPE, KNOWN), kernels).read([]).shape == (0, SHAPE.width)


@pytest.mark.parametrize("shape", [Shape(1, 96, 24, 10), Shape(1, 40, 1, 10)], ids=str)
def test_sizes_that_the_kernels_cannot_run(shape: Shape, kernels: CDLL) -> None:
    with pytest.raises(EngineError, match="load the model with engine='torch'"):
        kernel_of(random_body(shape, KNOWN), kernels)


@pytest.mark.parametrize("name", LIMITS)
def test_both_sides_of_the_limits_of_sizes(name: str) -> None:
    """A file with larger sizes would take unlimited memory or time before its weights are compared with them."""
    sizes = {"layers": 1, "width": 65_536, "heads": 1, "window": 4}
    least, most = LIMITS[name]
    for number in (least, most // 2):  # half, as the width is a multiple of twice the heads
        Shape(**{**sizes, name: number})
    for number, bound in ((least - 1, f"at least {least}"), (most + 1, f"at most {most:,}")):
        with pytest.raises(ConfigError, match=f"{name} must be {bound}, not {number}"):
            Shape(**{**sizes, name: number})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights over a pretrained body; its window is longer than that of the body."""
    folder = tmp_path_factory.mktemp("native-body")
    save_files(folder / "body", SHAPE, KNOWN)
    save_body(folder / "body" / BODY_FILE, random_body(SHAPE, KNOWN), half=False, steps=1)
    chosen = {
        "embedding": {"name": "own", "path": str(folder / "body")},
        "encoder": {"d_model": 32, "heads": 4, "d_feed_forward": 40},
    }
    ner = prepare(tiny.config().with_settings(chosen), "cpu", Silent()).ner
    for name, parameter in ner.tagger.named_parameters():
        if not name.startswith(BODY):
            torch.nn.init.normal_(parameter, std=2.0 if "emission" in name else 0.3)
    save_model(folder / "model", ner.tagger, ner.vocabulary, ner.lexicon, ner.config, precision="int8")
    return folder / "model"


TEXTS = [*(document.text for document in tiny.documents()), TEXT * 3, "", "李"]


def found(ner: NER, texts: list[str]) -> list[list[ScoredSpan]]:
    return [list(spans) for spans in ner.engine.find(encoded(ner, texts))]


def test_the_same_entities(model: Path) -> None:
    native, modules = (hanlattice.load(model, engine=engine) for engine in ("native", "torch"))
    expected = found(modules, TEXTS)
    assert sum(map(len, expected)) > 20
    for spans, others in zip(found(native, TEXTS), expected, strict=True):
        assert [span[:3] for span in spans] == [span[:3] for span in others]
        np.testing.assert_allclose([s.score for s in spans], [s.score for s in others], atol=2e-4)


def test_int8_and_threads(model: Path) -> None:
    one, two = (hanlattice.load(model, engine="native", threads=threads) for threads in (1, 2))
    assert found(one, TEXTS * 40) == found(two, TEXTS * 40)
    if library.supports_int8():
        in_8_bits = found(hanlattice.load(model, engine="native", int8=True), TEXTS)
        assert in_8_bits != found(one, TEXTS)  # other scores
        equal = sum(
            [s[:3] for s in a] == [s[:3] for s in b] for a, b in zip(in_8_bits, found(one, TEXTS), strict=True)
        )
        assert equal > 0.7 * len(TEXTS)


def test_auto_chooses_the_kernels(model: Path) -> None:
    assert hanlattice.api.open_model(model).engine == "native"


def test_numpy_says_that_it_does_not_run_a_body(model: Path) -> None:
    with pytest.raises(EngineError, match="numpy does not run a pretrained body"):
        hanlattice.load(model, engine="numpy")


def test_a_broken_vocabulary_of_the_body_is_named(model: Path) -> None:
    path = model / "embedding" / VOCABULARY
    whole = path.read_bytes()
    try:
        path.write_text('{"characters": "李明"}', encoding="utf-8")
        with pytest.raises(ModelError, match=r"embedding\.language_model\.embedding\.weight has the shape"):
            hanlattice.load(model, engine="native")
        path.unlink()
        with pytest.raises(ModelError, match=f"{VOCABULARY}: missing"):
            hanlattice.load(model, engine="native")
    finally:
        path.write_bytes(whole)
