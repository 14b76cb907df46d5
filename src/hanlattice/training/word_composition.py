"""Splits word vectors into a part that follows from their characters and a rest that stays in the table."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.initial_weights import with_all_rows
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.inputs.batch import Batch, Words, collate
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import UNKNOWN, Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.tagger import Tagger

SAMPLE = 50_000  # words to which the regression is fitted
BLOCK = 5_000  # words per batch
RIDGE = 0.1


@torch.no_grad()
def fit_compositions(tagger: Tagger, vocabulary: Vocabulary, seed: int) -> None:
    """Fit every composition of words to the word vectors, and subtract its result from their table.

    The sum of both, which an encoder reads, is still the vector of the word. A word without a row in the table gets
    the vector that is typical of its characters, not a random one. The composition is fitted by ridge regression on
    pretrained character and bigram vectors, over a sample of ``vocabulary``, which names all rows of the tagger
    (compare Pinter et al. 2017, https://aclanthology.org/D17-1010, who train a network for this).
    """
    if not vocabulary.words:
        return
    device, was_training = tagger.device, tagger.training
    reader = Reader(vocabulary)
    chosen = np.random.default_rng(seed).permutation(len(vocabulary.words))[:SAMPLE]
    with with_all_rows(tagger.cpu().eval()):
        for words in _composed(tagger):
            sample = [vocabulary.words[i] for i in chosen]
            project = _fit(words, tagger.embedding, reader, sample, words.table.weight[chosen + 1])
            for first in range(0, len(vocabulary.words), BLOCK):
                block = vocabulary.words[first : first + BLOCK]
                spelled = project(_features(words, tagger.embedding, reader, block))
                words.table.weight[first + 1 : first + 1 + BLOCK] -= spelled
    tagger.to(device).train(was_training)


def _composed(tagger: Tagger) -> list[WordEmbedding]:
    return [m for m in tagger.modules() if isinstance(m, WordEmbedding) and m.composition is not None]


def _projection(words: WordEmbedding) -> nn.Linear:
    assert words.composition is not None
    return words.composition.project


def _features(
    words: WordEmbedding, embedding: nn.Module, reader: Reader, chosen: Sequence[str]
) -> Float[Tensor, "W F"]:
    assert words.composition is not None
    batch = _alone(reader, chosen)
    return words.composition.features(embedding(batch), batch.words)[:, 0]


def _fit(
    words: WordEmbedding, embedding: nn.Module, reader: Reader, chosen: Sequence[str], vectors: Float[Tensor, "W D"]
) -> nn.Linear:
    """Ridge regression of the vectors on the features; it becomes the projection of the composition."""
    project = _projection(words)
    n = project.in_features + 1
    gram, moment = torch.zeros(n, n, dtype=torch.float64), torch.zeros(n, project.out_features, dtype=torch.float64)
    for first in range(0, len(chosen), BLOCK):
        x = _features(words, embedding, reader, chosen[first : first + BLOCK]).double()
        x = nn.functional.pad(x, (0, 1), value=1.0)
        gram += x.T @ x
        moment += x.T @ vectors[first : first + BLOCK].double()
    solved = torch.linalg.solve(gram + RIDGE * torch.eye(n, dtype=torch.float64), moment)
    project.weight.copy_(solved[:-1].T)
    project.bias.copy_(solved[-1])
    return project


def _alone(reader: Reader, words: Sequence[str]) -> Batch:
    """Each word as a separate text, in which it is the only match; its last bigram is unknown."""
    batch = collate(reader.read(words, Lexicon()))
    n = batch.mask.sum(1, keepdim=True)
    zeros = torch.zeros_like(n)
    bigrams = batch.bigrams.scatter(1, n - 1, UNKNOWN)
    alone = Words(ids=zeros, head=zeros, tail=n - 1, labels=zeros, mask=torch.ones_like(n, dtype=torch.bool))
    return Batch(batch.chars, bigrams, batch.mask, alone, batch.texts)
