"""Word vectors split into what their characters tell and what only the word itself does."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.inputs.batch import Batch, Words, collate
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import UNKNOWN, Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.tagger import Tagger

SAMPLE = 50_000  # words that the regression is fitted to
BLOCK = 5_000  # words that are composed at a time
RIDGE = 0.1


@torch.no_grad()
def spell(tagger: Tagger, whole: Tagger, vocabulary: Vocabulary, seed: int) -> None:
    """Fit every composition to the word vectors, and take its part away from their table.

    ``whole`` holds the tables of the whole ``vocabulary``, ``tagger`` their first rows; both are changed.

    The sum of both, which is what an encoder reads, stays the word's vector; a word without a row in the table gets
    the vector that words with such characters have, instead of a random one. Least squares, from the pretrained
    character and bigram vectors, over a sample of the vocabulary (compare Pinter et al. 2017,
    https://aclanthology.org/D17-1010, who train a network to the same end).
    """
    if not vocabulary.words:
        return
    whole.eval()
    reader = Reader(vocabulary)
    chosen = np.random.default_rng(seed).permutation(len(vocabulary.words))[:SAMPLE]
    for words, begun in zip(_composed(whole), _composed(tagger), strict=True):
        sample = [vocabulary.words[i] for i in chosen]
        project = _fit(words, whole.embedding, reader, sample, words.table.weight[chosen + 1])
        for first in range(0, len(vocabulary.words), BLOCK):
            spelled = project(_features(words, whole.embedding, reader, vocabulary.words[first : first + BLOCK]))
            words.table.weight[first + 1 : first + 1 + BLOCK] -= spelled
        _projection(begun).load_state_dict(project.state_dict())
        begun.table.weight.copy_(words.table.weight[: len(begun.table.weight)])


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
    """Ridge regression of the vectors on the features of the composition, whose projection it becomes."""
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
    """Each word as a text of its own, in which it is the one word; what follows it is unknown."""
    batch = collate(reader.read(words, Lexicon()))
    n = batch.mask.sum(1, keepdim=True)
    zeros = torch.zeros_like(n)
    bigrams = batch.bigrams.scatter(1, n - 1, UNKNOWN)
    alone = Words(ids=zeros, head=zeros, tail=n - 1, labels=zeros, mask=torch.ones_like(n, dtype=torch.bool))
    return Batch(batch.chars, bigrams, batch.mask, alone, batch.texts)
