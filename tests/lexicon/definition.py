"""What a lexicon has to find, by definition, and words and texts to test it with."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from hanlattice.kernels.library import opened
from hanlattice.lexicon import Lexicon

ALPHABET = "一二三A😀\U00020000"
word_lists = st.lists(st.text(ALPHABET, min_size=1, max_size=5), max_size=12)
texts = st.text(ALPHABET + "四\0\n", max_size=40)


def every_word(words: set[str], text: str, min_length: int = 1) -> list[tuple[int, int, str]]:
    """The definition: each substring that is a word, by (start, end)."""
    return [
        (start, end, text[start:end])
        for start in range(len(text))
        for end in range(start + min_length, len(text) + 1)
        if text[start:end] in words
    ]


def found(lexicon: Lexicon, text: str, min_length: int = 1) -> list[tuple[int, int, str]]:
    matches = lexicon.match(text, min_length)
    return list(zip(matches.start.tolist(), matches.end.tolist(), lexicon.words_of(matches), strict=True))


def random_text(seed: int, length: int) -> str:
    """Characters of falling frequency, as in Chinese."""
    rng = np.random.default_rng(seed)
    codes = 0x4E00 + (rng.pareto(0.8, length) * 5).clip(0, 20000).astype(np.uint32)
    return codes.tobytes().decode("utf-32-le")


def random_words(seed: int, count: int) -> list[str]:
    rng, text = np.random.default_rng(seed), random_text(seed, 5 * count)
    starts = rng.integers(0, len(text) - 8, count)
    return list({text[start : start + size] for start, size in zip(starts, rng.integers(1, 8, count), strict=True)})


@contextmanager
def searched_by(level: str | None) -> Iterator[None]:
    """The kernel of a level, or none: then numpy, and short texts in plain Python."""
    library = opened(level) if level else None
    with (
        mock.patch("hanlattice.lexicon.trie.kernels", return_value=library),
        mock.patch("hanlattice.lexicon.layers.kernels", return_value=library),
    ):
        yield
