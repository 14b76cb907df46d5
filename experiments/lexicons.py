"""Lexicons of several sizes: half of the words that have a vector, all of them, and twice as many."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from experiments.arms import Setup
from experiments.corpora import SEED, kept
from hanlattice.config.files import located
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from hanlattice.lexicon import Lexicon
from hanlattice.training.vocabularies import load_vectors

SIZES = ("half", "full", "double")


def word_lists(setup: Setup, config: Config) -> dict[str, str]:
    """A word list of each size, by its name in ``SIZES``, in the folder of the experiment.

    ``full`` has the words with a vector in the vectors of ``config``. ``half`` is a random half of them. ``double``
    has as many further words, drawn from ``setup.words``; they have no vector.

    Raises:
        ConfigError: ``setup.words`` has too few further words.
    """
    full = sorted(set(load_vectors(config).words.names))
    further = _drawn(Lexicon.open(located(setup.words)), full, setup.words)
    half = np.random.default_rng(SEED).permutation(len(full))[: len(full) // 2]
    lists = zip(SIZES, ([full[i] for i in half], full, [*full, *further]), strict=True)
    return {size: kept(setup.output / "lexicons" / f"{size}.txt", partial(_write, words)) for size, words in lists}


def _drawn(more: Iterable[str], full: Sequence[str], path: str) -> list[str]:
    """As many words as ``full`` has, of those that are not in it and have at least two characters."""
    others = sorted({word for word in more if len(word) > 1} - set(full))
    if len(others) < len(full):
        raise ConfigError(
            f"{path} has {len(others):,} further words, but {len(full):,} are needed;"
            " name a longer list with --words"
        )
    return [others[i] for i in np.random.default_rng(SEED).permutation(len(others))[: len(full)]]


def _write(words: Iterable[str], path: Path) -> None:
    path.write_text("".join(f"{word}\n" for word in words), "utf-8")
