"""Semantic augmentation against its formulas, character by character and neighbour by neighbour."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hanlattice.embeddings.table import Table
from hanlattice.encoders import augmented
from hanlattice.encoders.augmented import Augmented, nearest, nearest_words
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.vectors import Vectors

D_IN, D, K, V = 5, 4, 3, 11


class Linear(Encoder):
    """A linear layer as an encoder."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.layer, self.d_out = nn.Linear(d_in, d_out), d_out

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        return self.layer(x)


def batch_of(chars: Tensor, bigrams: Tensor) -> Batch:
    none = torch.zeros(len(chars), 0, dtype=torch.long)
    return Batch(chars, bigrams, chars > 0, Words(none, none, none, none, none.bool()))


def encoder_of(*, d_value: int = D, **settings: Any) -> Augmented:
    """Neighbours where row 2 has none and row 3 too few."""
    torch.manual_seed(1)
    neighbours = torch.randint(2, V, (V, K))
    neighbours[2], neighbours[3, 1:] = 0, 0
    return Augmented(Linear(D_IN, D), neighbours, Table(torch.randn(V, d_value)), **settings).double().eval()


def naive(encoder: Augmented, x: Tensor, batch: Batch) -> Tensor:
    """The formulas of the paper."""
    h = encoder.inner(x, batch)
    rows = []
    for b in range(len(x)):
        for i in range(x.shape[1]):
            row = int((batch.bigrams if encoder.of == "bigrams" else batch.chars)[b, i])
            values = [encoder.values.weight[j] for j in encoder.neighbours[row].tolist() if j]
            e = [v if encoder.project is None else encoder.project(v) for v in values]
            scores = [sum(h[b, i] * vector) * encoder.scale for vector in e]
            total = sum(math.e**score for score in scores)
            v = sum((math.e**score / total * vector for score, vector in zip(scores, e, strict=True)), 0 * h[b, i])
            of_h, of_v = h[b, i], v
            if encoder.gate is not None:
                w_1, w_2 = encoder.gate.weight.split(D, 1)
                g = torch.sigmoid(w_1 @ of_h + w_2 @ v + encoder.gate.bias)
                of_h, of_v = g * of_h, (1 - g) * v
            rows.append(torch.cat([of_h, of_v]) if "concat" in encoder.fusion else of_h + of_v)
    return torch.stack(rows).view(*x.shape[:2], -1)


@pytest.mark.parametrize("fusion", ["gate-concat", "gate-sum", "concat", "sum"])
@pytest.mark.parametrize(
    "settings", [{}, {"d_value": 6}, {"of": "bigrams"}, {"scaled": False, "d_value": 3}], ids=str
)
def test_equals_the_formulas_of_the_paper(fusion: str, settings: dict[str, Any]) -> None:
    encoder = encoder_of(fusion=fusion, **settings)
    draw = torch.Generator().manual_seed(2)
    x = torch.randn(2, 6, D_IN, generator=draw, dtype=torch.float64, requires_grad=True)
    chars, bigrams = torch.randint(1, V, (2, 2, 6), generator=draw)
    chars[0, :2], bigrams[0, :2] = torch.tensor([2, 3]), torch.tensor([3, 2])
    batch = batch_of(chars, bigrams)
    ours, theirs = encoder(x, batch), naive(encoder, x, batch)
    assert ours.shape[-1] == encoder.d_out
    assert_close(ours, theirs)
    weights = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).view(ours.shape)
    parameters = {"x": x, **dict(encoder.named_parameters())}
    found, expected = (torch.autograd.grad((u * weights).sum(), list(parameters.values())) for u in (ours, theirs))
    for name, one, other in zip(parameters, found, expected, strict=True):
        assert_close(one, other, msg=partial("{}: {}".format, name))


def test_an_example_by_hand() -> None:
    encoder: Any = Augmented(
        Linear(2, 2), torch.tensor([[0, 0], [0, 0], [2, 3], [3, 2]]), Table(torch.zeros(4, 2))
    ).eval()
    with torch.no_grad():
        encoder.inner.layer.weight.copy_(torch.eye(2))
        encoder.inner.layer.bias.zero_()
        encoder.values.weight[2:] = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
        encoder.gate.weight.copy_(torch.eye(2).repeat(1, 2))
        encoder.gate.bias.zero_()
    ids = torch.tensor([[2]])
    u = encoder(torch.tensor([[[1.0, 0.0]]]), batch_of(ids, ids))
    assert_close(u[0, 0], torch.tensor([0.841544, 0.0, 0.106128, 0.224980]), atol=1e-6, rtol=0)


class TestNearestWords:
    NAMES = ("北", "京", "甲", "天")
    WORDS = ("首都", "京", "北", "天安门", "北方", "甲乙")

    def table(self) -> Vectors:
        return Vectors(self.WORDS, np.random.default_rng(3).normal(size=(6, 4)).astype(np.float32))

    def test_equals_comparing_every_pair(self) -> None:
        """Of 北 and 京, which have vectors, but not among those that are trained."""
        found = nearest_words(self.NAMES, 3, self.table(), 3)
        assert found.rows.values.shape == (6, 3)
        assert found.rows.values[[0, 1, 4, 5]].tolist() == [[0, 0, 0]] * 4
        unit = {w: v / np.linalg.norm(v) for w, v in zip(self.WORDS, self.table().matrix, strict=True)}
        for row, name in ((2, "北"), (3, "京")):
            cosine = {w: unit[w] @ unit[name] for w in self.WORDS if w != name}
            ranked = sorted(cosine, key=cosine.__getitem__, reverse=True)
            assert [found.words[i - 2] for i in found.rows.values[row].tolist()] == ranked[:3]
        for i, word in enumerate(found.words):
            assert_close(found.values.values[i + 2].numpy(), self.table().matrix[self.WORDS.index(word)])
        assert not found.values.values[:2].any()
        assert found.values.n_trained == 5  # of the three neighbours of 北
        assert found.values.values.shape[0] == 2 + len(found.words)

    def test_only_frequent_words(self) -> None:
        found = nearest_words(self.NAMES, 4, self.table(), 2, n_words=2)
        assert set(found.words) == {"首都", "京"}
        assert found.rows.values[3].tolist().count(0) == 1  # 京 has one other word

    def test_a_table_of_other_names(self) -> None:
        with pytest.raises(ValueError, match="have none of the characters"):
            nearest_words(("x", "y"), 4, self.table(), 2)
        with pytest.raises(ValueError, match="neighbours must be at least 1, not 0"):
            nearest_words(self.NAMES, 4, self.table(), 0)


class TestNearest:
    @pytest.mark.parametrize("block", [1, 4, 100])
    @pytest.mark.parametrize("seed", range(3))
    def test_equals_comparing_every_pair(self, monkeypatch: pytest.MonkeyPatch, seed: int, block: int) -> None:
        monkeypatch.setattr(augmented, "BLOCK", block)
        vectors = torch.randn(20, 5, generator=torch.Generator().manual_seed(seed)) * torch.arange(1, 21)[:, None]
        found = nearest(vectors, 4)
        for i in range(2, 20):
            cosines = {j: torch.cosine_similarity(vectors[i], vectors[j], 0).item() for j in range(2, 20) if j != i}
            assert found[i].tolist() == sorted(cosines, key=cosines.__getitem__, reverse=True)[:4]

    def test_zero_vectors_have_no_neighbours(self) -> None:
        vectors = torch.ones(6, 2)
        vectors[4] = 0
        found = nearest(vectors, 3)
        assert found[[0, 1, 4]].tolist() == [[0, 0, 0]] * 3
        assert sorted(found[2].tolist()) == [0, 3, 5]
        assert nearest(torch.zeros(5, 2), 2).tolist() == [[0, 0]] * 5

    def test_fewer_than_one_neighbour_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="neighbours must be at least 1, not 0"):
            nearest(torch.ones(4, 2), 0)
