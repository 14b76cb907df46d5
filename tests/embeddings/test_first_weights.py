"""Tables and their first rows: pretrained vectors where there are any, random ones of the right size elsewhere."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import (
    Rows,
    Tables,
    further_rows,
    rows_to_keep,
    state_with_all_rows,
    with_all_rows,
)
from hanlattice.embeddings.latin import Convolution, Latin
from hanlattice.embeddings.low_rank import LowRank
from hanlattice.embeddings.soft_lexicon import SoftLexicon
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.stack import Stack
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.inputs.batch import Batch, Words
from hanlattice.inputs.vocabulary import END, Vocabulary
from hanlattice.vectors import Vectors, VectorSet

VOCABULARY = Vocabulary(
    chars=("重", "庆", "人"),
    bigrams=("重庆", "人\0", "庆人"),
    words=("重庆", "药店", "李明", "很好"),
    word_labels=("LOC",),
    labels=("PER", "LOC"),
)


def vectors(*names: str, d: int) -> Vectors:
    return Vectors(names, (np.arange(len(names) * d, dtype=np.float32).reshape(-1, d) + 1) / 10)


VECTORS = VectorSet(vectors("庆", "天", d=2), vectors("重庆", d=3), vectors("李明", "重庆", d=4))


@pytest.mark.parametrize("normalise", [False, True])
def test_first_rows(normalise: bool) -> None:
    """Two rows are reserved before characters and bigrams, and one before words."""
    tables = Tables.from_vectors(VOCABULARY, VECTORS, normalise=normalise, seed=3, word_counts=(7, 5))
    draw = np.random.default_rng(3)
    for rows, found, names, reserved, d in (
        (tables.chars, VECTORS.chars, VOCABULARY.chars, 2, 2),
        (tables.bigrams, VECTORS.bigrams, VOCABULARY.bigrams, 2, 3),
        (tables.words, VECTORS.words, VOCABULARY.words, 1, 4),
    ):
        expected = draw.uniform(-((3 / d) ** 0.5), (3 / d) ** 0.5, (len(names) + reserved, d)).astype(np.float32)
        for i, name in enumerate(names):
            if name in found.names:
                expected[reserved + i] = found.at(np.array([found.names.index(name)]))[0]
        if normalise:
            expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(rows.values, expected, atol=1e-6)
        assert rows.n_trained == len(rows.values)
    assert tables.word_counts.values.tolist() == [1, 7, 5, 1, 1]
    assert (tables.labels, tables.char_names, tables.files) == (VOCABULARY.labels, VOCABULARY.chars, None)
    assert tables.n_word_kinds == VOCABULARY.n_word_kinds


def test_a_vector_of_zeros_stays_zero() -> None:
    zeros = VectorSet(Vectors(("庆",), np.zeros((1, 2), np.float32)), VECTORS.bigrams, VECTORS.words)
    tables = Tables.from_vectors(VOCABULARY, zeros, normalise=True, seed=3)
    assert tables.chars.values[3].tolist() == [0, 0]
    assert tables.word_counts.values.tolist() == [1] * 5


def test_the_end_of_a_text_is_looked_up_by_name() -> None:
    vocabulary = Vocabulary(chars=(), bigrams=(f"人{END}",), words=(), word_labels=(), labels=())
    found = VectorSet(VECTORS.chars, vectors("人<end>", d=3), VECTORS.words)
    tables = Tables.from_vectors(vocabulary, found, normalise=False, seed=0)
    torch.testing.assert_close(tables.bigrams.values[2], torch.tensor([0.1, 0.2, 0.3]))


def test_tables_for_weights_that_are_about_to_be_loaded(tmp_path: Path) -> None:
    tables = Tables.empty(VOCABULARY, {"chars": 2, "bigrams": 3, "words": 4}, tmp_path)
    shapes = [tuple(rows.values.shape) for rows in (tables.chars, tables.bigrams, tables.words, tables.word_counts)]
    assert shapes == [(5, 2), (5, 3), (5, 4), (5,)]
    assert tables.word_counts.values.dtype == torch.long
    assert bool((tables.word_counts.values == 1).all())
    assert not tables.chars.values.any()
    assert (tables.labels, tables.char_names) == (VOCABULARY.labels, VOCABULARY.chars)
    assert tables.within("a", "b").files == tmp_path / "a" / "b"
    assert Tables.empty(VOCABULARY, {"chars": 2, "bigrams": 3, "words": 4}).within("a").files is None


def test_training_uses_the_rows_of_names_in_the_corpora() -> None:
    seen = Vocabulary(chars=("重",), bigrams=("重庆", "庆人"), words=("重庆",), word_labels=(), labels=("PER",))
    tables = Tables.from_vectors(VOCABULARY, VECTORS, normalise=False, seed=3).trained_on(seen)
    trained = [rows.n_trained for rows in (tables.chars, tables.bigrams, tables.words, tables.word_counts)]
    assert trained == [3, 4, 2, 2]
    for rows in (tables.chars, tables.words):
        assert torch.equal(torch.cat([rows.trained, rows.further]), rows.values)
    assert tables.word_counts.trained.tolist() == [1, 1]
    whole = Rows.of(torch.ones(3, 2))
    assert whole.trained is whole.values, "it is not copied"
    copy = tables.chars.clone()
    copy.values.zero_()
    assert tables.chars.values.any()
    assert copy.n_trained == 3


class Two(nn.Module):
    """A table with further rows, beside one without, and a buffer with further rows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Table(Rows(torch.arange(10.0).view(5, 2), 3))
        self.other = Table(torch.ones(4, 2))
        self.further_rows = rows_to_keep(counts=Rows(torch.arange(5), 2), all_of_it=Rows.of(torch.ones(3)))
        self.register_buffer("counts", torch.arange(2))


def test_all_rows_are_saved_and_used_within_a_block() -> None:
    part = Two()
    assert further_rows(part).keys() == {"inner.weight", "counts"}
    everything = torch.arange(10.0).view(5, 2)
    everything[0] = 0
    state = state_with_all_rows(part)
    assert torch.equal(state["inner.weight"], everything)
    assert torch.equal(state["counts"], torch.arange(5))
    assert len(state["other.weight"]) == 4
    weight = part.inner.weight
    with with_all_rows(part):
        assert torch.equal(part.inner.weight, everything)
        assert part.inner(torch.tensor([4])).tolist() == [[8, 9]]
        assert part.counts.tolist() == [0, 1, 2, 3, 4]  # type: ignore[operator]
        part.inner.weight.data[1] = 7
        part.inner.weight.data[4] = 9
    assert part.inner.weight is weight
    assert part.inner.weight.tolist() == [[0, 0], [7, 7], [4, 5]]
    assert part.inner.further_rows["weight"].tolist() == [[6, 7], [9, 9]]
    with pytest.raises(KeyError), with_all_rows(part):
        raise KeyError
    assert len(part.inner.weight) == 3


def test_the_rows_of_a_table() -> None:
    table = Table(torch.ones(5, 3))
    assert (table.d_out, table.unknown_rate, table.sparse, table.weight.requires_grad) == (3, 0.0, False, True)
    assert table.weight[0].tolist() == [0, 0, 0]
    assert not Table(torch.ones(5, 3), trainable=False).weight.requires_grad
    rare = Table(torch.arange(5.0)[:, None], unknown_rate=0.25)
    ids = torch.full((100, 200), 3)
    ids[:, 0] = 0
    torch.manual_seed(0)
    found = rare.train()(ids)
    assert not found[:, 0].any(), "padding is never unknown"
    assert set(found.unique().tolist()) == {0, 1, 3}
    assert float((found[:, 1:] == 1).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert bool((rare.eval()(ids)[:, 1:] == 3).all())
    for trainable in (True, False):
        table = Table(torch.ones(5, 3), sparse=True, trainable=trainable)
        result = table(torch.tensor([1, 2])).sum()
        if trainable:
            result.backward()
            assert table.weight.grad is not None
            assert table.weight.grad.is_sparse


@pytest.mark.parametrize(
    ("weight", "bound"),
    [
        (Softword(5000).table.weight, (3 / 5000) ** 0.5),
        (ExSoftword(5000).table.weight, (3 / 5000) ** 0.5),
        (Latin(300, Convolution(300, 4)).table.weight[1:], (3 / 300) ** 0.5),
        (LowRank(nn.Linear(300, 4), 50, 1.0).down, (1 / 300) ** 0.5),  # as torch fills a linear layer
    ],
)
def test_uniform_random_weights(weight: torch.Tensor, bound: float) -> None:
    assert float(weight.detach().max()) == pytest.approx(bound, rel=0.01)
    assert float(weight.detach().min()) == pytest.approx(-bound, rel=0.01)
    assert abs(float(weight.detach().mean())) < 0.1 * bound


def test_low_rank_matrices_change_nothing_at_first() -> None:
    layer = LowRank(nn.Linear(3, 4), 2, 8.0)
    assert layer.scale == 4
    assert not layer.up.any()
    assert not any(p.requires_grad for p in layer.linear.parameters())
    assert Latin(6, Convolution(6, 4)).table.weight.shape == (2 + 26 * 2 + 10, 6)


def test_the_vector_of_an_empty_set_starts_small() -> None:
    torch.manual_seed(0)
    chars = Characters(Table(torch.ones(3, 2)), dropout=0.0)
    soft = SoftLexicon(chars, WordEmbedding(Table(torch.ones(3, 5000))), torch.ones(3, dtype=torch.long))
    assert soft.none is not None
    assert float(soft.none.detach().std()) == pytest.approx(0.1, rel=0.05)
    assert soft.d_out == 2 + 4 * 5000


def test_vectors_are_side_by_side() -> None:
    none = torch.zeros(1, 0, dtype=torch.long)
    words = Words(none, none, none, none, none.bool())
    batch = Batch(torch.tensor([[2, 3]]), torch.tensor([[1, 2]]), torch.ones(1, 2).bool(), words)
    segments = ExSoftword(1)
    torch.nn.init.constant_(segments.table.weight, 9)
    chars, pairs = Table(torch.arange(4.0)[:, None]), Table(torch.arange(8.0).view(4, 2))
    full = Characters(chars, pairs, segments, dropout=0.0)
    assert full.d_out == 4
    assert full(batch).tolist() == [[[2, 2, 3, 9], [3, 4, 5, 9]]]
    alone = Characters(chars)
    assert (alone.d_out, alone.dropout.rate) == (1, 0.5)
    both = Stack({"a": Characters(chars, dropout=0.0), "b": full})
    assert both.d_out == 5
    assert both(batch).tolist() == [[[2, 2, 2, 3, 9], [3, 3, 4, 5, 9]]]


def test_places_in_words() -> None:
    """The words 重庆 and 和药店 of 重庆人和药店, and the word 药: begin, middle, end, single, and none of them."""
    head, tail = torch.tensor([[0, 3, 4, 0]]), torch.tensor([[1, 5, 4, 0]])
    real = torch.tensor([[True, True, True, False]])
    chars, mask = torch.ones(1, 7, dtype=torch.long), torch.tensor([[True] * 6 + [False]])
    batch = Batch(chars, chars, mask, Words(head, head, tail, head, real))
    one, all_of_them = Softword(1), ExSoftword(1)
    one.table.weight.data = torch.arange(4.0)[:, None]
    all_of_them.table.weight.data = torch.tensor([[1.0, 10.0, 100.0, 1000.0, 10000.0]])
    assert one(batch)[0, :6, 0].tolist() == [0, 2, 3, 0, 1, 2]
    assert all_of_them(batch)[0, :6, 0].tolist() == [1, 100, 10000, 1, 1010, 100]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "needs at least one part, such as"),
        ({"a.b": nn.Identity()}, r"give a part another name: .*a\.b"),
        ({"keys": nn.Identity()}, "give a part another name: .*keys"),
    ],
)
def test_parts_that_cannot_be_stacked(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stack(parts)
