"""Run the kernels of a wheel on another processor or C library, and compare their results with those of numpy:

    python scripts/try_kernels.py MANYLINUX_AARCH64.whl --runner "qemu-aarch64 -L /usr/aarch64-linux-gnu"
    python scripts/try_kernels.py MUSLLINUX_X86_64.whl --runner /lib/ld-musl-x86_64.so.1

The runner starts a program of that platform (packages qemu-user and libc6-arm64-cross, or musl, of Debian). Python
runs here; each call of a kernel runs in a process of its own, from copies of the memory that the call reads. The
numbers are those of three random FLATs, of linear chains, and of searches in a trie, drawn from a fixed seed. The
entities of the packaged linear tagger are compared with those of the kernels here. Needs zig (package ziglang).
"""

import argparse
import ctypes
import shlex
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from itertools import chain as chained
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import hanlattice
from hanlattice.benchmark import random_text, split_text
from hanlattice.decoders.structs.decoding import Potentials
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.folding import Affine, Settings
from hanlattice.engines.linear import tables
from hanlattice.engines.linear import tagger as linear
from hanlattice.engines.native import chain, flat, layers
from hanlattice.engines.numpy.flat import FlatArrays
from hanlattice.inputs import encoded
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.compiling import BUILDS, TARGETS, library
from hanlattice.lexicon import trie
from hanlattice.lexicon.matches import joined
from hanlattice.model.folder import ModelFolder

DRIVER = Path(__file__).with_name("call_kernel.c")
MOST_OF_INT8 = 0.03  # with numbers of up to 127, see try_flat
WINDOW, LENGTHS = 40, (1, 7, 40, 23)
VARIANTS: tuple[dict[str, Any], ...] = (
    {"residual": "input", "heads": 4, "d": 32},
    {"residual": "self", "heads": 8, "d": 64, "origin": 90, "scaled": True},
    {"residual": "input", "heads": 1, "d": 32},
)
_arrays: dict[int, np.ndarray] = {}


def remembered(memory: np.ndarray | bytearray | None) -> int:
    """As :func:`hanlattice.kernels.library.pointer`; also remembers the memory, so that it can be copied."""
    if memory is None:
        return 0
    array = np.frombuffer(memory, np.uint8) if isinstance(memory, bytearray) else memory
    _arrays[array.ctypes.data] = array
    return int(array.ctypes.data)


class RemoteLibrary:
    """The functions of a compiled library, each call of which runs in a process that ``runner`` starts."""

    def __init__(self, path: Path, driver: Path, runner: Sequence[str]):
        self._command = [*runner, str(driver), str(path)]
        self.tables: list[ctypes.Array[Any]] = []  # of pointers

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            return self._call(name, arguments)

        return call

    def _call(self, name: str, arguments: Sequence[Any]) -> int:
        blocks: dict[int, tuple[int, bool]] = {}
        words = []
        for argument in arguments:
            thing = getattr(argument, "_obj", argument)  # what byref refers to
            if isinstance(thing, ctypes.Structure):
                self._add(ctypes.addressof(thing), ctypes.sizeof(thing), True, blocks)
                words.append(ctypes.addressof(thing))
            else:
                words.append(thing or 0)
                self._follow(words[-1], blocks)
        data = struct.pack("<32s9QQ", name.encode(), *words, *[0] * (9 - len(words)), len(blocks))
        for address, (size, pointers) in blocks.items():
            data += struct.pack("<3Q", address, size, pointers) + ctypes.string_at(address, size)
        with tempfile.TemporaryDirectory() as folder:
            call, result = Path(folder) / "call", Path(folder) / "result"
            call.write_bytes(data)
            subprocess.run([*self._command, str(call), str(result)], check=True)
            found = result.read_bytes()
        at = 8
        for address, (size, pointers) in blocks.items():
            if not pointers:
                ctypes.memmove(address, found[at : at + size], size)
            at += size
        return int(struct.unpack_from("<q", found)[0])

    def _add(self, address: int, size: int, pointers: bool, blocks: dict[int, tuple[int, bool]]) -> None:
        blocks[address] = (size, pointers)
        if pointers:
            for word in struct.unpack(f"<{size // 8}Q", ctypes.string_at(address, size)):
                self._follow(word, blocks)

    def _follow(self, word: int, blocks: dict[int, tuple[int, bool]]) -> None:
        """Add the memory at an address, if there is any."""
        table = next((table for table in self.tables if ctypes.addressof(table) == word), None)
        if word in blocks:
            return
        if table is not None:
            self._add(word, ctypes.sizeof(table), True, blocks)
        elif word in _arrays:
            self._add(word, _arrays[word].nbytes, False, blocks)


def random_weights(draw: np.random.Generator, heads: int, d: int, residual: str) -> dict[str, np.ndarray]:
    """The weights of a FLAT with random numbers."""

    def linear(name: str, n_in: int, n_out: int) -> dict[str, np.ndarray]:
        return {f"{name}.weight": normal(n_out, n_in), f"{name}.bias": normal(n_out)}

    def normal(*shape: int) -> np.ndarray:
        return draw.normal(scale=0.2, size=shape).astype(np.float32)

    layer, d_in, d_word = "encoder.layers.0.", 17, 9
    weights = {
        "embedding.chars.weight": normal(30, 10),
        "embedding.bigrams.weight": normal(30, 7),
        "encoder.words.table.weight": normal(20, d_word),
        "encoder.words.composition.length.weight": normal(17, d_word),
        "encoder.words.composition.label.weight": normal(5, d_word),
        f"{layer}attention.u": normal(heads, d // heads),
        f"{layer}attention.v": normal(heads, d // heads),
        **linear("encoder.words.composition.project", 3 * d_in, d_word),
        **linear("encoder.char_projection", d_in, d),
        **linear("encoder.word_projection", d_word, d),
        **linear("encoder.distances.fuse", 4 * d, d),
        **linear(f"{layer}feed_forward.inner", d, 50),
        **linear(f"{layer}feed_forward.outer", 50, d),
        **linear("decoder.emission", d, 9),
    }
    for name in ("query", "key", "value", "position", *(("output",) if residual == "self" else ())):
        weights |= linear(f"{layer}attention.{name}", d, d)
    for name in ("attention_norm", "feed_forward_norm"):
        weights |= {f"{layer}{name}.weight": 1 + normal(d), f"{layer}{name}.bias": normal(d)}
    return weights


def random_sentences(draw: np.random.Generator) -> Sentences:
    """Sentences of different lengths with random words, some of them without words."""
    start, end, counts = [], [], []
    for n in LENGTHS:
        spans = sorted({(int(a), int(b)) for a, b in np.sort(draw.integers(0, n + 1, (2 * n - 2, 2))) if a < b})
        counts.append(len(spans))
        start += [a for a, _ in spans]
        end += [b for _, b in spans]
    n_chars, n_words = sum(LENGTHS), sum(counts)
    return Sentences(
        chars=draw.integers(0, 30, n_chars),
        bigrams=draw.integers(0, 30, n_chars),
        first_char=np.cumsum([0, *LENGTHS]),
        words=draw.integers(0, 20, n_words),
        start=np.array(start),
        end=np.array(end),
        word_labels=draw.integers(0, 5, n_words),
        first_word=np.cumsum([0, *counts]),
        texts=[""] * len(LENGTHS),
    )


def try_flat(remote: Any, int8: bool) -> float:
    """The largest difference of an emission between the kernel and numpy, which has float32.

    With int8 it is the root mean square of the differences, as a share of the standard deviation of the emissions.
    """
    draw, worst = np.random.default_rng(0), 0.0
    variant: Any
    for variant in VARIANTS:
        given = {k: v for k, v in variant.items() if k not in ("heads", "d")}
        settings = Settings(WINDOW, **given)
        weights = random_weights(draw, variant["heads"], variant["d"], variant["residual"])
        kernel = flat.FlatKernel(weights, settings, int8=int8, library=remote)
        remote.tables = [kernel._encodings]
        sentences = random_sentences(draw)
        expected = FlatArrays(weights, settings).read(sentences)
        found = kernel.read(sentences)[:, : expected.shape[1]]
        try_entities(remote, kernel, sentences)
        error = np.abs(found - expected)
        worst = max(worst, float(np.sqrt((error**2).mean()) / expected.std() if int8 else error.max()))
    return worst


def try_entities(remote: Any, kernel: flat.FlatKernel, sentences: Sentences) -> None:
    """Emissions and tags in one call, compared with both steps one after the other.

    Raises:
        AssertionError: the entities differ.
    """
    rules, draw = TagRules(["A", "B"], "BMES"), np.random.default_rng(4)
    scores = TagScores(
        *(draw.normal(size=x.shape).astype(np.float32) for x in (rules.start, rules.pair, rules.end))
    )
    tags = chain.ChainKernel(rules, scores, library=remote)
    assert [*kernel.find(sentences, "", tags)] == [*tags.read(kernel.read(sentences), sentences)]


def try_products(remote: Any) -> None:
    """Products of int8, the largest numbers included.

    Raises:
        AssertionError: a sum is not exact.
    """
    draw, most = np.random.default_rng(3), remote.int8_largest()
    for rows, n_in in ((1, 3), (7, 50), (13, 160)):
        weight = draw.integers(-most, most + 1, (37, n_in)).astype(np.float32)
        x = draw.integers(-most, most + 1, (rows, n_in)).astype(np.float32)
        weight[:, 0], x[:, -1] = most, -most  # so all scales are 1
        kept: list[np.ndarray] = []

        def keep(array: np.ndarray, kept: list[np.ndarray] = kept) -> int:
            kept.append(layers.aligned(array))
            return remembered(kept[-1])

        layout = layers.Int8Layout.of(remote)
        layer = layers.linear(Affine(weight, np.zeros(37, np.float32)), 2 * remote.lanes(), layout, keep)
        given = np.zeros((rows + layers.ROWS, layer.n_in), np.float32)
        given[:rows, :n_in] = x
        out = np.zeros((len(given), layer.n_out), np.float32)
        scratch = np.zeros(2 * given.size, np.uint8), np.zeros(len(given), np.float32)
        arrays = (remembered(array) for array in (out, *scratch))
        remote.flat_linear(ctypes.byref(layer), remembered(given), rows, *arrays)
        assert np.array_equal(out[:rows, :37], x @ weight.T)


def try_chain(remote: Any) -> float:
    """The largest difference of a probability between the kernel and numpy.

    Raises:
        AssertionError: the kernel finds other spans.
    """
    draw = np.random.default_rng(1)
    rules = TagRules(["A", "B"], "BMES")
    n, width = len(rules.names), 16
    allowed = (rules.start, rules.pair, rules.end)
    scores = TagScores(*((draw.normal(size=x.shape) + np.where(x, 0, -np.inf)).astype(np.float32) for x in allowed))
    first = np.cumsum([0, *LENGTHS])
    emissions = np.zeros((first[-1], width), np.float32)
    emissions[:, :n] = draw.normal(scale=3, size=(first[-1], n))
    padded = np.zeros((len(LENGTHS), max(LENGTHS), n), np.float32)
    padded[np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]] = emissions[:, :n]
    expected = rules.best(Potentials(padded, scores.pair, scores.start, scores.end, np.array(LENGTHS)))
    chars, nothing = np.ones(first[-1], np.int64), np.zeros(0, np.int64)
    sentences = Sentences(chars, chars, first, *(nothing,) * 4, np.zeros_like(first), [""] * len(LENGTHS))
    found = chain.ChainKernel(rules, scores, library=remote).read(emissions, sentences)
    assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in expected]
    pairs = zip(chained.from_iterable(found), chained.from_iterable(expected), strict=True)
    return max(abs((a.score or 0.0) - (b.score or 0.0)) for a, b in pairs)


def try_trie(remote: Any) -> int:
    """The number of words that the kernel finds, as numpy does.

    Raises:
        AssertionError: the kernel finds other words.
    """
    draw = np.random.default_rng(2)
    alphabet = "重庆人和药店的长江大桥局很好赵子龙说😀"
    text = "".join(draw.choice(list(alphabet), 3000))
    words = sorted({text[i : i + int(n)] for i, n in enumerate(draw.integers(1, 9, 1500))})
    spelled = np.array([*map(ord, "".join(words))], np.uint32)
    built = trie.Trie.build(spelled, np.cumsum([0, *map(len, words)]))
    codes = np.array([*map(ord, text), 0], np.uint32)
    expected = joined([trie.in_order(built._by_length(codes, 0, len(text), 2, 10**6), 0)])
    found = built._by_kernel(remote, codes, 0, len(text), 2, 10**6)
    for name in ("start", "end", "word"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    with patch.object(trie, "kernels", lambda: remote):
        some = trie.Trie.of_text(spelled, np.cumsum([0, *map(len, words)]), codes[:100])
    own = joined([trie.in_order(some._by_length(codes, 0, 90, 2, 10**6), 0)])
    n = int(np.searchsorted(expected.start, 90))
    assert [*zip(*own, strict=True)] == [*zip(*(x[:n] for x in expected), strict=True)]
    return len(found.start)


def remember_memory() -> None:
    """Make the engines use :func:`remembered`."""
    for module in (flat, layers, chain, encoded, trie, linear, tables):
        module.pointer = remembered  # type: ignore[attr-defined]
    trie.pointers = remembered_rows  # type: ignore[assignment, attr-defined]


def remembered_rows(rows: np.ndarray) -> list[int]:
    """As :func:`hanlattice.kernels.library.pointers`; also remembers the rows."""
    return [remembered(row) for row in rows]


def try_linear(remote: Any) -> int:
    """The number of entities of the packaged linear tagger, as the kernels of this machine find them.

    Raises:
        AssertionError: the kernel finds other entities or confidences.
    """
    ner = hanlattice.load("lite")
    here = ner.engine
    assert isinstance(here, linear.LinearTagger)
    texts = split_text(random_text(ner.lexicon, 2000), 40, 40)
    sentences = Sentences(*ner.reader.read(texts, ner.lexicon).arrays, texts)  # so that its memory is remembered
    expected = list(here.find(sentences))
    with patch.object(tables, "require_kernels", lambda: remote):
        unpacked = tables.restored(ModelFolder.open("lite").weights("linear."), len(ner.labels))
    assert np.array_equal(unpacked.rows, here.tables.rows)
    with patch.object(linear, "require_kernels", lambda: remote):
        there = linear.LinearTagger(unpacked, ner.vocabulary, temperature=here.temperature)
    found = list(there.find(sentences))
    assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in expected]
    np.testing.assert_allclose([s.score for s in chained(*found)], [s.score for s in chained(*expected)], atol=1e-6)
    return sum(map(len, found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--runner", default="", help="command that starts a program of the platform")
    options = parser.parse_args()
    platform = options.wheel.stem.rsplit("-", 1)[1]
    target = TARGETS[platform]
    remember_memory()
    with tempfile.TemporaryDirectory() as folder:
        driver = Path(folder) / "call_kernel"
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig, "-dynamic", "-O1"]
        subprocess.run([*compiler, "-o", str(driver), str(DRIVER), "-ldl"], check=True)
        for level in BUILDS[target.machine]:
            name = library(level, target.system).name
            path = Path(folder) / name
            with zipfile.ZipFile(options.wheel) as wheel:
                path.write_bytes(wheel.read(f"hanlattice/kernels/{name}"))
            remote = RemoteLibrary(path, driver, shlex.split(options.runner))
            if not remote.processor_levels() >> list(BUILDS[target.machine]).index(level) & 1:
                print(f"{platform} {name}: not for this processor")
                continue
            emissions, probabilities, words = try_flat(remote, False), try_chain(remote), try_trie(remote)
            entities = try_linear(remote)
            int8 = most_of_int8 = 0.0
            if remote.int8_step():
                most_of_int8 = MOST_OF_INT8 * 127 / remote.int8_largest()
                try_products(remote)
                int8 = try_flat(remote, True)
            print(
                f"{platform} {name}: emissions within {emissions:.0e}, probabilities within {probabilities:.0e},"
                f" {words:,} words equal to those of numpy,"
                f" {entities:,} entities of the linear tagger equal;"
                + (f" int8 sums exact, int8 emissions within {100 * int8:.1f} %" if int8 else " no int8")
            )
            if emissions > 1e-4 or probabilities > 1e-6 or int8 > most_of_int8:
                sys.exit("the differences are larger than rounding explains")


if __name__ == "__main__":
    main()
