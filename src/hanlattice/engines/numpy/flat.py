"""FLAT with one layer in numpy. It computes the same as :mod:`hanlattice.engines.native` in float32.

Linear maps run on the characters of all sentences of a batch together; attention runs on one sentence at a time, so
nothing is padded.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from hanlattice.engines.folding import Affine, FoldedFlat, Settings, Weights, refuse_infinite, stacked
from hanlattice.engines.numpy.tables import Table, apply, mean_rows, rows_of_words
from hanlattice.inputs.encoded import Sentences

# Largest number of attention scores of a block of queries: more would not fit into the cache of a core.
SCORES_AT_ONCE = 1 << 20
EPSILON = 1e-5  # of LayerNorm, as in torch


class FlatArrays:
    """``read(sentences, convention)`` computes the emissions of all characters.

    Args:
        weights: the weights of a model folder, by their names. A table in int8 has its scales under its name
            followed by :data:`~hanlattice.model.folder.SCALE`.
        settings: the settings of the encoder.
        conventions: annotation conventions of the weights; "" is the default one.

    Raises:
        ModelError: the weights are so large that products of them are not finite.
    """

    def __init__(self, weights: Weights, settings: Settings, *, conventions: Sequence[str] = ("",)):
        self._folded = folded = FoldedFlat(weights, settings, conventions)
        self._chars = Table.of(weights, "embedding.chars.weight")
        has_bigrams = "embedding.bigrams.weight" in weights
        self._bigrams = Table.of(weights, "embedding.bigrams.weight") if has_bigrams else None
        self._words = Table.of(weights, "encoder.words.table.weight")
        parts = [part for part in (folded.query, folded.key, folded.value, folded.residual) if part is not None]
        of_char = stacked(*parts)
        if folded.composition is not None:
            maps = np.concatenate(folded.composition[:3])
            of_char = stacked(of_char, Affine(maps, np.zeros(len(maps), np.float32)))
        self._of_char = {name: _shifted(of_char, head.shift) for name, head in folded.conventions.items()}
        self._of_word = stacked(folded.word_key, folded.word_value)
        more = [head.emission for head in folded.conventions.values()] + [folded.inner, folded.outer]
        if folded.output is not None:
            more.append(folded.output)
        refuse_infinite(*(array for part in (*self._of_char.values(), self._of_word, *more) for array in part))
        self._encodings: dict[int, Float[np.ndarray, "A d S"]] = {}

    def read(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N Y"]:
        """Emissions ``[N Y]`` of the N characters of all sentences. No sentence may be longer than the window."""
        folded, d = self._folded, self._folded.d_model
        x = self._chars.rows(sentences.chars)
        if self._bigrams:
            x = np.concatenate([x, self._bigrams.rows(sentences.bigrams)], 1)
        projected = apply(self._of_char[convention], x)
        of_words = apply(self._of_word, self._word_vectors(sentences, projected))
        attended = self._attended(sentences, projected[:, : 3 * d], of_words)
        if folded.output is not None:
            attended = apply(folded.output, attended)
        carries_input = folded.residual is not None
        h = _normed(attended + (projected[:, 3 * d : 4 * d] if carries_input else attended), folded.attention_norm)
        fed = apply(folded.outer, np.maximum(apply(folded.inner, h), 0))
        fed = _normed(fed + (h if carries_input else fed), folded.feed_forward_norm)
        return apply(folded.conventions[convention].emission, fed)

    def _word_vectors(
        self, sentences: Sentences, projected: Float[np.ndarray, "N S"]
    ) -> Float[np.ndarray, "M D_word"]:
        """The vectors of the M words of all sentences; those of characters end with the summands of words."""
        vectors = self._words.rows(sentences.words)
        composition = self._folded.composition
        if composition is None:
            return vectors
        first, last, mean = np.split(projected[:, -3 * vectors.shape[1] :], 3, 1)
        start, end = rows_of_words(sentences)
        length = end - start
        vectors += first[start] + last[end - 1]
        vectors += mean_rows(mean, start, end)
        vectors += composition.length[np.minimum(length, len(composition.length) - 1)]
        vectors += composition.label[sentences.word_labels]
        return vectors

    def _attended(
        self, sentences: Sentences, of_chars: Float[np.ndarray, "N 3D"], of_words: Float[np.ndarray, "M 2D"]
    ) -> Float[np.ndarray, "N D"]:
        """The result of attention for the characters of all sentences."""
        folded, d = self._folded, self._folded.d_model
        out = np.empty((len(of_chars), d), np.float32)
        chars, words = sentences.first_char.tolist(), sentences.first_word.tolist()
        for i in range(len(sentences)):
            a, b, c, e = chars[i], chars[i + 1], words[i], words[i + 1]
            query = of_chars[a:b, :d]
            key, value = np.split(np.concatenate([of_chars[a:b, d:], of_words[c:e]]), 2, 1)
            columns = self._columns(b - a, sentences.start[c:e], sentences.end[c:e])
            content, position = _by_head(query + folded.u, folded.heads), _by_head(query + folded.v, folded.heads)
            key, value = _by_head(key, folded.heads), _by_head(value, folded.heads)
            step = max(1, SCORES_AT_ONCE // (folded.heads * (columns.encodings.shape[2] + key.shape[1])))
            for first in range(0, b - a, step):
                block = slice(first, min(first + step, b - a))
                scores = content[:, block] @ key.swapaxes(1, 2)
                _add_positions(scores, position[:, block] @ columns.encodings, columns.of_key, first)
                np.exp(scores - scores.max(-1, keepdims=True), out=scores)
                found = scores @ value / scores.sum(-1, keepdims=True)
                out[a + block.start : a + block.stop] = found.swapaxes(0, 1).reshape(-1, d)
        return out

    def _columns(self, n: int, start: Int[np.ndarray, "M"], end: Int[np.ndarray, "M"]) -> "_Columns":
        """The position encodings that a sentence of n characters needs, one range of distances for each length."""
        window = self._folded.settings.window
        parts, size = [self._of_length(1)[..., window - n + 1 : window + n]], 2 * n - 1
        of_key = np.empty(n + len(start), np.int64)
        of_key[:n] = np.arange(n)[::-1]
        length = end - start
        for one in np.flatnonzero(np.bincount(length)).tolist():
            chosen = np.flatnonzero(length == one)
            heads = start[chosen]
            low, high = int(heads.min()), int(heads.max())
            parts.append(self._of_length(one)[..., window - high : window + n - low])
            of_key[n + chosen] = size + high - heads
            size += n + high - low
        return _Columns(np.concatenate(parts, 2), of_key)

    def _of_length(self, length: int) -> Float[np.ndarray, "A d S"]:
        """Position encodings of keys with a length, one column per distance; see :meth:`FoldedFlat.encodings`."""
        if length not in self._encodings:
            encodings = _by_head(self._folded.encodings(length), self._folded.heads)
            self._encodings[length] = np.ascontiguousarray(encodings.swapaxes(1, 2))
        return self._encodings[length]


class _Columns(NamedTuple):
    """Position encodings for one sentence, ``[A d S]``, and the column of each key for the first query, ``[L]``.

    For the next query, the key's encoding is in the next column. The table of scores of three queries and of the
    characters 0 to 2 as keys, which come first::

        column      0  1  2  3  4
        query 0     2  1  0  .  .
        query 1     .  2  1  0  .
        query 2     .  .  2  1  0
    """

    encodings: Float[np.ndarray, "A d S"]
    of_key: Int[np.ndarray, "L"]


def _add_positions(
    scores: Float[np.ndarray, "A Q L"], table: Float[np.ndarray, "A Q S"], of_key: Int[np.ndarray, "L"], first: int
) -> None:
    """Add the scores of positions for the Q queries from ``first`` on, from the table of all columns.

    A view of the table with one more column per row selects the column of each query.
    """
    heads, n, size = table.shape
    flat = np.ascontiguousarray(table).reshape(heads, n * size)
    at = (np.arange(n) * (size + 1) + first)[:, None] + of_key
    scores += flat.take(at.ravel(), 1).reshape(scores.shape)


def _shifted(of_char: Affine, shift: Float[np.ndarray, "D_in"] | None) -> Affine:
    """The map of a shifted embedding."""
    return of_char if shift is None else Affine(of_char.weight, of_char.bias + of_char.weight @ shift)


def _by_head(x: Float[np.ndarray, "N D"], heads: int) -> Float[np.ndarray, "A N d"]:
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def _normed(x: Float[np.ndarray, "N D"], norm: Affine) -> Float[np.ndarray, "N D"]:
    """LayerNorm."""
    x = x - x.mean(1, keepdims=True)
    x *= 1 / np.sqrt((x * x).mean(1, keepdims=True) + EPSILON)
    x *= norm.weight
    x += norm.bias
    return x
