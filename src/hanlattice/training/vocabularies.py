"""The lexicon, the vectors and the vocabulary of a run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from hanlattice.config.files import located
from hanlattice.config.settings import Config, LexiconConfig, VectorsConfig
from hanlattice.errors import ConfigError
from hanlattice.inputs.vocabulary import END, Vocabulary, bigrams_of, merged
from hanlattice.lexicon import BatchMatches, Lexicon
from hanlattice.lexicon.compiled import file_at, is_compiled
from hanlattice.lexicon.edits import edited
from hanlattice.model.folder import CONFIG, EDITS, LEXICON, PACKAGED, located_model
from hanlattice.text.normalise import Normaliser
from hanlattice.training.window import AnnotatedWindow
from hanlattice.vectors import VectorSet, default_vectors


def load_vectors(config: Config) -> VectorSet:
    """The vectors that the settings name, or those in the package."""
    return VectorSet.load(located(config.vectors.path)) if config.vectors.path else default_vectors()


def lexicon_file(name: str) -> Path:
    """The file that ``lexicon.files`` names: a word list, the lexicon of a model folder, or of a packaged model.

    Raises:
        ConfigError: a variable in the name is not set.
        ModelError: the packaged model is not installed.
    """
    path = located_model(name) if name in PACKAGED else Path(located(name))
    return path / LEXICON if (path / CONFIG).is_file() and (path / LEXICON).is_file() else path


def _listed(name: str) -> Lexicon:
    """The words of what ``lexicon.files`` names; those of a model with the edits that are saved with it."""
    path = lexicon_file(name)
    edits = path.with_name(EDITS)
    return edited(Lexicon.open(path), edits) if path.name == LEXICON and edits.is_file() else Lexicon.open(path)


def _is_compiled(name: str) -> bool:
    return "=" not in name and is_compiled(file_at(lexicon_file(name)))


def load_lexicon(config: Config, vectors: VectorSet, normaliser: Normaliser) -> Lexicon:
    """The words of the vectors and of the word lists in the settings, normalised as texts are.

    A single compiled lexicon is used as it is. Of a model its lexicon is read, with its labels. A file
    ``lexicon_edits.json`` of a model adds and removes words.

    Raises:
        ConfigError: the settings name neither, so there would be no words.
        DataError: a file is not a word list or has no edits.
    """
    settings = config.lexicon
    if not settings.files and not settings.vector_words:
        raise ConfigError("no lexicon: name lexicon.files, or set lexicon.vector_words = true")
    if len(settings.files) == 1 and not settings.vector_words and _is_compiled(settings.files[0]):
        return _listed(settings.files[0])
    lexicon = Lexicon(vectors.words.names if settings.vector_words else (), normaliser.words)
    for name in settings.files:
        path, _, label = name.partition("=")
        if Path(path).name == EDITS:
            lexicon = edited(lexicon, Path(located(path)))
            continue
        lexicon.update((word.text, label or word.label, word.weight) for word in _listed(path).entries())
    return lexicon


@dataclass(frozen=True)
class Vocabularies:
    """The vocabulary of a run: ``full`` is saved, ``seen`` are the names in the corpora, with which it begins.

    Only ``seen`` names have a row while the model is trained. The other names of ``full`` come from the vectors;
    training would not change their rows. ``word_counts`` is the number of occurrences of each word of ``seen``.
    """

    seen: Vocabulary
    full: Vocabulary
    word_counts: np.ndarray


def vocabularies(
    train: Sequence[AnnotatedWindow],
    others: Sequence[AnnotatedWindow],
    labels: tuple[str, ...],
    conventions: Mapping[str, tuple[str, ...]],
    lexicon: Lexicon,
    vectors: VectorSet,
    config: Config,
    *,
    noisy: Sequence[AnnotatedWindow] = (),
    copies: Sequence[AnnotatedWindow] = (),
) -> Vocabularies:
    """The names of a model's tables.

    First come names in ``train`` that have a vector, or are frequent enough to learn one, then names in ``others``
    that have a vector, then the other names of the vectors, up to the limits in the settings. Bigrams that are too
    rare in ``train`` are left out.

    Args:
        train: what the model is trained on.
        others: other texts that it will read, such as those of dev and test.
        labels: entity labels of the default convention.
        conventions: entity labels of the other conventions, by name.
        noisy: copies of ``train`` with noise. Names that only they have count like those of ``train``; nothing else
            in them is counted.
        copies: further changed copies, in which nothing is counted.
    """
    limit = config.vectors
    texts, noisy_texts = [w.text for w in train], [w.text for w in noisy]
    other_texts = [w.text for w in (*others, *copies)]
    counted = _counted(chain.from_iterable(texts), chain.from_iterable(noisy_texts))
    chars = _seen(counted, chain.from_iterable(other_texts), set(vectors.chars.names), limit.min_frequency)
    bigrams, pairs = _bigram_names(texts, noisy_texts, other_texts, vectors, limit)
    n = len(texts) + (0 if config.lexicon.counts == "train" else len(others))
    read = [*texts, *other_texts, *noisy_texts]
    words, counts = _words(lexicon, set(vectors.words.names), read, n, config.lexicon)
    full = Vocabulary(
        merged(chars, [c for c in vectors.chars.names if len(c) == 1]),
        merged(bigrams, pairs[: limit.bigrams or None]),
        merged(words, vectors.words.names[: limit.words or None]),
        merged(lexicon.labels, labels, *conventions.values()) if config.data.user_words else lexicon.labels,
        labels,
        config.data.user_words > 0,
        config.data.convention,
        conventions,
    )
    seen = full.first(len(chars), len(bigrams), len(words))
    return Vocabularies(seen, full, counts)


def _bigram_names(
    texts: Sequence[str], noisy: Sequence[str], others: Sequence[str], vectors: VectorSet, limit: VectorsConfig
) -> tuple[tuple[str, ...], list[str]]:
    """The bigrams of the texts, and those of the vectors, both without the bigrams that are rare in ``texts``."""
    counts = _counted(_bigrams(texts), _bigrams(noisy))
    rare = {pair for pair, count in counts.items() if count < limit.bigram_frequency}
    named = (name.replace("<end>", END) for name in vectors.bigrams.names)
    pairs = [pair for pair in named if len(pair) == 2 and pair not in rare]
    frequent = {pair: count for pair, count in counts.items() if pair not in rare}
    return _seen(frequent, _bigrams(others), set(pairs), limit.min_frequency), pairs


def _words(
    lexicon: Lexicon, known: Set[str], texts: Sequence[str], n_counted: int, config: LexiconConfig
) -> tuple[tuple[str, ...], np.ndarray]:
    """The words of the lexicon that occur in the texts and are ``known``, and their counts in the first texts."""
    matches = lexicon.match_batch(texts, config.min_word_length)
    word_ids = [word for word in np.unique(matches.word).tolist() if lexicon.word(word) in known]
    words = tuple(map(lexicon.word, word_ids))
    counts = _occurrences(matches, n_counted, lexicon.id_count)[word_ids]
    if config.counts == "official":
        counts[[len(word) == 1 for word in words]] = 1
    return words, counts


def _occurrences(matches: BatchMatches, n_texts: int, n_words: int) -> np.ndarray:
    """``[n_words]``: how often each word occurs in the first texts outside longer words; 1 if it never occurs.

    SoftLexicon counts words in this way (Ma et al. 2020). A word that occurs only within longer ones has 0.
    """
    among = slice(matches.offsets[n_texts])
    word = matches.word[among]
    counts = np.bincount(word[matches.outermost()[among]], minlength=n_words)
    return np.where(np.bincount(word, minlength=n_words) > 0, counts, 1)


def _counted(train: Iterable[str], noisy: Iterable[str]) -> Counter[str]:
    """How often each name occurs in ``train``, and how often in ``noisy`` if it does not occur in ``train``."""
    counts = Counter(train)
    counts.update({name: count for name, count in Counter(noisy).items() if name not in counts})
    return counts


def _seen(counts: Mapping[str, int], others: Iterable[str], known: Set[str], least: int) -> tuple[str, ...]:
    """Counted names that are ``known`` or occur ``least`` times, then the known names of ``others``.

    A counted name counts for its lower case too, which is looked up next.
    """
    often = [
        name for name in sorted(counts, key=lambda n: (-counts[n], n)) if name in known or counts[name] >= least
    ]
    lower = [name.lower() for name in sorted(counts)]
    elsewhere = [form for name in sorted(set(others)) for form in (name, name.lower())]
    return merged(often, [name for name in (*lower, *elsewhere) if name in known])


def _bigrams(texts: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(bigrams_of, texts))
