"""Subword tokens of a language model, their alignment with characters, and windows over long texts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from hanlattice.errors import ModelError

# Tokenizers reject lone surrogates, which Python strings may contain.
_SURROGATES = re.compile("[\ud800-\udfff]")

# Chinese, Latin, full-width and unknown characters, to test whether a tokenizer reports usable offsets.
PROBE = "重庆ＡＢ abc,１２３㍿😀 (李明)"


@dataclass(frozen=True)
class Subwords:
    """The S subwords of a text of N characters.

    Attributes:
        ids: Ids of the subwords, ``[S]``.
        first: The first subword of each character, ``[N]``.
        last: The last subword of each character, inclusive, ``[N]``.
    """

    ids: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


class SubwordReader:
    """Tokenizes texts by a Hugging Face tokenizer, and aligns the subwords with characters.

    The alignment uses the tokenizer's offsets, so the tokenizer may normalise texts. Several characters that it
    maps to one unknown token are tokenized one by one instead. A character without a subword, such as a space, gets
    the subwords before and after it. Special tokens such as ``[SEP]`` in a text are read as plain text.

    Args:
        tokenizer: The tokenizer. A slow one, which has no offsets, reads all texts character by character.
        by_character: Whether every character is tokenized by itself.

    Raises:
        ModelError: The subwords cannot be aligned with characters.
    """

    def __init__(self, tokenizer: Any, *, by_character: bool = False):
        self.tokenizer, self.by_character = tokenizer, by_character or not tokenizer.is_fast
        known = (tokenizer.unk_token_id, tokenizer.pad_token_id, 0)
        self.unknown = next(token for token in known if token is not None)
        self._ids_of_character: dict[str, list[int]] = {}
        covered = {i for _, start, end in next(self._tokenized([PROBE])) for i in range(start, end)}
        if any(i not in covered for i, character in enumerate(PROBE) if character.isalnum()):
            raise ModelError(f"its tokenizer cannot be aligned: it leaves out characters of {PROBE!r}")

    def __call__(self, texts: Sequence[str]) -> list[Subwords]:
        """Tokenize texts."""
        plain = [_SURROGATES.sub("\ufffd", text) for text in texts]
        tokenized = zip(plain, self._tokenized(plain), strict=True)
        return [_aligned(tokens or [(self.unknown, 0, len(text))], len(text)) for text, tokens in tokenized]

    def _tokenized(self, texts: Sequence[str]) -> Iterator[list[tuple[int, int, int]]]:
        """The subwords of each text, as id, start and end."""
        if self.by_character:
            yield from (list(self._one_by_one(text)) for text in texts)
            return
        encoded = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            verbose=False,  # no warning for texts beyond its window, which are cut below
        )
        for text, ids, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
            yield list(self._without_long_unknowns(text, ids, offsets))

    def _without_long_unknowns(
        self, text: str, ids: Iterable[int], offsets: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        """The subwords of a text; an unknown token of several characters is tokenized character by character."""
        before = 0
        for token, (start, end) in zip(ids, offsets, strict=True):
            if not before <= start <= end <= len(text):
                raise ModelError(
                    f"its tokenizer cannot be aligned: it puts a token at {start}-{end}, after one at"
                    f" {before}, in the {len(text)} characters {text[:20]!r}…"
                )
            before = start
            if token == self.unknown and end - start > 1:
                yield from self._one_by_one(text[start:end], start)
            else:
                yield token, start, end

    def _one_by_one(self, text: str, offset: int = 0) -> Iterator[tuple[int, int, int]]:
        """The subwords of each character of a text that begins at an offset."""
        for i, character in enumerate(text, offset):
            if character not in self._ids_of_character:
                self._ids_of_character[character] = self.tokenizer.encode(character, add_special_tokens=False)
            yield from ((token, i, i + 1) for token in self._ids_of_character[character])


def _aligned(tokens: Sequence[tuple[int, int, int]], n: int) -> Subwords:
    """Align subwords, as id, start and end, with ``n`` characters.

    A character without a subword gets the subwords before and after it; at the ends of the text there is only one.
    """
    ids, start, end = np.array(tokens, np.int64).reshape(-1, 3).T
    lengths = end - start
    subword = np.repeat(np.arange(len(ids)), lengths)
    character = np.arange(len(subword)) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)
    first, last = np.full(n, len(ids)), np.full(n, -1)
    np.minimum.at(first, character, subword)
    np.maximum.at(last, character, subword)
    left, right = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]
    bare = last < 0
    first[bare] = np.where(left >= 0, left, right)[bare]
    last[bare] = np.where(right < len(ids), right, left)[bare]
    return Subwords(ids, first, last)


def windows(n: int, size: int) -> tuple[list[int], NDArray[np.int64]]:
    """Cut ``n`` subwords into windows of ``size``, which overlap by half.

    Returns:
        The start of each window, and for each subword the window it is read from: the one whose cut edges are
        farthest from it, ``[n]``.
    """
    if n <= size:
        return [0], np.zeros(n, np.int64)
    starts = [*range(0, n - size, max(size // 2, 1)), n - size]
    begin, subword = np.array(starts)[:, None], np.arange(n)
    left = np.where(begin > 0, subword - begin, n)
    right = np.where(begin + size < n, begin + size - 1 - subword, n)
    return starts, np.minimum(left, right).argmax(0)


@dataclass(frozen=True)
class Rows:
    """The input of a language model, and how its output vectors are averaged for each character.

    Attributes:
        ids: R rows of S subwords, ``[R, S]``.
        lengths: The number of subwords of each row, ``[R]``.
        index: The subwords of each character, at most K, as indices into the flattened rows, ``[B, N, K]``.
        weight: The weights of these subwords, ``[B, N, K]``. They sum to 1 for a character and to 0 for padding.
    """

    ids: Int[np.ndarray, "R S"]
    lengths: Int[np.ndarray, "R"]
    index: Int[np.ndarray, "B N K"]
    weight: np.ndarray


def rows_of(
    texts: Sequence[Subwords], n: int, size: int, before: Sequence[int], after: Sequence[int], padding: int
) -> Rows:
    """Lay texts out as rows, one for each window of each text.

    Args:
        texts: The subwords of B texts.
        n: The number of columns N of the batch.
        size: Maximum number of subwords of a window.
        before: Special tokens before each window, such as ``[CLS]``.
        after: Special tokens after each window, such as ``[SEP]``.
        padding: The token that fills shorter rows.
    """
    rows: list[list[int]] = []
    positions = []  # row and column of the subwords of each text
    for text in texts:
        starts, window = windows(len(text.ids), size)
        column = len(before) + np.arange(len(text.ids)) - np.array(starts)[window]
        positions.append((len(rows) + window, column))
        rows += [[*before, *text.ids[start : start + size].tolist(), *after] for start in starts]
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), max(lengths)), padding)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    counts = [text.last - text.first + 1 for text in texts]
    most = np.arange(max((int(c.max(initial=1)) for c in counts), default=1))
    index = np.zeros((len(texts), n, len(most)), np.int64)
    weight = np.zeros(index.shape, np.float32)
    for b, (text, count, (row_of, column)) in enumerate(zip(texts, counts, positions, strict=True)):
        subword = np.minimum(text.first[:, None] + most, text.last[:, None])
        index[b, : len(subword)] = (row_of * ids.shape[1] + column)[subword]
        weight[b, : len(subword)] = (most < count[:, None]) / count[:, None]
    return Rows(ids, lengths, index, weight)
