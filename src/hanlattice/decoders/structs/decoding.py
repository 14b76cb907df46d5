r"""Inference in linear chains, on numpy arrays and without torch: Viterbi, and the probability of an entity.

The equations are in :mod:`hanlattice.decoders.structs.linear_chain`. The forward-backward algorithm works with
probabilities in float64 and rescales them at every step. Sentences are sorted by length, longest first. A step then
reads only the first sentences, those that are long enough, and needs no mask::

    sentence 1   x x x x x
    sentence 2   x x x
    sentence 3   x x
    n_active     3 3 2 1 1
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

# Lower limit of an exponentiated emission, relative to the best tag. It keeps the sum of a step above 0 if only
# such tags are allowed there. Sums are exact unless every allowed tag scores 575 less than a forbidden one.
MIN_POTENTIAL = 1e-250
# Upper limit of backward messages. Those of tags that cannot be reached may grow without bound; with the limit,
# their product with the forward messages stays finite.
MAX_MESSAGE = 1e30


@dataclass(frozen=True)
class Potentials:
    """The scores of a batch of linear chains, padded on the right.

    Attributes:
        emissions: ``[B, N, Y]``.
        transitions: ``[Y, Y]``, from row to column.
        start: ``[Y]``.
        end: ``[Y]``.
        lengths: The number of characters of each sentence, at least 1, ``[B]``.
    """

    emissions: Float[np.ndarray, "B N Y"]
    transitions: Float[np.ndarray, "Y Y"]
    start: Float[np.ndarray, "Y"]
    end: Float[np.ndarray, "Y"]
    lengths: Int[np.ndarray, "B"]

    def of(self, sentences: Int[np.ndarray, "S"]) -> "Potentials":
        """The scores of some sentences, cut to the length of the longest of them."""
        lengths = self.lengths[sentences]
        emissions = self.emissions[sentences, : lengths.max(initial=0)]
        return Potentials(emissions, self.transitions, self.start, self.end, lengths)

    def n_active(self) -> list[int]:
        """For each position t, the number of sentences with more than t characters, ``[N]``."""
        n = self.emissions.shape[1]
        ended = np.bincount(self.lengths, minlength=n + 1)[: n + 1].cumsum()
        counts: list[int] = (len(self.lengths) - ended[:n]).tolist()
        return counts


def viterbi(p: Potentials) -> tuple[Int[np.ndarray, "B N"], Float[np.ndarray, "B"]]:
    """The best sequence of each sentence, by the Viterbi algorithm.

    Returns:
        Ids of the tags, 0 for padding, ``[B, N]``, and the score of each sequence, ``[B]``.
    """
    order = np.argsort(-p.lengths, kind="stable")
    e = np.ascontiguousarray(p.emissions[order].swapaxes(0, 1))  # [N B Y]
    n, n_active = len(e), p.n_active()
    best = np.empty_like(e)  # best score of all sequences up to a position that end in a tag
    best[0] = p.start + e[0]
    last = best[0].copy()
    for t in range(1, n):
        b = n_active[t]
        moved = best[t - 1, :b].T[:, :, None] + p.transitions[:, None, :]  # [from b to]
        last[:b] = best[t, :b] = moved.max(0) + e[t, :b]
    last += p.end
    tag, total = last.argmax(1), last.max(1)
    tags = np.zeros((n, len(order)), np.int64)
    into = np.ascontiguousarray(p.transitions.T)
    for t in reversed(range(1, n)):
        b = n_active[t]
        tags[t, :b] = tag[:b]
        tag[:b] = (best[t - 1, :b] + into[tag[:b]]).argmax(1)
    tags[0] = tag
    found, scores = np.empty_like(tags.T), np.empty_like(total)
    found[order], scores[order] = tags.T, total
    return found, scores


class Messages(NamedTuple):
    r"""Forward and backward messages, normalised at each step, so that :math:`p(y_t) = \alpha_t \beta_t`.

    Attributes:
        alpha: Forward messages, ``[N, B, Y]``.
        beta: Backward messages, ``[N, B, Y]``.
        emissions: Exponentiated emissions, divided by the scale of each step, ``[N, B, Y]``.
        transitions: Exponentiated transitions, ``[Y, Y]``.
    """

    alpha: Float[np.ndarray, "N B Y"]
    beta: Float[np.ndarray, "N B Y"]
    emissions: Float[np.ndarray, "N B Y"]
    transitions: Float[np.ndarray, "Y Y"]


def messages(p: Potentials) -> Messages:
    """The forward-backward algorithm, with sentences in their original order. Values for padding are undefined."""
    order = np.argsort(-p.lengths, kind="stable")
    e = p.emissions[order].swapaxes(0, 1).astype(np.float64)
    e = np.maximum(np.exp(e - e.max(-1, keepdims=True)), MIN_POTENTIAL)
    a, end = np.exp(p.transitions.astype(np.float64)), np.exp(p.end.astype(np.float64))
    n, n_active = len(e), p.n_active()
    alpha, beta, scaled = np.zeros_like(e), np.zeros_like(e), np.ones_like(e)
    state = np.exp(p.start.astype(np.float64)) * e[0]
    for t in range(n):
        b = n_active[t]
        if t:
            state = (state[:b] @ a) * e[t, :b]
        scale = state.sum(-1, keepdims=True)
        scaled[t, :b] = e[t, :b] / scale
        alpha[t, :b] = state = state / scale
    last = alpha[p.lengths[order] - 1, np.arange(len(order))]
    closing = end / (last @ end)[:, None]
    for t in reversed(range(n)):
        b = n_active[t]
        beta[t, :b] = closing[:b]
        if t + 1 < n and (longer := n_active[t + 1]):
            beta[t, :longer] = np.minimum((beta[t + 1, :longer] * scaled[t + 1, :longer]) @ a.T, MAX_MESSAGE)
    back = np.argsort(order)
    return Messages(alpha[:, back], beta[:, back], scaled[:, back], a)


def segment_probability(
    p: Potentials,
    joined: Bool[np.ndarray, "Y Y"],
    sentence: Int[np.ndarray, "W"],
    start: Int[np.ndarray, "W"],
    end: Int[np.ndarray, "W"],
    tags: Bool[np.ndarray, "W Y"],
) -> Float[np.ndarray, "W"]:
    """The probability, over all tag sequences, that the characters ``[start, end)`` are exactly one segment.

    A segment is exact if its neighbouring characters are not joined to it.

    Args:
        p: The scores of B sentences.
        joined: Whether two neighbouring tags (row, then column) belong to one segment, ``[Y, Y]``.
        sentence: The sentence of each of W segments, ``[W]``.
        start: The first character of each segment, ``[W]``.
        end: The character after each segment, ``[W]``.
        tags: The tags that the first character of each segment may have, ``[W, Y]``.

    Returns:
        The probabilities, ``[W]``.
    """
    m = messages(p)
    inside, between = m.transitions * joined, m.transitions * ~joined
    last = end - 1
    opened = (m.alpha[start - 1, sentence] @ between) * m.emissions[start, sentence]
    state = np.where((start == 0)[:, None], m.alpha[0, sentence], opened) * tags
    for step in range(1, int((end - start).max(initial=0))):
        t = np.minimum(start + step, last)
        longer = (state @ inside) * m.emissions[t, sentence]
        state = np.where((start + step < end)[:, None], longer, state)
    following = np.minimum(end, len(m.beta) - 1)
    closed = (m.emissions * m.beta)[following, sentence] @ between.T
    beta = np.where((end == p.lengths[sentence])[:, None], m.beta[last, sentence], closed)
    return np.asarray((state * beta).sum(1))
