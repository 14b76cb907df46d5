"""The kernels in C: the same numbers as the modules of torch, on every processor that can run them."""

import platform
import shutil
from ctypes import CDLL
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

import hanlattice
import tiny
from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.folding import Settings
from hanlattice.engines.native import tagger
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.flat import FlatKernel
from hanlattice.engines.numpy.tagger import NumpyTagger
from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels import library
from hanlattice.model.folder import WEIGHTS
from hanlattice.model.weights import save_weights
from hanlattice.pipeline import NER
from hanlattice.spans import ScoredSpan
from untrained_flat import TEXTS, VARIANTS, emissions, encoded, untrained

LEVELS = library.levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="no C compiler, or no processor with AVX2 or NEON")


@pytest.fixture(params=LEVELS)
def kernels(request: pytest.FixtureRequest) -> CDLL:
    return library.opened(request.param)


def kernel_of(ner: NER, library: CDLL, *, int8: bool = False) -> FlatKernel:
    weights = {name: tensor.numpy() for name, tensor in ner.tagger.state_dict().items()}
    given = {k: v for k, v in ner.config.encoder.settings.items() if k in ("residual", "scaled", "origin")}
    settings = Settings(ner.config.text.window, **given)
    return FlatKernel(weights, settings, int8=int8, library=library)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_the_same_emissions(variant: dict[str, object], kernels: CDLL) -> None:
    ner = untrained(**variant)
    # With 16 characters, the last length that has a row of its own, and with more.
    ner.lexicon.update(["人和药店的长江大桥局很好", "长江大桥局很好,赵子龙说人和药店"])
    ner.lexicon.update(["长江大桥局很好,赵子龙说人和药店的", "人和药店的长江大桥局很好,赵子龙说人和"])
    kernel = kernel_of(ner, kernels)
    texts = [text for text in [*TEXTS, TEXTS[4][:64], TEXTS[4][3:40]] if 0 < len(text) <= 64]
    for some in (texts, texts[:1], texts[1:2], texts[-1:], texts * 20):
        sentences = encoded(ner, some)
        found = kernel.read(sentences)
        expected = emissions(ner, sentences)
        assert sentences.first_char.tolist() == [0, *np.cumsum([len(text) for text in some])]
        np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-4, rtol=1e-4)


def test_emissions_and_tags_in_one_call(kernels: CDLL) -> None:
    """Also for the first texts, for which memory and the encodings of word lengths are missing."""
    ner = untrained()
    ner.lexicon.update(["人和药店的长江大桥局很好", "长江大桥局很好,赵子龙说人和药店"])
    one, other = kernel_of(ner, kernels), kernel_of(ner, kernels)
    rules = TagRules(("A",), "BMES")
    draw = np.random.default_rng(0).standard_normal
    n, width = len(rules.names), one.read(encoded(ner, TEXTS[:1])).shape[1]
    assert n <= width
    chain = ChainKernel(rules, TagScores(draw(n), draw((n, n)), draw(n)), library=kernels)
    texts = [text for text in TEXTS if 0 < len(text) <= 64]
    for some in (texts[:1], texts, texts * 20, texts[-1:], []):
        sentences = encoded(ner, some)
        expected = chain.read(one.read(sentences), sentences)
        for _ in range(2):
            assert [*other.find(sentences, "", chain)] == [*expected]
    sentences = encoded(ner, texts)
    assert any(map(len, chain.read(one.read(sentences), sentences)))
    with pytest.raises(EngineError, match="longer than the 64 characters that the model reads at once"):
        other.find(encoded(ner, ["人" * 65]), "", chain)


@pytest.mark.parametrize("variant", [VARIANTS["paper"], VARIANTS["code"], VARIANTS["sizes of the packaged model"]])
def test_in_8_bits(variant: dict[str, object], kernels: CDLL) -> None:
    ner = untrained(**variant)
    if not kernels.int8_step():
        with pytest.raises(ModelError, match="no int8 instructions"):
            kernel_of(ner, kernels, int8=True)
        return
    sentences = encoded(ner, [text for text in TEXTS if 0 < len(text) <= 64] * 30)
    expected = emissions(ner, sentences)
    found = kernel_of(ner, kernels, int8=True).read(sentences)
    again = kernel_of(ner, kernels, int8=True).read(sentences)
    assert (found == again)[:, : expected.shape[1]].all()  # nothing is read that was not written
    error = found[:, : expected.shape[1]] - expected
    assert 0 < np.sqrt((error**2).mean()) < 0.03 * 127 / kernels.int8_largest() * expected.std()


def test_values_that_are_all_alike_in_8_bits(kernels: CDLL) -> None:
    """Their sums are the largest that attention can have."""
    if not kernels.int8_step():
        pytest.skip("this instruction set has no int8 products")
    ner = untrained(**VARIANTS["scaled"])  # whose weights are alike too
    sentences = encoded(ner, ["鬱" * 64] * 3)
    expected = emissions(ner, sentences)
    found = kernel_of(ner, kernels, int8=True).read(sentences)[:, : expected.shape[1]]
    assert np.abs(found - expected).max() < 0.1 * expected.std()


SUBNORMAL = 0x12  # an operand or a result was subnormal: FE_DENORMAL | FE_UNDERFLOW


@pytest.mark.parametrize("int8", [False, True])
def test_attention_has_no_subnormal_weights(kernels: CDLL, int8: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With them, Intel processors take several times as long."""
    monkeypatch.setattr(np, "empty", np.zeros)  # the last block computes rows of uninitialised memory too
    if platform.machine() not in ("x86_64", "AMD64") or not hasattr(CDLL(None), "fetestexcept"):
        pytest.skip("the flags of subnormal numbers are those of x86 and the C library")
    if int8 and not kernels.int8_step():
        pytest.skip("no int8 products")
    ner = untrained()
    for name, parameter in ner.tagger.named_parameters():
        if "attention.query" in name:
            parameter.data *= 100  # most weights are far smaller than the largest one
    kernel = kernel_of(ner, kernels, int8=int8)
    sentences = encoded(ner, [text for text in TEXTS if 0 < len(text) <= 64])
    flags = CDLL(None)
    flags.feclearexcept(SUBNORMAL)
    kernel.read(sentences)
    assert not flags.fetestexcept(SUBNORMAL)


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal up to what int8 loses."""
    error = found[:, : expected.shape[1]] - expected
    assert np.sqrt((error**2).mean()) < 0.03 * expected.std()


@pytest.mark.parametrize("int8", [False, True])
def test_all_numbers_of_characters_and_parts(kernels: CDLL, int8: bool) -> None:
    """Attention works on tiles of 3 queries, 4 keys and 4 parts: all remainders, and several blocks."""
    if int8 and not kernels.int8_step():
        pytest.skip("no int8 products")
    ner = untrained(d_model=6 * kernels.lanes())
    ner.lexicon.update(["长江大桥", "大桥局很好", "很好"])
    kernel = kernel_of(ner, kernels, int8=int8)
    sentences = encoded(ner, [TEXTS[4][:n] for n in (*range(1, 15), 24, 25, 62, 63, 64)])
    n_keys = np.diff(sentences.first_char) + np.diff(sentences.first_word)
    assert {*(n_keys % 4)} == {0, 1, 2, 3}
    found, expected = kernel.read(sentences), emissions(ner, sentences)
    if int8:
        near(found, expected)
    else:
        np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("zeros", [("query", "u", "v"), ("key", "u"), ("position", "v"), ("value",), ("",)])
def test_int8_of_attention_with_zeros(kernels: CDLL, zeros: tuple[str, ...]) -> None:
    """The largest number, by which others are divided, is 0."""
    if not kernels.int8_step():
        pytest.skip("no int8 products")
    ner = untrained()
    for name, parameter in ner.tagger.named_parameters():
        if any(f"attention.{part}" in name for part in zeros):
            torch.nn.init.zeros_(parameter)
    sentences = encoded(ner, [text for text in TEXTS if 0 < len(text) <= 64])
    near(kernel_of(ner, kernels, int8=True).read(sentences), emissions(ner, sentences))


def test_int8_of_a_query_with_thousands_of_keys(kernels: CDLL) -> None:
    """All weights of a query are equal, and all values large: the largest sum of int16 products."""
    if not kernels.int8_step():
        pytest.skip("no int8 products")
    ner = untrained()
    for name, parameter in ner.tagger.named_parameters():
        if any(f"attention.{part}" in name for part in ("query", "u", "v")):
            torch.nn.init.zeros_(parameter)
        if "attention.value.bias" in name:
            torch.nn.init.constant_(parameter, 1000.0)
    sentences = encoded(ner, [TEXTS[0], TEXTS[3]])
    n = 9000
    repeated = {name: np.resize(getattr(sentences, name), n) for name in ("words", "start", "end", "word_labels")}
    many = sentences.with_arrays(**repeated, first_word=np.array([0, n - 2, n]))
    many.start[:], many.end[:] = 0, 1 + np.arange(n) % 5
    exact = kernel_of(ner, kernels).read(many)
    near(kernel_of(ner, kernels, int8=True).read(many), exact)


def without_words(first: np.ndarray) -> Sentences:
    """Sentences of unknown characters that begin at these places."""
    chars, nothing = np.ones(first[-1], np.int64), np.zeros(0, np.int64)
    return Sentences(chars, chars, first, *(nothing,) * 4, np.zeros_like(first), [""] * (len(first) - 1))


def test_chains(kernels: CDLL) -> None:
    """The best tags and their probabilities, against those of numpy."""
    draw = np.random.default_rng(0)
    for labels, scheme, constrained in (
        (["A"], "BIO", True),
        (["A", "B", "C", "D"], "BMES", True),
        (["A"], "BMES", False),
    ):
        rules = TagRules(labels, scheme)
        n = len(rules.names)
        forbidden = [np.where(x | (not constrained), 0, -np.inf) for x in (rules.start, rules.pair, rules.end)]
        scores = TagScores(*((draw.normal(size=x.shape) + x).astype(np.float32) for x in forbidden))
        lengths = [1, 2, 0, 7, 30, 3, 0]
        first = np.cumsum([0, *lengths])
        flat = np.zeros((first[-1], 32), np.float32)
        flat[:, :n] = draw.normal(size=(first[-1], n)) * 3
        padded = np.zeros((len(lengths), max(lengths), n), np.float32)
        for i, (a, b) in enumerate(pairwise(first)):
            padded[i, : b - a] = flat[a:b, :n]
        real = [i for i, length in enumerate(lengths) if length]
        potentials = Potentials(padded[real], scores.pair, scores.start, scores.end, np.array(lengths)[real])
        expected: list[list[ScoredSpan]] = [[] for _ in lengths]
        for i, spans in zip(real, rules.best(potentials), strict=True):
            expected[i] = spans
        found = ChainKernel(rules, scores, library=kernels).read(flat, without_words(first))
        assert sum(map(len, expected)) > 5
        assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in expected]
        p, q = ([s.score for spans in some for s in spans] for some in (found, expected))
        np.testing.assert_allclose(p, q, atol=1e-6)


def test_confidences_of_very_low_scores(kernels: CDLL) -> None:
    """The places of tags that do not exist have the score 0, far above those of the others."""
    rules = TagRules(("A", "B"), "BMES")
    n, draw = len(rules.names), np.random.default_rng(0)
    scores = TagScores(*(np.where(x, 0, -np.inf).astype(np.float32) for x in (rules.start, rules.pair, rules.end)))
    flat = np.zeros((6, 32), np.float32)
    flat[:, :n] = draw.normal(size=(6, n)) * 3
    chain, sentences = ChainKernel(rules, scores, library=kernels), without_words(np.array([0, 6]))
    expected = [*chain.read(flat, sentences)]
    assert any(expected)
    for shift in (-88, -88.5, -89, -1e4, 1e4):
        shifted = flat + np.where(np.arange(32) < n, np.float32(shift), 0).astype(np.float32)
        found = [*chain.read(shifted, sentences)]
        assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in expected]
        p, q = ([s.score for spans in some for s in spans] for some in (found, expected))
        np.testing.assert_allclose(p, q, atol=2e-3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that the kernels can read, its tables in 8 bits."""
    place = tmp_path_factory.mktemp("native") / "model"
    given = tiny.settings(epochs=8)
    given["encoder"] |= {"d_model": 32, "heads": 4}
    hanlattice.train(output=place, settings=given)
    save_weights(hanlattice.load(place, engine="torch").tagger.state_dict(), place / WEIGHTS, precision="int8")
    return place


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("at_once", [1, 50, 4000])
def test_the_same_entities(folder: Path, threads: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger, "NODES_OF_A_THREAD", 20)
    monkeypatch.setattr(tagger, "NODES_AT_ONCE", at_once)
    torchs = hanlattice.load(folder, engine="torch")
    natives = hanlattice.load(folder, engine="native", threads=threads)
    texts = TEXTS * 5
    for a, b in zip(torchs(texts), natives(texts), strict=True):
        assert a.spans == b.spans
        assert np.allclose(tiny.scores(a), tiny.scores(b), atol=1e-3)
    assert sum(len(d.entities) for d in natives(texts)) > 30
    for ner in (torchs, natives):
        ner.lexicon.update(["人和药店的长江大桥局很好,赵子龙说" * 3, "天气很好"])
    assert torchs(TEXTS[4]).spans == natives(TEXTS[4]).spans


def test_chosen_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(hanlattice.load(folder).engine, tagger.NativeTagger)
    monkeypatch.setattr(tagger, "FlatKernel", _not_compiled)
    assert isinstance(hanlattice.load(folder).engine, NumpyTagger)
    with pytest.raises(ModelError, match=r"python -m hanlattice[.]kernels[.]compiling"):
        hanlattice.load(folder, engine="native")


def _not_compiled(*_: object, **__: object) -> None:
    raise EngineError(library.MISSING)


def test_in_8_bits_where_the_settings_say_so(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "model")
    settings = tmp_path / "model" / "config.toml"
    text = settings.read_text(encoding="utf-8")
    assert 'precision = "float32"' in text.split("[prediction]")[1]
    settings.write_text(text.replace('[prediction]\nprecision = "float32"', '[prediction]\nprecision = "int8"'))
    if not library.supports_int8():
        with pytest.warns(UserWarning, match="runs in float32"):
            hanlattice.load(tmp_path / "model")
        return
    engine = hanlattice.load(tmp_path / "model").engine
    assert isinstance(engine, tagger.NativeTagger)
    assert engine.flat.int8
    other = hanlattice.load(tmp_path / "model", int8=False).engine
    assert isinstance(other, tagger.NativeTagger)
    assert not other.flat.int8


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"decoder": {"name": "biaffine"}}, "neither C kernels nor numpy run the decoder 'biaffine'"),
        ({"encoder": {"d_model": 32, "heads": 4, "layers": 2}}, "run encoder.layers = 1 only"),
        ({"encoder": {"d_model": 16, "heads": 1, "d_feed_forward": 24}}, "need heads that divide"),
    ],
    ids=["decoder", "layers", "sizes"],
)
def test_what_it_does_not_read(settings: dict[str, dict[str, object]], reason: str, tmp_path: Path) -> None:
    given = tiny.settings(epochs=1)
    for part, changes in settings.items():
        given[part] = changes if "name" in changes else given[part] | changes
    hanlattice.train(output=tmp_path / "model", settings=given)
    if "need heads" in reason and library.require_kernels().lanes() == 8:
        pytest.skip("16 features fill whole vectors on this processor")
    with pytest.raises(ModelError, match=reason):
        hanlattice.load(tmp_path / "model", engine="native")
    assert hanlattice.load(tmp_path / "model")("王小红在北京").text  # another engine reads it


def test_tables_that_do_not_fit(folder: Path, tmp_path: Path) -> None:
    """In C nobody would notice."""
    shutil.copytree(folder, tmp_path / "model")
    state = hanlattice.load(folder, engine="torch").tagger.state_dict()
    state["embedding.chars.weight"] = state["embedding.chars.weight"][:-1]
    save_weights(state, tmp_path / "model" / WEIGHTS, precision="int8")
    with pytest.raises(ModelError, match=r"weights do not fit .*embedding[.]chars[.]weight has"):
        hanlattice.load(tmp_path / "model", engine="native")
