"""Word vectors split into what spelling tells and the rest: the sum is unchanged, the split is least squares."""

import numpy as np
import torch

import tiny
from hanlattice.build import build
from hanlattice.config.settings import Config
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import Tables, state_with_all_rows
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.inputs.batch import collate
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.tagger import Tagger
from hanlattice.training.word_composition import RIDGE, fit_compositions

WORDS = tuple(tiny.WORDS)


def tagger_and_vocabulary() -> tuple[Tagger, Vocabulary]:
    """A tagger whose table of words trains the first 5, and the vocabulary of all its rows."""
    vectors = tiny.vectors()
    pairs = tuple(name for name in vectors.bigrams.names if len(name) == 2)
    vocabulary = Vocabulary(vectors.chars.names, pairs, WORDS, (), ("PER",))
    tables = Tables.from_vectors(vocabulary, vectors, normalise=True, seed=0)
    tables = tables.trained_on(vocabulary.first(len(vocabulary.chars), len(pairs), 5))
    return build(Config(), tables, ("PER",)), vocabulary


def features(tagger: Tagger, vocabulary: Vocabulary, word: str) -> torch.Tensor:
    """First, last and mean of the word's characters, the bigram after the last one unknown."""
    embedding = tagger.embedding
    assert isinstance(embedding, Characters)
    assert embedding.bigrams is not None
    encoded = Reader(vocabulary).read([word], Lexicon())[0]
    chars = embedding.chars.weight[torch.from_numpy(encoded.chars)]
    bigrams = embedding.bigrams.weight[torch.tensor([*encoded.bigrams[:-1].tolist(), 1])]
    x = torch.cat([chars, bigrams], 1)
    return torch.cat([x[0], x[-1], x.mean(0)]).detach()


def all_rows(words: WordEmbedding) -> torch.Tensor:
    return state_with_all_rows(words.table)["weight"].detach().clone()


def composition_of(tagger: Tagger) -> Composition:
    composition = words_of(tagger).composition
    assert composition is not None
    return composition


def words_of(tagger: Tagger) -> WordEmbedding:
    return next(m for m in tagger.modules() if isinstance(m, WordEmbedding))


def test_table_and_spelling_sum_to_the_vector_and_the_fit_is_the_best() -> None:
    tagger, vocabulary = tagger_and_vocabulary()
    before = all_rows(words_of(tagger))
    fit_compositions(tagger, vocabulary, seed=0)
    x = torch.stack([features(tagger, vocabulary, word) for word in WORDS])
    project = composition_of(tagger).project
    spelled = project(x)
    torch.testing.assert_close(all_rows(words_of(tagger))[1:] + spelled, before[1:])
    padded = np.concatenate([x.numpy(), np.ones((len(x), 1))], 1)
    penalty = np.sqrt(RIDGE) * np.eye(padded.shape[1])
    best, *_ = np.linalg.lstsq(
        np.concatenate([padded, penalty]),
        np.concatenate([before[1:].numpy(), np.zeros((len(penalty), before.shape[1]))]),
        rcond=None,
    )
    np.testing.assert_allclose(project.weight.detach().numpy(), best[:-1].T, atol=1e-4)
    np.testing.assert_allclose(project.bias.detach().numpy(), best[-1], atol=1e-4)


def test_training_still_uses_the_first_rows_only() -> None:
    tagger, vocabulary = tagger_and_vocabulary()
    fit_compositions(tagger, vocabulary, seed=0)
    table = words_of(tagger).table
    assert table.weight.shape == (6, 8)
    assert table.further_rows["weight"].shape == (len(WORDS) - 5, 8)
    assert torch.equal(table.weight[0], torch.zeros(8))
    assert tagger.training


def test_words_in_a_sentence_are_read_as_alone() -> None:
    """The composition in a batch is the one that was fitted, up to the bigram that goes on after the word."""
    tagger, vocabulary = tagger_and_vocabulary()
    encoded = Reader(vocabulary).read(["工作"], Lexicon(["工作"]))
    batch = collate(encoded)
    found = composition_of(tagger.eval()).features(tagger.embedding(batch), batch.words)[0, 0]
    d = len(found) // 3
    torch.testing.assert_close(found[:d], features(tagger, vocabulary, "工作")[:d])
