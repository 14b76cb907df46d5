"""Texts as the word pieces of a language model, and which pieces each character is read from."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import NDArray

from hanlattice.errors import ModelError

# Tokenizers refuse half a surrogate pair, which Python's strings may hold.
_SURROGATES = re.compile("[\ud800-\udfff]")

# Chinese, Latin, full width and an unknown character: what a tokenizer has to find its way back from.
PROBE = "重庆ＡＢ abc,１２３㍿😀 (李明)"


@dataclass(frozen=True)
class Pieces:
    """``ids`` of a text's pieces; character ``i`` is read from ``first[i]`` to ``last[i]``, inclusive."""

    ids: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


class PieceReader:
    """Reads texts as pieces, by a tokenizer of Hugging Face; markers as ``[SEP]`` in a text are plain text to it.

    Offsets come from the tokenizer, which may lower-case or widen as it likes. A stretch that it reads as one
    unknown piece is read character by character instead, and so is all of a text with ``by_character``, or if the
    tokenizer is a slow one, which tells no offsets. A character without a piece, such as a space, is read from the
    two pieces around it.

    Raises:
        ModelError: the tokenizer cannot be aligned with texts.
    """

    def __init__(self, tokenizer: Any, *, by_character: bool = False):
        self.tokenizer, self.by_character = tokenizer, by_character or not tokenizer.is_fast
        known = (tokenizer.unk_token_id, tokenizer.pad_token_id, 0)
        self.unknown = next(piece for piece in known if piece is not None)
        self._alone: dict[str, list[int]] = {}
        covered = {i for _, start, end in next(self._pieces([PROBE])) for i in range(start, end)}
        if any(i not in covered for i, character in enumerate(PROBE) if character.isalnum()):
            raise ModelError(f"its tokenizer cannot be aligned: it leaves out characters of {PROBE!r}")

    def __call__(self, texts: Sequence[str]) -> list[Pieces]:
        plain = [_SURROGATES.sub("\ufffd", text) for text in texts]
        read = zip(plain, self._pieces(plain), strict=True)
        return [_placed(pieces or [(self.unknown, 0, len(text))], len(text)) for text, pieces in read]

    def _pieces(self, texts: Sequence[str]) -> Iterator[list[tuple[int, int, int]]]:
        """The pieces of each text, with their start and end in it."""
        if self.by_character:
            yield from (list(self._spelt(text)) for text in texts)
            return
        read = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            split_special_tokens=True,
            return_offsets_mapping=True,
            verbose=False,  # of texts beyond its window, which are cut below
        )
        for text, ids, offsets in zip(texts, read["input_ids"], read["offset_mapping"], strict=True):
            yield list(self._mended(text, ids, offsets))

    def _mended(
        self, text: str, ids: Iterable[int], offsets: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        before = 0
        for piece, (start, end) in zip(ids, offsets, strict=True):
            if not before <= start <= end <= len(text):
                raise ModelError(
                    f"its tokenizer cannot be aligned: it places a piece at {start}-{end}, after one at"
                    f" {before}, in the {len(text)} characters {text[:20]!r}…"
                )
            before = start
            if piece == self.unknown and end - start > 1:
                yield from self._spelt(text[start:end], start)
            else:
                yield piece, start, end

    def _spelt(self, text: str, at: int = 0) -> Iterator[tuple[int, int, int]]:
        for i, character in enumerate(text, at):
            if character not in self._alone:
                self._alone[character] = self.tokenizer.encode(character, add_special_tokens=False)
            yield from ((piece, i, i + 1) for piece in self._alone[character])


def _placed(pieces: Sequence[tuple[int, int, int]], n: int) -> Pieces:
    """The pieces of ``n`` characters; those without one get the pieces around them, or next to them at an end."""
    ids, start, end = np.array(pieces, np.int64).reshape(-1, 3).T
    lengths = end - start
    piece = np.repeat(np.arange(len(ids)), lengths)
    character = np.arange(len(piece)) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)
    first, last = np.full(n, len(ids)), np.full(n, -1)
    np.minimum.at(first, character, piece)
    np.maximum.at(last, character, piece)
    left, right = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]
    bare = last < 0
    first[bare] = np.where(left >= 0, left, right)[bare]
    last[bare] = np.where(right < len(ids), right, left)[bare]
    return Pieces(ids, first, last)


def windows(n: int, size: int) -> tuple[list[int], NDArray[np.int64]]:
    """Where windows of ``size`` pieces over ``n`` begin, each half a window after the one before, and the window
    that each piece is read from: the one whose cut edges are farthest from it."""
    if n <= size:
        return [0], np.zeros(n, np.int64)
    starts = [*range(0, n - size, max(size // 2, 1)), n - size]
    begin, at = np.array(starts)[:, None], np.arange(n)
    left = np.where(begin > 0, at - begin, n)
    right = np.where(begin + size < n, begin + size - 1 - at, n)
    return starts, np.minimum(left, right).argmax(0)


@dataclass(frozen=True)
class Rows:
    """What a language model reads, R rows of S pieces, and where the characters' vectors are found in the result.

    ``index [B N K]`` counts pieces over all rows; ``weight`` sums to 1 over K for a character, to 0 for padding.
    """

    ids: Int[np.ndarray, "R S"]
    lengths: Int[np.ndarray, "R"]
    index: Int[np.ndarray, "B N K"]
    weight: np.ndarray


def laid_out(
    texts: Sequence[Pieces], n: int, size: int, before: Sequence[int], after: Sequence[int], padding: int
) -> Rows:
    """Windows of at most ``size`` pieces, each between the marks ``before`` and ``after`` it, for ``n`` characters
    a text."""
    rows: list[list[int]] = []
    places = []  # of the pieces of each text, as row and column
    for text in texts:
        starts, window = windows(len(text.ids), size)
        column = len(before) + np.arange(len(text.ids)) - np.array(starts)[window]
        places.append((len(rows) + window, column))
        rows += [[*before, *text.ids[start : start + size].tolist(), *after] for start in starts]
    lengths = np.array([len(row) for row in rows])
    ids = np.full((len(rows), max(lengths)), padding)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    counts = [text.last - text.first + 1 for text in texts]
    most = np.arange(max((int(c.max(initial=1)) for c in counts), default=1))
    index = np.zeros((len(texts), n, len(most)), np.int64)
    weight = np.zeros(index.shape, np.float32)
    for b, (text, count, (row_of, column)) in enumerate(zip(texts, counts, places, strict=True)):
        piece = np.minimum(text.first[:, None] + most, text.last[:, None])
        index[b, : len(piece)] = (row_of * ids.shape[1] + column)[piece]
        weight[b, : len(piece)] = (most < count[:, None]) / count[:, None]
    return Rows(ids, lengths, index, weight)
