"""SoftLexicon by scattered sums against its sets, filled word by word and character by character."""

from collections.abc import Sequence
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.soft_lexicon import SoftLexicon
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.inputs.batch import Batch, Words

D_CHAR, D_WORD = 3, 4
COUNTS = [1, 3, 1, 2, 0, 0, 40]  # by row of the table of words; row 0 is a word without a vector

Sentence = tuple[int, Sequence[tuple[int, int, int]]]  # characters, and (row, head, tail) of each word

# 中国语言学, in which 中国语言, 语言 and 语言学 are words.
LINGUISTICS: Sentence = (5, [(3, 0, 3), (1, 2, 3), (2, 2, 4)])
BATCHES: dict[str, list[Sentence]] = {
    "linguistics": [LINGUISTICS],
    "words of one character, and a long one": [
        (6, [(1, 0, 0), (6, 0, 5), (2, 1, 1), (3, 1, 2), (0, 5, 5)]),
        LINGUISTICS,
    ],
    "sets whose counts are all 0": [(4, [(4, 0, 1), (5, 0, 2), (6, 0, 3), (4, 2, 3)]), (2, [(5, 0, 1)])],
    "no words beside words": [(3, []), (4, [(0, 1, 3)]), (1, [(2, 0, 0)])],
    "no words": [(3, []), (2, [])],
}  # fmt: skip


def batch_of(sentences: Sequence[Sentence]) -> Batch:
    """Padded, with words that are no words in the padding."""
    n, m = max(n for n, _ in sentences), max(len(words) for _, words in sentences)
    draw = torch.Generator().manual_seed(0)
    ids, head, tail = torch.ones(3, len(sentences), m, dtype=torch.long)
    for b, (_, words) in enumerate(sentences):
        for i, word in enumerate(words):
            ids[b, i], head[b, i], tail[b, i] = torch.tensor(word)
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    word_mask = torch.arange(m) < torch.tensor([len(words) for _, words in sentences])[:, None]
    chars = torch.randint(2, 9, mask.shape, generator=draw) * mask
    return Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), word_mask))


def embedding_of(*, none: bool, composition: bool = False) -> SoftLexicon:
    torch.manual_seed(1)
    words = WordEmbedding(
        Table(torch.randn(len(COUNTS), D_WORD)), Composition(D_CHAR, D_WORD, 1) if composition else None
    )
    characters = Characters(Table(torch.randn(9, D_CHAR)))
    return SoftLexicon(characters, words, torch.tensor(COUNTS), none=none).double().eval()


def naive(embedding: SoftLexicon, batch: Batch) -> Tensor:
    """The definition: four sets a character, and sums over them."""
    x = embedding.characters(batch)
    e = embedding.words(x, batch.words).vectors
    rows = []
    for b in range(len(x)):
        for i in range(x.shape[1]):
            sets: list[list[tuple[float, Tensor]]] = [[], [], [], []]
            for m in range(e.shape[1]):
                head, tail = int(batch.words.head[b, m]), int(batch.words.tail[b, m])
                if not batch.words.mask[b, m] or not head <= i <= tail:
                    continue
                place = 3 if head == tail else 0 if i == head else 2 if i == tail else 1
                sets[place].append((COUNTS[batch.words.ids[b, m]], e[b, m]))
            for words in sets:
                if words and not any(z for z, _ in words):
                    words[:] = [(1, vector) for _, vector in words]
                if not words and embedding.none is not None:
                    words.append((1, embedding.none))
            total = sum(z for words in sets for z, _ in words) or 1
            zero = torch.zeros(D_WORD, dtype=x.dtype)
            pooled = [sum(((4 * z / total) * vector for z, vector in words), zero) for words in sets]
            rows.append(torch.cat([x[b, i], *pooled]))
    return torch.stack(rows).view(*x.shape[:2], -1)


def gradients(embedding: SoftLexicon, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Of everything, for a loss that weighs every real output differently."""
    parameters = dict(embedding.named_parameters())
    weights = torch.linspace(-1, 1, x[mask].numel(), dtype=x.dtype).view(x[mask].shape)
    grads = torch.autograd.grad((x[mask] * weights).sum(), list(parameters.values()), allow_unused=True)
    return {
        name: torch.zeros_like(p) if g is None else g
        for (name, p), g in zip(parameters.items(), grads, strict=True)
    }


@pytest.mark.parametrize("composition", [False, True], ids=["table", "composed"])
@pytest.mark.parametrize("none", [True, False], ids=["NONE", "zeros"])
@pytest.mark.parametrize("name", BATCHES)
def test_same_as_the_definition(name: str, none: bool, composition: bool) -> None:
    embedding, batch = embedding_of(none=none, composition=composition), batch_of(BATCHES[name])
    ours, theirs = embedding(batch), naive(embedding, batch)
    assert ours.shape[-1] == embedding.d_out == D_CHAR + 4 * D_WORD
    assert_close(ours, theirs)
    found, expected = gradients(embedding, ours, batch.mask), gradients(embedding, theirs, batch.mask)
    for parameter, gradient in found.items():
        assert_close(gradient, expected[parameter], msg=partial("{}: {}".format, parameter))


@pytest.mark.parametrize(("none", "shares"), [(False, (2, 2 / 3, 4 / 3)), (True, (1.5, 0.5, 1.0))])
def test_the_weights_of_one_character(none: bool, shares: tuple[float, float, float]) -> None:
    """言 in 中国语言学: 语言 (met 3 times) and 中国语言 (2) end at it, 语言学 (1) goes on through it."""
    embedding, batch = embedding_of(none=none), batch_of([LINGUISTICS])
    whole, middle, longer = shares
    word = embedding.words.table.weight
    _, begin, through, end, single = embedding(batch)[0, 3].split([D_CHAR, *[D_WORD] * 4])
    assert_close(through, middle * word[2])
    assert_close(end, whole * word[1] + longer * word[3])
    empty = torch.zeros(D_WORD, dtype=word.dtype) if embedding.none is None else middle * embedding.none
    assert_close((begin, single), (empty, empty))


def test_counts_are_kept_with_the_weights() -> None:
    embedding, batch = embedding_of(none=True), batch_of([LINGUISTICS])
    other = SoftLexicon(embedding.characters, embedding.words, torch.ones(len(COUNTS), dtype=torch.long)).double()
    assert not torch.allclose(other.eval()(batch), embedding(batch))
    other.load_state_dict(embedding.state_dict())
    assert torch.equal(other(batch), embedding(batch))


def test_words_left_out_in_training_are_in_no_set() -> None:
    embedding, batch = embedding_of(none=True).train(), batch_of([LINGUISTICS])
    embedding.characters.dropout.rate = embedding.words.dropout.rate = 0.0
    embedding.words.drop = 1.0
    soft = embedding(batch)[0, :, D_CHAR:]
    assert embedding.none is not None
    assert_close(soft, embedding.none.repeat(5, 4))
