"""Vectors of matched words: their lengths, and what is left out of them in training."""

import pytest
import torch
from torch.testing import assert_close

from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import LONGEST, Composition, WordEmbedding
from hanlattice.inputs.batch import Words

N_WORDS = 4000


def words(lengths: list[int]) -> Words:
    """One sentence with words of these lengths, all from its first character, with rows 1, 2, …, and no labels."""
    n = len(lengths)
    zeros = torch.zeros(1, n, dtype=torch.long)
    return Words(
        ids=torch.arange(1, n + 1)[None],
        head=zeros,
        tail=torch.tensor(lengths)[None] - 1,
        labels=zeros,
        mask=torch.ones(1, n, dtype=torch.bool),
    )


def embedding(n_words: int = 3, **settings: float) -> WordEmbedding:
    """Table vectors are 1 everywhere, composed ones 10."""
    composition = Composition(2, 3, 1)
    with torch.no_grad():
        for parameter in composition.parameters():
            parameter.zero_()
        composition.project.bias.fill_(10.0)
    return WordEmbedding(Table(torch.ones(n_words + 1, 3)), composition, dropout=0.0, **settings)


@pytest.mark.parametrize("length", [1, LONGEST - 1, LONGEST, LONGEST + 1, 40])
def test_long_words_share_the_last_length(length: int) -> None:
    torch.manual_seed(0)
    composition = Composition(2, 3, 1)
    x, given = torch.randn(1, 40, 2), words([length])
    vector = composition.project(composition.features(x, given)) + composition.label.weight[0]
    assert_close(composition(x, given), vector + composition.length.weight[min(length, LONGEST)])


def test_vectors_of_lengths_and_labels_start_small() -> None:
    torch.manual_seed(0)
    composition = Composition(2, 200, 50)
    for table in (composition.length.weight, composition.label.weight):
        assert table.std().item() == pytest.approx(0.1, rel=0.05)
        assert table.mean().item() == pytest.approx(0.0, abs=0.01)


class TestForget:
    """A forgotten word keeps its composed vector and loses its own."""

    @pytest.mark.parametrize(("rate", "expected"), [(0.0, 11.0), (1.0, 10.0)])
    def test_in_training(self, rate: float, expected: float) -> None:
        vectors = embedding(forget=rate).train()(torch.zeros(1, 5, 2), words([1, 2, 3])).vectors
        assert_close(vectors, torch.full((1, 3, 3), expected))

    def test_not_in_evaluation(self) -> None:
        vectors = embedding(forget=1.0).eval()(torch.zeros(1, 5, 2), words([1, 2, 3])).vectors
        assert_close(vectors, torch.full((1, 3, 3), 11.0))

    def test_the_rate_is_the_share_of_forgotten_words(self) -> None:
        torch.manual_seed(0)
        found = embedding(N_WORDS, forget=0.2).train()(torch.zeros(1, 2, 2), words([2] * N_WORDS))
        assert float((found.vectors[0, :, 0] == 10.0).float().mean()) == pytest.approx(0.2, abs=0.03)
        assert found.mask.all()


class TestDrop:
    """A dropped word is removed from the lattice."""

    def test_the_rate_is_the_share_of_dropped_words(self) -> None:
        torch.manual_seed(0)
        found = embedding(N_WORDS, drop=0.2).train()(torch.zeros(1, 2, 2), words([2] * N_WORDS))
        assert float((~found.mask).float().mean()) == pytest.approx(0.2, abs=0.03)
        assert_close(found.vectors, torch.full((1, N_WORDS, 3), 11.0))

    def test_not_in_evaluation(self) -> None:
        assert embedding(drop=1.0).eval()(torch.zeros(1, 5, 2), words([1, 2, 3])).mask.all()
