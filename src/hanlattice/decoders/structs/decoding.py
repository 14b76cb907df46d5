r"""The best sequence of tags of a sentence, and what the sequences have in common: on arrays, without torch.

The same linear chains as in :mod:`hanlattice.decoders.structs.linear_chain`, as they are read once a model is
trained. The sums run in probability space and float64 with rescaling at every step. Sentences are taken longest
first, so that a step works on those that are still going on and nothing has to be masked.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

# A tag's share of a step is taken to be at least this, so that a step of which only such tags are allowed has a
# sum: sums are exact unless every allowed tag scores 575 less than a forbidden one.
FAINTEST = 1e-250
# Backward messages of tags that nothing leads to may grow without end; their product with the former stays finite.
LARGEST = 1e30


@dataclass(frozen=True)
class Potentials:
    """Scores of a batch of linear chains, padded on the right; ``lengths`` are at least 1."""

    emissions: Float[np.ndarray, "B N Y"]
    transitions: Float[np.ndarray, "Y Y"]  # from, to
    start: Float[np.ndarray, "Y"]
    end: Float[np.ndarray, "Y"]
    lengths: Int[np.ndarray, "B"]

    def of(self, sentences: Int[np.ndarray, "S"]) -> "Potentials":
        """Those of some sentences, no wider than need be."""
        lengths = self.lengths[sentences]
        emissions = self.emissions[sentences, : lengths.max(initial=0)]
        return Potentials(emissions, self.transitions, self.start, self.end, lengths)

    def going_on(self) -> list[int]:
        """How many sentences have more than so many characters; to be read longest first."""
        n = self.emissions.shape[1]
        ended = np.bincount(self.lengths, minlength=n + 1)[: n + 1].cumsum()
        counts: list[int] = (len(self.lengths) - ended[:n]).tolist()
        return counts


def viterbi(p: Potentials) -> tuple[Int[np.ndarray, "B N"], Float[np.ndarray, "B"]]:
    """The best sequence of each sentence and its score; 0 beyond its length. Of equal ones, one of them."""
    order = np.argsort(-p.lengths, kind="stable")
    e = np.ascontiguousarray(p.emissions[order].swapaxes(0, 1))  # [N B Y]
    n, going_on = len(e), p.going_on()
    best = np.empty_like(e)  # of all sequences up to here that end in this tag
    best[0] = p.start + e[0]
    last = best[0].copy()
    for t in range(1, n):
        b = going_on[t]
        moved = best[t - 1, :b].T[:, :, None] + p.transitions[:, None, :]  # [from b to]
        last[:b] = best[t, :b] = moved.max(0) + e[t, :b]
    last += p.end
    tag, total = last.argmax(1), last.max(1)
    tags = np.zeros((n, len(order)), np.int64)
    into = np.ascontiguousarray(p.transitions.T)
    for t in reversed(range(1, n)):
        b = going_on[t]
        tags[t, :b] = tag[:b]
        tag[:b] = (best[t - 1, :b] + into[tag[:b]]).argmax(1)
    tags[0] = tag
    found, scores = np.empty_like(tags.T), np.empty_like(total)
    found[order], scores[order] = tags.T, total
    return found, scores


class Messages(NamedTuple):
    r"""Forward and backward messages, each step divided by its sum: :math:`p(y_t) = \alpha_t \beta_t`."""

    alpha: Float[np.ndarray, "N B Y"]
    beta: Float[np.ndarray, "N B Y"]
    emissions: Float[np.ndarray, "N B Y"]
    transitions: Float[np.ndarray, "Y Y"]


def messages(p: Potentials) -> Messages:
    """In the order of the sentences; beyond their lengths they mean nothing."""
    order = np.argsort(-p.lengths, kind="stable")
    e = p.emissions[order].swapaxes(0, 1).astype(np.float64)
    e = np.maximum(np.exp(e - e.max(-1, keepdims=True)), FAINTEST)
    a, end = np.exp(p.transitions.astype(np.float64)), np.exp(p.end.astype(np.float64))
    n, going_on = len(e), p.going_on()
    alpha, beta, scaled = np.zeros_like(e), np.zeros_like(e), np.ones_like(e)
    state = np.exp(p.start.astype(np.float64)) * e[0]
    for t in range(n):
        b = going_on[t]
        if t:
            state = (state[:b] @ a) * e[t, :b]
        scale = state.sum(-1, keepdims=True)
        scaled[t, :b] = e[t, :b] / scale
        alpha[t, :b] = state = state / scale
    last = alpha[p.lengths[order] - 1, np.arange(len(order))]
    closing = end / (last @ end)[:, None]
    for t in reversed(range(n)):
        b = going_on[t]
        beta[t, :b] = closing[:b]
        if t + 1 < n and (on := going_on[t + 1]):
            beta[t, :on] = np.minimum((beta[t + 1, :on] * scaled[t + 1, :on]) @ a.T, LARGEST)
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
    """The probability that characters ``[start, end)`` of a sentence are one whole segment, for W of them.

    ``joined[before, after]`` tells which two neighbouring tags belong to one segment; a segment is whole if it is
    joined to neither neighbour. ``tags`` are those that the first character of the segment may have.
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
