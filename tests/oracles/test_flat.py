"""FLAT with table look-ups against the formulas of the paper, with the same weights."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders import flat
from hanlattice.encoders.flat import QUERY_BLOCK as BLOCK
from hanlattice.encoders.flat import Flat, build_flat
from hanlattice.encoders.positions import FourDistances, Nodes, SelfMatched, sinusoid
from hanlattice.inputs.batch import Batch, Words
from oracles import naive_flat

D_IN, D_WORD, V = 5, 6, 30
TOLERANCE: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-5}  # the sines are taken in float32

Sentence = tuple[int, Sequence[tuple[int, int]]]  # characters, and (head, tail) of each word

# 重庆人和药店, in which 重庆, 人和药店 and 药店 are words.
DRUGSTORE: Sentence = (6, [(0, 1), (2, 5), (4, 5)])
BATCHES: dict[str, list[Sentence]] = {
    "one sentence": [DRUGSTORE],
    "lengths 2 common, 4 and 5 rare": [
        (7, [(0, 1), (1, 5), (2, 3), (5, 6)]),
        (7, [(0, 1), (1, 2), (2, 3)]),
        (3, [(0, 1)]),
        (6, [(1, 4), (4, 5)]),
        (2, []),
    ],
    "every length rare": [(12, [(3, 5)]), *[(12, [])] * 6],
    "more lengths rare than common": [(20, [(0, 1), (1, 3), (2, 6), (9, 16), (17, 19)]), *[(20, [(4, 5)])] * 9],
    "a word of 18 characters": [(20, [(1, 18), (1, 2), (17, 18)]), (4, [(0, 3)])],
    "no words": [(5, []), (3, [])],
    "one character": [(1, [])],
    "longer than a block of queries": [
        (2 * BLOCK + 9, [(i, i + 1) for i in range(0, 2 * BLOCK + 8, 3)]),
        (3, [(0, 2)]),
        *[(BLOCK + 1, [(0, 3), (BLOCK - 3, BLOCK)])] * 2,
    ],
}


def batch_of(sentences: Sequence[Sentence], seed: int = 0) -> tuple[Tensor, Batch]:
    """Character vectors, of padding too, and the rest of a batch."""
    n, m = max(n for n, _ in sentences), max(len(words) for _, words in sentences)
    draw = torch.Generator().manual_seed(seed)
    head, tail = torch.zeros(2, len(sentences), m, dtype=torch.long)
    for b, (_, words) in enumerate(sentences):
        for i, (first, last) in enumerate(sorted(words)):
            head[b, i], tail[b, i] = first, last
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    word_mask = torch.arange(m) < torch.tensor([len(words) for _, words in sentences])[:, None]
    ids = torch.randint(1, V, head.shape, generator=draw)
    chars = torch.zeros_like(mask, dtype=torch.long)
    x = torch.randn(len(sentences), n, D_IN, generator=draw, dtype=torch.float64)
    return x, Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), word_mask))


def encoder_of(**settings: Any) -> Flat:
    """A small encoder whose weights, biases and norms are all random."""
    torch.manual_seed(1)
    words = WordEmbedding(Table(torch.randn(V, D_WORD)))
    encoder = (
        build_flat(D_IN, words, **{"d_model": 12, "heads": 3, "d_feed_forward": 10, **settings}).double().eval()
    )
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return encoder


def nodes_of(batch: Batch) -> Nodes:
    return Nodes.of(batch.words.head, batch.words.tail, batch.mask.shape[1])


def gradients(encoder: Flat, x: Tensor, h: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """The gradients of everything, for a loss that weights every real output differently."""
    parameters = dict(encoder.named_parameters())
    weights = torch.linspace(-1, 1, h[mask].numel(), dtype=h.dtype).view(h[mask].shape)
    grads = torch.autograd.grad((h[mask] * weights).sum(), [x, *parameters.values()], allow_unused=True)
    return {k: g for k, g in zip(["x", *parameters], grads, strict=True) if g is not None}


def assert_same(encoder: Flat, sentences: Sequence[Sentence]) -> None:
    """Values and gradients equal those of the paper's formulas."""
    x, batch = batch_of(sentences)
    x.requires_grad_()
    ours = encoder(x, batch)
    theirs = naive_flat.flat(encoder, x, batch.mask, batch.words)
    assert_close(ours[batch.mask], theirs[batch.mask], **TOLERANCE)
    expected = gradients(encoder, x, theirs, batch.mask)
    found = gradients(encoder, x, ours, batch.mask)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert_close(gradient, expected[name], atol=2e-4, rtol=1e-4, msg=partial("{}: {}".format, name))


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("distances", ["four", "ends"])
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_formulas_of_the_paper(name: str, distances: str, layers: int) -> None:
    assert_same(encoder_of(distances=distances, layers=layers), BATCHES[name])


@pytest.mark.parametrize(
    "settings",
    [
        {"scaled": True},
        {"key_projection": False},
        {"output_projection": True},
        {"residual": "self"},
        {"origin": 20},
        {"layers": 3, "scaled": True, "output_projection": True, "residual": "self", "origin": 7},
    ],
    ids=str,
)
def test_equals_the_formulas_in_every_setting(settings: dict[str, object]) -> None:
    assert_same(encoder_of(**settings), BATCHES["lengths 2 common, 4 and 5 rare"])


@pytest.mark.parametrize(
    "settings",
    [
        {"distances": "heads"},
        {"trained_distances": 3},
        {"trained_distances": 50, "distances": "ends", "origin": 4},
        {"fusion": "linear"},
        {"fusion": "attention"},
        {"fusion": "gate", "distances": "ends"},
        {"hidden": "self_matched"},
        {"hidden": "distant", "hidden_beyond": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["lengths 2 common, 4 and 5 rare", "longer than a block of queries"])
def test_ablations_equal_their_formulas(settings: dict[str, object], name: str) -> None:
    assert_same(encoder_of(layers=2, **settings), BATCHES[name])


@pytest.mark.parametrize("fusion", ["attention", "gate"])
def test_one_distance_cannot_be_weighed(fusion: str) -> None:
    with pytest.raises(ValueError, match=f"fusion '{fusion}' weighs several distances, but distances 'heads' is"):
        encoder_of(fusion=fusion, distances="heads")


def test_a_character_sees_no_word_that_contains_it_under_msm() -> None:
    """药 in 重庆人和药店 sees neither 人和药店 nor 药店, which see it."""
    batch = batch_of([DRUGSTORE])[1]
    hidden = SelfMatched()(nodes_of(batch), slice(None))[0]
    assert hidden[4].nonzero().flatten().tolist() == [7, 8]
    assert hidden[0].nonzero().flatten().tolist() == [6]
    assert not hidden[6:].any()


@pytest.mark.parametrize("settings", [{}, {"layers": 2}, {"layers": 2, "scaled": True}], ids=str)
@pytest.mark.parametrize("name", BATCHES)
def test_recomputed_weights_are_equal(
    name: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attention weights of long sentences are recomputed in the backward pass."""
    monkeypatch.setattr(flat, "KEPT_WEIGHTS", 0)
    assert_same(encoder_of(**settings), BATCHES[name])


@pytest.mark.parametrize("layers", [1, 2])
def test_recomputed_weights_have_the_same_dropout(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = encoder_of(layers=layers, attention_dropout=0.5).train()
    x, batch = batch_of(BATCHES["longer than a block of queries"])
    found = []
    for kept in (flat.KEPT_WEIGHTS, 0):
        monkeypatch.setattr(flat, "KEPT_WEIGHTS", kept)
        torch.manual_seed(3)
        found.append(gradients(encoder, x.requires_grad_(), encoder(x, batch), batch.mask))
    assert_close(found[0], found[1])


def test_batches_have_common_and_rare_lengths() -> None:
    """Lengths looked up in the table of all distances, and lengths scored one by one."""

    def common(name: str) -> dict[int, bool]:
        nodes = nodes_of(batch_of(BATCHES[name])[1])
        return dict(zip(nodes.lengths.tolist(), nodes.common_kinds().tolist(), strict=True))

    assert common("lengths 2 common, 4 and 5 rare") == {1: True, 2: True, 4: False, 5: False}
    assert common("every length rare") == {1: True, 3: False}
    assert all(common("one sentence").values())


@pytest.mark.parametrize("name", BATCHES)
def test_all_nodes_as_queries(name: str) -> None:
    """The rows of words too, which no decoder reads, but a second layer does."""
    encoder = encoder_of()
    _, batch = batch_of(BATCHES[name])
    nodes, words = nodes_of(batch), batch.words
    mask = torch.cat([batch.mask, words.mask], 1)
    h = torch.randn(*mask.shape, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    ours = encoder.layers[0](h, nodes, mask, encoder.distances)
    chars = torch.arange(nodes.n_chars).expand(len(h), -1)
    head, tail = torch.cat([chars, words.head], 1), torch.cat([chars, words.tail], 1)
    layer: Any = encoder.layers[0]
    theirs = naive_flat.layer(layer, h, head, tail, mask, encoder.distances)
    assert_close(ours[mask], theirs[mask], **TOLERANCE)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_sentence_alone_equals_it_in_a_batch(layers: int) -> None:
    encoder = encoder_of(layers=layers)
    for name, sentences in BATCHES.items():
        x, batch = batch_of(sentences)
        together = encoder(x, batch)
        for b, (n, found) in enumerate(sentences):
            words = Words(
                *(
                    getattr(batch.words, f)[b : b + 1, : len(found)]
                    for f in ("ids", "head", "tail", "labels", "mask")
                )
            )
            one = Batch(batch.chars[b : b + 1, :n], batch.bigrams[b : b + 1, :n], batch.mask[b : b + 1, :n], words)
            assert_close(
                encoder(x[b : b + 1, :n], one)[0], together[b, :n], **TOLERANCE, msg=partial("{}: {}".format, name)
            )


def test_without_words_it_is_a_relative_transformer() -> None:
    """Pair by pair, there is one encoding for each distance; masked words change nothing."""
    encoder = encoder_of()
    x, batch = batch_of([(5, [(0, 1), (1, 4)])])
    hidden = Batch(
        batch.chars,
        batch.bigrams,
        batch.mask,
        Words(batch.words.ids, batch.words.head, batch.words.tail, batch.words.labels, batch.words.mask & False),
    )
    none = batch_of([(5, [])])[1]
    assert_close(encoder(x, hidden), encoder(x, none), **TOLERANCE)

    layer: Any = encoder.layers[0]
    a, fuse = layer.attention, encoder.distances.fuse
    h = encoder.char_projection(x)[0]
    q, k, v = (f(h).view(5, 3, 4) for f in (a.query, a.key, a.value))
    scores = torch.empty(5, 5, 3, dtype=torch.float64)
    for i in range(5):
        for j in range(5):
            p = naive_flat.waves(torch.tensor([i - j]), 12)
            r = a.position(torch.relu(p @ sum(fuse.weight.chunk(4, 1), torch.zeros(())).T + fuse.bias)).view(3, 4)
            scores[i, j] = ((q[i] + a.u) * k[j]).sum(-1) + ((q[i] + a.v) * r).sum(-1)
    attended = torch.einsum("ija,jad->iad", scores.softmax(1), v).flatten(1)
    found = a(encoder.char_projection(x), nodes_of(none), none.mask, encoder.distances)
    assert_close(found[0], attended, **TOLERANCE)


def test_two_distances_are_enough_for_characters() -> None:
    """For a query of one character hh = th and ht = tt, so "ends" with the summed weights is "four"."""
    four = encoder_of(distances="four")
    ends = encoder_of(distances="ends")
    state = four.state_dict()
    hh, ht, th, tt = state["distances.fuse.weight"].chunk(4, 1)
    ends.load_state_dict(state | {"distances.fuse.weight": torch.cat([hh + th, ht + tt], 1)})
    for sentences in BATCHES.values():
        x, batch = batch_of(sentences)
        assert_close(ends(x, batch)[batch.mask], four(x, batch)[batch.mask])


class TestDistances:
    """The four distances of 重庆人和药店, read back from the encodings."""

    NAMES = ("重", "庆", "人", "和", "药", "店", "重庆", "人和药店", "药店")

    @pytest.fixture
    def matrices(self) -> dict[str, Tensor]:
        batch = batch_of([DRUGSTORE])[1]
        nodes = nodes_of(batch)
        return {part: self.read(nodes, i) for i, part in enumerate(("hh", "ht", "th", "tt"))}

    @staticmethod
    def read(nodes: Nodes, part: int) -> Tensor:
        """Of width 4, the second sine is that of a ten-thousandth of the distance: invert it."""
        distances = FourDistances(4).double()
        torch.nn.init.zeros_(distances.fuse.weight)
        torch.nn.init.ones_(distances.fuse.bias)
        distances.fuse.weight.data[0, 4 * part + 1] = 1.0
        rows = []
        for i in range(len(TestDistances.NAMES)):
            table = distances(nodes.n_chars, nodes.lengths, nodes.lengths[nodes.kind[0, i]])
            row = nodes.head[0, i] - nodes.head[0] + nodes.n_chars - 1
            rows.append((table[row, nodes.kind[0], 0] - 1).asin() * 1e4)
        return torch.stack(rows).round().long()

    @pytest.mark.parametrize(
        ("query", "key", "expected"),
        [
            ("药", "人和药店", (2, -1, 2, -1)),
            ("重庆", "人和药店", (-2, -5, -1, -4)),
            ("人和药店", "药店", (-2, -3, 1, 0)),
            ("店", "药店", (1, 0, 1, 0)),
            ("重", "重庆", (0, -1, 0, -1)),
            ("重庆", "重", (0, 0, 1, 1)),
        ],
    )
    def test_pairs(self, matrices: dict[str, Tensor], query: str, key: str, expected: tuple[int, ...]) -> None:
        i, j = self.NAMES.index(query), self.NAMES.index(key)
        assert tuple(int(m[i, j]) for m in matrices.values()) == expected

    def test_sums(self, matrices: dict[str, Tensor]) -> None:
        assert matrices["tt"][7].tolist() == [5, 4, 3, 2, 1, 0, 4, 0, 0]
        assert [int(m.sum()) for m in matrices.values()] == [0, -45, 45, 0]
        assert [int(m.abs().sum()) for m in matrices.values()] == [156, 169, 169, 168]
        every = torch.stack(list(matrices.values()), -1)
        assert (int(every.min()), int(every.max())) == (-5, 5)
        assert len(every.flatten(0, 1).unique(dim=0)) == 51
        assert len(every[..., [0, 3]].flatten(0, 1).unique(dim=0)) == 47

    def test_symmetries(self, matrices: dict[str, Tensor]) -> None:
        hh, ht, th, tt = matrices.values()
        assert torch.equal(hh, -hh.T)
        assert torch.equal(tt, -tt.T)
        assert torch.equal(ht, -th.T)
        assert torch.equal(hh[:6], th[:6])
        assert torch.equal(ht[:6], tt[:6])


def test_sinusoids() -> None:
    """First sines, then cosines; the lowest frequency is exactly 1e-4."""
    assert_close(sinusoid(torch.tensor(1), 4), torch.tensor([0.841471, 0.0001, 0.540302, 1.0]), atol=1e-6, rtol=0)
    assert_close(
        sinusoid(torch.tensor(-1), 4), torch.tensor([-0.841471, -0.0001, 0.540302, 1.0]), atol=1e-6, rtol=0
    )
    frequencies = sinusoid(torch.tensor(1), 8)[:4].asin()
    assert_close(frequencies, torch.tensor([1.0, 0.0464159, 0.0021544, 0.0001]), atol=1e-6, rtol=0)
    p = sinusoid(torch.arange(-50, 51), 16)
    assert_close((p * p).sum(-1), torch.full((101,), 8.0))
    assert (p[55] @ p[56]).item() == pytest.approx(sum(math.cos(10000 ** (-k / 7)) for k in range(8)), abs=1e-5)
    assert torch.equal(p[55] @ p[56], p[56] @ p[55])
