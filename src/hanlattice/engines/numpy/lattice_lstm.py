"""Lattice LSTM in numpy, equal to :class:`hanlattice.encoders.lattice_lstm.LatticeLSTM`.

The cell state of a word is computed at the step of its first character, with its share in the cell state of its
last character. There, only the shares of all words that end are added.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hanlattice.engines.folding import Affine, Part, Weights
from hanlattice.engines.numpy.bilstm import gates_of, in_order
from hanlattice.engines.numpy.embeddings import Words
from hanlattice.engines.numpy.steps import Steps
from hanlattice.engines.numpy.tables import apply
from hanlattice.inputs.encoded import Sentences


class LatticeLSTM:
    """Both directions of a Lattice LSTM."""

    def __init__(self, weights: Weights, prefix: str):
        self._words = Words(weights, prefix)
        self._ahead, self._back = (_Direction.of(Part(weights, f"{prefix}{name}.")) for name in ("ahead", "back"))

    def __call__(self, x: Float[np.ndarray, "N D_in"], sentences: Sentences) -> Float[np.ndarray, "N 2*H"]:
        """The vectors of the characters of all sentences, from their embeddings."""
        steps, vectors = Steps.of(sentences), self._words(sentences, x)
        several = sentences.end - sentences.start > 1  # words of one character are not read
        hidden = [
            _read(direction, x, vectors[several], _Ends.of(sentences, steps, several, is_back=is_back), steps, rows)
            for direction, is_back, rows in zip((self._ahead, self._back), (False, True), steps.rows, strict=True)
        ]
        return in_order(np.stack(hidden), steps)


class _Direction(NamedTuple):
    """The weights of one direction; inputs of sigmoids are halved for :func:`gates_of`.

    The gates of a character are o, i, f (unless it is 1 - i) and the candidate, those of a word i, f and candidate.
    """

    char_input: Affine
    char_state: Float[np.ndarray, "H G"]
    word_input: Affine
    word_state: Float[np.ndarray, "H 3*H"]
    merge_input: Affine
    merge_state: Float[np.ndarray, "H H"]

    @classmethod
    def of(cls, part: Part) -> "_Direction":
        d = len(part["merge_input.bias"])
        found: list[Affine | np.ndarray] = []
        for name, sigmoids in (("char", -d), ("word", -d), ("merge", d)):
            of_input, of_state = part.affine(f"{name}_input"), part[f"{name}_state.weight"]
            for array in (*of_input, of_state):
                array[:sigmoids] /= 2
            found += [of_input, np.ascontiguousarray(of_state.T)]
        return cls(*found)  # type: ignore[arg-type]


class _Ends(NamedTuple):
    """The W words of a batch for one direction, in the order of the steps at which they begin.

    Attributes:
        words: rows among the words of several characters.
        begin: the place at which the words of each step begin, and their end.
        place: of the sentence of each word, see :class:`Steps`.
        last: the row of the character with which each word ends.
        into: the place of each word in the order of the steps at which words end, then of the sentences.
        end: the place in that order at which the words of each step begin, and their end.
        is_first: whether a word is the first one, in that order, that ends at its character.
        target: the place of the sentence of each word, in that order.
    """

    words: Int[np.ndarray, "W"]
    begin: Int[np.ndarray, "S"]
    place: Int[np.ndarray, "W"]
    last: Int[np.ndarray, "W"]
    into: Int[np.ndarray, "W"]
    end: Int[np.ndarray, "S"]
    is_first: Bool[np.ndarray, "W"]
    target: Int[np.ndarray, "W"]

    @classmethod
    def of(cls, sentences: Sentences, steps: Steps, several: Bool[np.ndarray, "M"], *, is_back: bool) -> "_Ends":
        sentence = np.repeat(np.arange(len(sentences)), np.diff(sentences.first_word))[several]
        first, last = sentences.start[several], sentences.end[several] - 1
        if is_back:
            first, last = last, first
        row = sentences.first_char[sentence] + last
        if is_back:
            length = np.diff(sentences.first_char)[sentence]
            first, last = length - 1 - first, length - 1 - last
        words = np.argsort(first, kind="stable")
        first, last, place, row = first[words], last[words], steps.rank[sentence[words]], row[words]
        order = np.lexsort((place, last))
        into = np.empty(len(order), np.int64)
        into[order] = np.arange(len(order))
        every = np.arange(len(steps.first))
        key = last[order] * len(steps.rank) + place[order]
        return cls(
            words=words,
            begin=np.searchsorted(first, every),
            place=place,
            last=row,
            into=into,
            end=np.searchsorted(last[order], every),
            is_first=np.diff(key, prepend=-1) > 0,
            target=place[order],
        )


def _read(
    direction: _Direction,
    x: Float[np.ndarray, "N D_in"],
    vectors: Float[np.ndarray, "W D_word"],
    ends: _Ends,
    steps: Steps,
    rows: Int[np.ndarray, "N"],
) -> Float[np.ndarray, "N H"]:
    """The states of one direction, in the order of reading."""
    d = len(direction.merge_state)
    gates = apply(direction.char_input, x)[rows]
    word_gates = apply(direction.word_input, vectors)[ends.words]
    merges = apply(direction.merge_input, x)[ends.last]
    shares = np.empty((len(merges), 2 * d), np.float32)  # in the numerator and in the denominator
    hidden = np.empty((len(x), d), np.float32)
    h, c = np.zeros((2, len(steps.rank), d), np.float32)
    begin, end = ends.begin.tolist(), ends.end.tolist()
    for t, step in enumerate(steps.slices()):
        k = step.stop - step.start
        now, h, c = gates[step], h[:k], c[:k]
        now += h @ direction.char_state
        gates_of(now, d)
        o, i, g = now[:, :d], now[:, d : 2 * d], now[:, -d:]
        forget = now[:, 2 * d : 3 * d] if now.shape[1] > 3 * d else 1 - i
        c = forget * c + i * g
        if end[t] < end[t + 1]:
            here = slice(end[t], end[t + 1])
            first = np.flatnonzero(ends.is_first[here])
            at = ends.target[here][first]
            sums = np.add.reduceat(shares[here], first)
            weight = np.exp(i[at])
            c[at] = (sums[:, :d] + weight * g[at]) / (sums[:, d:] + weight)
        h = o * np.tanh(c)
        hidden[step] = h
        if begin[t] < begin[t + 1]:
            here = slice(begin[t], begin[t + 1])
            at = ends.place[here]
            word = word_gates[here]
            word += h[at] @ direction.word_state
            gates_of(word, d)
            cell = word[:, d : 2 * d] * c[at] + word[:, :d] * word[:, 2 * d :]
            s = np.tanh(merges[here] + cell @ direction.merge_state)
            share = np.exp((s + 1) / 2)
            shares[ends.into[here], :d], shares[ends.into[here], d:] = share * cell, share
    return hidden
