"""Train vectors with word2vec, skip-gram with negative sampling (Mikolov et al. 2013, arXiv:1310.4546)."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hanlattice.corpus import read
from hanlattice.errors import ConfigError, DataError
from hanlattice.files import read_lines
from hanlattice.lexicon import Lexicon, count_matches, segment
from hanlattice.vectors.storage import KINDS, Vectors, VectorSet
from hanlattice.vectors.texts import CUT, Counts, ngrams, training_lines, unspaced

WINDOW = 5  # tokens of context on each side
NEGATIVE = 5  # negative samples per pair of a token and its context
SAMPLE = 1e-4  # threshold for down-sampling frequent tokens
EPOCHS: Mapping[str, int] = {"chars": 2, "bigrams": 1, "words": 2}
MIN_COUNT: Mapping[str, int] = {"chars": 5, "bigrams": 10, "words": 5}
UNKNOWN = np.log(1e-5)  # log probability of a one-character word that is not in the lexicon

Progress = Callable[[str, float], None]
"""Receives the stage and the share of it that is done, 0 to 1."""


def train_vectors(
    paths: Sequence[str | Path],
    lexicon: Lexicon | None = None,
    *,
    exclude: Sequence[str | Path] = (),
    dimension: int = 50,
    epochs: Mapping[str, int] = EPOCHS,
    min_count: Mapping[str, int] = MIN_COUNT,
    seed: int = 1,
    workers: int = 1,
    progress: Progress = lambda stage, done: None,
) -> VectorSet:
    """Train vectors of characters, bigrams and words on text.

    Texts are normalised (NFKC, lower case), and exact duplicates are left out. Words come from the most probable
    segmentation over the lexicon, where the probability of a word is its number of occurrences as a substring, per
    character of text. Without a lexicon there are no word vectors. Words of one character get no word vector.

    Temporary files take about three times the size of the decompressed texts, in the folder that TMPDIR names.

    Args:
        paths: text files with one paragraph per line; see :func:`hanlattice.compressed.decompressed_lines`.
        lexicon: the words.
        exclude: corpora on which the vectors are to be evaluated, in any format that can be read. Paragraphs that
            share 20 consecutive characters with them are left out.
        dimension: size of a vector.
        epochs: number of passes over the texts for ``chars``, ``bigrams`` and ``words``.
        min_count: minimum number of occurrences of a character, bigram or word that gets a vector.
        seed: random seed of the initial vectors and of sampling.
        workers: number of threads. The result is reproducible with one thread only.
        progress: receives the stage and the share of it that is done.

    Raises:
        ConfigError: gensim is not installed, or a setting is out of range.
        DataError: a file cannot be read, there is too little text, or the disk is full.
    """
    settings = _Settings(dimension, epochs, min_count, seed, workers)
    settings.check()
    word2vec = _word2vec(settings)
    counts = Counts()
    excluded = ngrams(document.text for path in exclude for document in read(path))
    with TemporaryDirectory(prefix="hanlattice-") as name:
        texts = Path(name) / "texts"
        _write(texts, training_lines(paths, excluded, counts, lambda done: progress("reading texts", done)))
        if not counts.kept:
            raise DataError("the texts are empty; name files with one paragraph per line")
        chars, bigrams, words = _train_tables(word2vec, texts, lexicon, counts, progress)
    meta = settings.meta() | _provenance(paths, exclude, lexicon, counts)
    return VectorSet(chars, bigrams, words, meta)


@dataclass(frozen=True)
class _Settings:
    """The settings of :func:`train_vectors` that concern word2vec."""

    dimension: int
    epochs: Mapping[str, int]
    min_count: Mapping[str, int]
    seed: int
    workers: int

    def check(self) -> None:
        """Raise a ConfigError if a setting is out of range."""
        numbers = {"dimension": self.dimension, "workers": self.workers}
        numbers |= {f"epochs of {kind}": self.epochs[kind] for kind in KINDS}
        numbers |= {f"min_count of {kind}": self.min_count[kind] for kind in KINDS}
        for name, value in numbers.items():
            if value < 1:
                raise ConfigError(f"{name} is {value}; it has to be at least 1")

    def meta(self) -> dict[str, str]:
        """The settings as entries of ``VectorSet.meta``."""
        return {
            "method": f"word2vec skip-gram, gensim {metadata.version('gensim')}",
            "settings": f"dimension {self.dimension}, window {WINDOW}, negative {NEGATIVE}, sample {SAMPLE},"
            f" seed {self.seed}, workers {self.workers}",
            "epochs": ", ".join(f"{kind} {self.epochs[kind]}" for kind in KINDS),
            "min_count": ", ".join(f"{kind} {self.min_count[kind]}" for kind in KINDS),
        }


def _provenance(
    paths: Sequence[str | Path], exclude: Sequence[str | Path], lexicon: Lexicon | None, counts: Counts
) -> dict[str, str]:
    """The texts and words that the vectors were trained on, as entries of ``VectorSet.meta``."""
    return {
        "texts": ", ".join(Path(path).name for path in paths),
        "text": f"{counts.kept:,} paragraphs of {counts.characters:,} characters;"
        f" {counts.duplicates:,} duplicates and {counts.excluded:,} excluded paragraphs left out",
        "excluded": ", ".join(Path(path).name for path in exclude) or "nothing",
        "lexicon": "none" if lexicon is None else f"{len(lexicon):,} words",
    }


def _word2vec(settings: _Settings) -> Callable[[str], Any]:
    """A function that returns gensim's untrained model for ``chars``, ``bigrams`` or ``words``."""
    try:
        from gensim.models import Word2Vec
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "gensim":
            raise
        raise ConfigError("training vectors needs gensim; install it: pip install 'hanlattice[vectors]'") from None

    def untrained(kind: str) -> Any:
        return Word2Vec(
            sg=1,
            vector_size=settings.dimension,
            window=WINDOW,
            negative=NEGATIVE,
            sample=SAMPLE,
            seed=settings.seed,
            workers=settings.workers,
            min_count=settings.min_count[kind],
            epochs=settings.epochs[kind],
        )

    return untrained


def _train_tables(
    word2vec: Callable[[str], Any], texts: Path, lexicon: Lexicon | None, counts: Counts, progress: Progress
) -> tuple[Vectors, Vectors, Vectors]:
    """Train the vectors of characters, bigrams and words, in files beside ``texts``, which has the text lines."""

    def learn(kind: str, lines: Iterable[str]) -> Vectors:
        return _learn(word2vec(kind), texts.with_name(kind), lines, progress)

    chars = learn("chars", map(" ".join, _pieces(texts)))
    bigrams = learn("bigrams", map(_bigrams, read_lines(texts)))
    if lexicon is None:
        words = Vectors((), np.zeros((0, chars.matrix.shape[1]), np.float32))
    else:
        known = Lexicon(filter(None, map(unspaced, lexicon)))  # normalised as the texts are
        words = _without_single_characters(learn("words", _words(known, texts, counts, progress)))
    return chars, bigrams, words


def _learn(model: Any, tokens: Path, lines: Iterable[str], progress: Progress) -> Vectors:
    """Train vectors of the tokens in ``lines``, separated by spaces. They are written to the file ``tokens``."""
    _write(tokens, lines)
    with _reports(lambda done: progress(f"training {tokens.name}", done), model.epochs):
        if tokens.stat().st_size:
            model.build_vocab(corpus_file=str(tokens))
        if not model.wv.index_to_key:
            raise DataError(
                f"none of the {tokens.name} occurs {model.min_count} times in the texts;"
                " use more text, or a smaller min_count"
            )
        model.train(
            corpus_file=str(tokens),
            total_examples=model.corpus_count,
            total_words=model.corpus_total_words,
            epochs=model.epochs,
        )
    tokens.unlink()
    return Vectors(tuple(model.wv.index_to_key), model.wv.vectors)


def _pieces(texts: Path) -> Iterator[str]:
    """The lines of a file of :func:`training_lines`, without marks."""
    return (line.removesuffix(CUT) for line in read_lines(texts))


def _bigrams(line: str) -> str:
    """The bigrams of a line, separated by spaces; a piece whose paragraph continues has no end."""
    text = line.removesuffix(CUT)
    end = [] if line.endswith(CUT) else [text[-1] + "<end>"]
    return " ".join([*(first + second for first, second in pairwise(text)), *end])


def _words(lexicon: Lexicon, texts: Path, counts: Counts, progress: Progress) -> Iterator[str]:
    """The words of each line in its most probable segmentation, separated by spaces."""
    counting, segmenting = (
        _followed(_pieces(texts), counts.characters, stage, progress) for stage in ("counting words", "segmenting")
    )
    occurrences = count_matches(lexicon, counting)
    with np.errstate(divide="ignore"):
        log_probability = np.log(occurrences / counts.characters)
    return map(" ".join, segment(lexicon, segmenting, log_probability, UNKNOWN))


def _without_single_characters(words: Vectors) -> Vectors:
    rows = [row for row, name in enumerate(words.names) if len(name) > 1]
    return Vectors(tuple(words.names[row] for row in rows), words.matrix[rows])


def _followed(texts: Iterable[str], total: int, stage: str, progress: Progress) -> Iterator[str]:
    """The texts; reports the share of the ``total`` characters that has been read."""
    done = 0
    for number, text in enumerate(texts, 1):
        yield text
        done += len(text)
        if number % 10_000 == 0 or done == total:
            progress(stage, done / total)


def _write(path: Path, lines: Iterable[str]) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(line + "\n" for line in lines)
    except OSError as error:
        raise DataError(
            f"a temporary file cannot be written: {error.strerror or error}; free disk space, or set TMPDIR", path
        ) from error


@contextmanager
def _reports(progress: Callable[[float], None], epochs: int) -> Iterator[None]:
    """Turn gensim's progress log into calls of ``progress``; the log itself is not shown.

    The first pass, which counts tokens, is short and not reported.
    """

    class Reports(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if str(record.msg).startswith("EPOCH %i - PROGRESS") and isinstance(record.args, tuple):
                epoch, percent = record.args[:2]
                progress((float(str(epoch)) + float(str(percent)) / 100) / epochs)

    logger = logging.getLogger("gensim.models.word2vec")
    before = logger.level, logger.propagate
    handler = Reports()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        progress(0.0)
        yield
        progress(1.0)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
