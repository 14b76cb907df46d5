"""Segmentation into the fewest words, against all segmentations of a sentence, and features computed from it.

Faults that go red here: a tie decided the other way, a word that ends one character late, padding that is cut.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from hanlattice.embeddings.softword import all_places, places
from hanlattice.inputs.batch import Batch, Words
from hanlattice.inputs.segmentation import segments, word_ends, word_starts

Sentence = tuple[int, set[tuple[int, int]]]  # characters, and (head, tail) of each word

# 研究生命起源: 研究, 研究生, 生命, 起源 are words.
ORIGIN: Sentence = (6, {(0, 1), (0, 2), (2, 3), (4, 5)})


def batch_of(sentences: list[Sentence], extra: int = 0) -> Batch:
    n, m = max(n for n, _ in sentences) + extra, max(len(words) for _, words in sentences) + extra
    head, tail = torch.zeros(2, len(sentences), m, dtype=torch.long)
    matched = torch.zeros(len(sentences), m, dtype=torch.bool)
    for b, (_, words) in enumerate(sentences):
        for i, (first, last) in enumerate(sorted(words)):
            head[b, i], tail[b, i], matched[b, i] = first, last, True
        head[b, len(words) :], tail[b, len(words) :] = 1, 2  # nonsense that the mask hides
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    ids = torch.zeros_like(mask, dtype=torch.long)
    return Batch(ids, ids, mask, Words(head, head, tail, head, matched))


def starts_of(batch: Batch) -> Tensor:
    return word_starts(batch.words.head, batch.words.tail, batch.words.mask, batch.mask)


def cuts(n: int, words: set[tuple[int, int]], start: int = 0) -> Iterator[tuple[tuple[int, int], ...]]:
    """All segmentations of the characters from ``start`` on into words and single characters."""
    if start == n:
        yield ()
    for end in range(start, n):
        if end == start or (start, end) in words:
            for rest in cuts(n, words, end + 1):
                yield ((start, end), *rest)


def best(n: int, words: set[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    def rank(cut: tuple[tuple[int, int], ...]) -> tuple[int, int, list[int]]:
        sizes = [end - start + 1 for start, end in cut]
        return len(cut), sum(size * size for size in sizes), [-size for size in reversed(sizes)]

    return min(cuts(n, words), key=rank)


def drawn(seed: int) -> list[Sentence]:
    draw = torch.Generator().manual_seed(seed)
    sentences = []
    for _ in range(8):
        n = int(torch.randint(1, 10, (), generator=draw))
        ends = torch.randint(n, (int(torch.randint(0, 12, (), generator=draw)), 2), generator=draw).tolist()
        sentences.append((n, {(min(pair), max(pair)) for pair in ends}))
    return sentences


@pytest.mark.parametrize("seed", range(20))
def test_best_of_all_segmentations(seed: int) -> None:
    sentences = drawn(seed)
    batch = batch_of(sentences, extra=seed % 3)
    starts = starts_of(batch)
    found = segments(starts, batch.mask)
    for b, (n, words) in enumerate(sentences):
        expected = best(n, words)
        real = found.mask[b]
        assert list(zip(found.head[b][real].tolist(), found.tail[b][real].tolist(), strict=True)) == list(expected)
        assert starts[b].nonzero().flatten().tolist() == [start for start, _ in expected]
    assert found.mask.shape[1] == max(len(best(*sentence)) for sentence in sentences)


def test_ties_prefer_similar_lengths() -> None:
    batch = batch_of([ORIGIN, (6, set())])
    assert starts_of(batch).int().tolist() == [[1, 0, 1, 0, 1, 0], [1] * 6]


@pytest.mark.parametrize("seed", range(5))
def test_places(seed: int) -> None:
    sentences = drawn(seed)
    batch = batch_of(sentences, extra=1)
    starts = starts_of(batch)
    found, every = places(starts, word_ends(starts, batch.mask)), all_places(batch)
    for b, (n, words) in enumerate(sentences):
        expected, cut = ["" for _ in range(n)], best(n, words)
        for start, end in cut:
            expected[start : end + 1] = "S" if start == end else "B" + "M" * (end - start - 1) + "E"
        assert ["BMES"[i] for i in found[b, :n].tolist()] == expected
        for i in range(n):
            longer = [(start, end) for start, end in words if start < end]
            b_m_e_s = [
                any(start == i for start, _ in longer),
                any(start < i < end for start, end in longer),
                any(end == i for _, end in longer),
                (i, i) in words,
            ]
            assert every[b, i].tolist() == [*b_m_e_s, not any(b_m_e_s)]
