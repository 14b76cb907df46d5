"""BiLSTM in numpy, equal to :class:`hanlattice.encoders.bilstm.BiLSTM`."""

from itertools import count, takewhile

import numpy as np
from jaxtyping import Float

from hanlattice.engines.folding import Affine, Part, Weights
from hanlattice.engines.numpy.steps import Steps
from hanlattice.engines.numpy.tables import apply
from hanlattice.inputs.encoded import Sentences


class BiLSTM:
    """All layers of a bidirectional LSTM over characters."""

    def __init__(self, weights: Weights, prefix: str):
        names = (f"{prefix}recurrence.layers.{i}." for i in count())
        there = takewhile(lambda name: f"{name}forwards.weight_ih_l0" in weights, names)
        self._layers = [_Layer(weights, name) for name in there]

    def __call__(self, x: Float[np.ndarray, "N D_in"], sentences: Sentences) -> Float[np.ndarray, "N D_out"]:
        """The vectors of the characters of all sentences, from their embeddings."""
        steps = Steps.of(sentences)
        for layer in self._layers:
            x = layer(x, steps)
        return x


class _Layer:
    """One LSTM in each direction. The gates are in the order input, forget, output and candidate."""

    def __init__(self, weights: Weights, prefix: str):
        directions = [Part(weights, f"{prefix}{name}.") for name in ("forwards", "backwards")]
        self._of_input = [
            _gates(Affine(part["weight_ih_l0"], part["bias_ih_l0"] + part["bias_hh_l0"])) for part in directions
        ]
        no_bias = np.zeros(len(self._of_input[0].bias), np.float32)
        of_state = [_gates(Affine(part["weight_hh_l0"], no_bias)).weight.T for part in directions]
        self._of_state: Float[np.ndarray, "2 H 4*H"] = np.ascontiguousarray(np.stack(of_state))

    def __call__(self, x: Float[np.ndarray, "N D_in"], steps: Steps) -> Float[np.ndarray, "N 2*H"]:
        d, n_sentences = self._of_state.shape[1], len(steps.rank)
        gates = np.stack([apply(f, x)[rows] for f, rows in zip(self._of_input, steps.rows, strict=True)])
        hidden = np.empty((2, len(x), d), np.float32)
        h, c = np.zeros((2, 2, n_sentences, d), np.float32)
        for step in steps.slices():
            k = step.stop - step.start
            now, h, c = gates[:, step], h[:, :k], c[:, :k]
            now += h @ self._of_state
            opened = gates_of(now, d)
            c = opened[..., d : 2 * d] * c + opened[..., :d] * opened[..., 3 * d :]
            h = opened[..., 2 * d : 3 * d] * np.tanh(c)
            hidden[:, step] = h
        return in_order(hidden, steps)


def gates_of(x: Float[np.ndarray, "... G*H"], d: int) -> Float[np.ndarray, "... G*H"]:
    """Gates in place: the sigmoid of all but the last ``d`` components, of which it is the tanh.

    The inputs of a sigmoid are halved before, because sigmoid(2 x) = (1 + tanh x) / 2.
    """
    np.tanh(x, out=x)
    sigmoids = x[..., :-d]
    sigmoids *= np.float32(0.5)
    sigmoids += np.float32(0.5)
    return x


def in_order(hidden: Float[np.ndarray, "2 N H"], steps: Steps) -> Float[np.ndarray, "N 2*H"]:
    """The states of both directions, concatenated for each character."""
    _, n, d = hidden.shape
    out = np.empty((n, 2 * d), np.float32)
    out[steps.rows[0], :d], out[steps.rows[1], d:] = hidden
    return out


def _gates(affine: Affine) -> Affine:
    """The map with its gates in our order instead of input, forget, candidate, output; for :func:`gates_of`."""
    halved = [np.concatenate([part[0], part[1], part[3]]) / 2 for part in (np.split(a, 4) for a in affine)]
    candidates = [np.split(a, 4)[2] for a in affine]
    return Affine(*(np.concatenate(parts) for parts in zip(halved, candidates, strict=True)))
