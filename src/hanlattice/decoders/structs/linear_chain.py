r"""Linear-chain conditional random fields: scores, log-partition function and marginals of tag sequences.

The score of a sequence of tags :math:`y_1, …, y_N` is

.. math:: a_{y_1} + \sum_{t=1}^N E_{t,y_t} + \sum_{t=2}^N A_{y_{t-1},y_t} + b_{y_N}

with emissions E, transitions A (from row to column), start scores a and end scores b (Lafferty et al. 2001). It is
the sum along one path through the trellis::

             a          A           A          b
    start ──▶ E[1, y1] ──▶ E[2, y2] ──▶ E[3, y3] ──▶ end

Forbidden transitions have the score minus infinity. Sentences are padded on the right, and every sentence has at
least one character.

The forward-backward algorithm works with probabilities in float64 and rescales them at every step, so each step is
one matrix product. The gradient of log Z is given by the marginals, so autograd does not record the steps.
Inference on arrays, the best sequence and the probability of an entity, is in
:mod:`hanlattice.decoders.structs.decoding`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from hanlattice.decoders.structs.decoding import MAX_MESSAGE, MIN_POTENTIAL, Potentials


@dataclass(frozen=True)
class Chain:
    """The scores of a batch of linear chains.

    Attributes:
        emissions: E, ``[B, N, Y]``.
        transitions: A, ``[Y, Y]``, from row to column.
        start: a, ``[Y]``; zeros if a model has none.
        end: b, ``[Y]``; zeros if a model has none.
        mask: True for characters, False for padding, ``[B, N]``.
    """

    emissions: Float[Tensor, "B N Y"]
    transitions: Float[Tensor, "Y Y"]
    start: Float[Tensor, "Y"]
    end: Float[Tensor, "Y"]
    mask: Bool[Tensor, "B N"]

    def potentials(self) -> Potentials:
        """The same scores as numpy arrays, for decoding."""
        tensors = (self.emissions, self.transitions, self.start, self.end, self.mask.sum(1))
        return Potentials(*(tensor.detach().cpu().numpy() for tensor in tensors))


class Messages(NamedTuple):
    """Forward and backward messages, normalised at each step, so that :math:`p(y_t) = \\alpha_t \\beta_t`.

    Attributes:
        alpha: Forward messages, ``[N, B, Y]``.
        beta: Backward messages, ``[N, B, Y]``.
        emissions: Exponentiated emissions, divided by the scale of each step, ``[N, B, Y]``.
        transitions: Exponentiated transitions, ``[Y, Y]``.
    """

    alpha: Float[Tensor, "N B Y"]
    beta: Float[Tensor, "N B Y"]
    emissions: Float[Tensor, "N B Y"]
    transitions: Float[Tensor, "Y Y"]


def _forward_backward(chain: Chain, *, backward: bool) -> tuple[Tensor, Messages]:
    """log Z [B] in float64, and the messages; ``beta`` is empty unless ``backward`` is set.

    ``MIN_POTENTIAL`` keeps the sum of a step above 0 if only tags with very low scores are allowed there.
    ``MAX_MESSAGE`` keeps the backward messages of tags that cannot be reached finite.
    """
    emissions = chain.emissions.double().transpose(0, 1)  # [N B Y]
    mask = chain.mask.T.unsqueeze(-1)  # [N B 1]
    peak = emissions.amax(-1, keepdim=True)
    e = torch.where(mask, (emissions - peak).exp().clamp_min(MIN_POTENTIAL), 1.0)
    a = chain.transitions.double().exp()
    end = chain.end.double().exp()
    n = len(e)
    alphas, scales = [], []  # stacked later, as autograd cannot follow writes into one tensor
    state = chain.start.double().exp() * e[0]
    for t in range(n):
        if t:
            state = torch.where(mask[t], (state @ a) * e[t], state)
        scales.append(torch.where(mask[t], state.sum(-1, keepdim=True), 1.0))
        state = state / scales[t]
        alphas.append(state)
    alpha, scale = torch.stack(alphas), torch.stack(scales)
    last = (state * end).sum(-1)
    log_scale = (scale.log() + torch.where(mask, peak, 0.0)).squeeze(-1)
    log_z = log_scale.sum(0) + last.log()
    betas = []
    if backward:
        state = end / last.unsqueeze(-1)
        for t in reversed(range(n)):
            betas.append(state)
            if t:
                state = torch.where(mask[t], (state * (e[t] / scale[t])) @ a.T, state).clamp_max(MAX_MESSAGE)
    beta = torch.stack(betas[::-1]) if backward else e.new_empty(0)
    return log_z, Messages(alpha, beta, e / scale, a)


class _LogPartition(torch.autograd.Function):
    """log Z; its gradient follows from the marginals."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, mask: Tensor
    ) -> Tensor:
        chain = Chain(emissions, transitions, start, end, mask)
        log_z, messages = _forward_backward(chain, backward=any(ctx.needs_input_grad))
        ctx.save_for_backward(mask, messages.alpha, messages.beta, messages.emissions, messages.transitions)
        ctx.dtypes = [t.dtype for t in (emissions, transitions, start, end)]
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        mask, alpha, beta, e, a = ctx.saved_tensors
        weighted = grad[:, None] * mask.T.unsqueeze(-1)
        unary = alpha * beta * weighted  # [N B Y]
        pairs = torch.einsum("tbi,tbj->ij", alpha[:-1], (e * beta * weighted)[1:]) * a
        last = alpha[-1] * beta[-1] * grad[:, None]  # padding copies the last real step
        grads = (unary.transpose(0, 1), pairs, unary[0].sum(0), last.sum(0))
        return (*(g.to(dtype) for g, dtype in zip(grads, ctx.dtypes, strict=True)), None)


def log_partition(chain: Chain) -> Float[Tensor, "B"]:
    """log Z: the logarithm of the sum of the exponentiated scores of all sequences, ``[B]``.

    In float64, and differentiable once.
    """
    inputs = (chain.emissions, chain.transitions, chain.start, chain.end, chain.mask)
    return _LogPartition.apply(*inputs)  # type: ignore[no-untyped-call]


def score(chain: Chain, tags: Int[Tensor, "B N"]) -> Float[Tensor, "B"]:
    """The score of one tag sequence for each sentence, ``[B]``.

    Args:
        chain: The scores.
        tags: Ids of the tags, ``[B, N]``. Those of padding are ignored.
    """
    steps = chain.emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
    transitions = chain.transitions[tags[:, :-1], tags[:, 1:]]
    total = torch.where(chain.mask, steps, 0.0).sum(1) + torch.where(chain.mask[:, 1:], transitions, 0.0).sum(1)
    last = chain.mask.sum(1, keepdim=True) - 1
    return total + chain.start[tags[:, 0]] + chain.end[tags.gather(1, last).squeeze(1)]


def k_best(chain: Chain, k: int) -> tuple[Int[Tensor, "B K N"], Float[Tensor, "B K"]]:
    """The k best sequences of each sentence, by the Viterbi algorithm with k entries for each tag.

    Returns:
        The sequences, best first, ``[B, K, N]``, and their scores, ``[B, K]``. A score is minus infinity where a
        sentence has fewer than k sequences. Sequences of equal score are in any order.
    """
    emissions, mask = chain.emissions.transpose(0, 1), chain.mask.T[..., None, None]
    n, n_sentences, n_tags = emissions.shape
    state = emissions.new_full((n_sentences, n_tags, k), -torch.inf)  # k best scores by last tag, best first
    state[:, :, 0] = chain.start + emissions[0]
    entries = torch.arange(n_tags * k, device=state.device)
    itself = entries.view(n_tags, k)  # backpointers of padding: each entry comes from itself
    backpointers = []
    for t in range(1, n):
        moved = state.flatten(1)[:, :, None] + chain.transitions.repeat_interleave(k, 0)  # [B Y*k Y]
        best, origin = moved.transpose(1, 2).topk(k, -1)
        state = torch.where(mask[t], best + emissions[t].unsqueeze(-1), state)
        backpointers.append(torch.where(mask[t], origin, itself))
    total, entry = (state + chain.end[:, None]).flatten(1).topk(k, -1)
    path = [entry]
    for origin in reversed(backpointers):
        path.append(origin.flatten(1).gather(1, path[-1]))
    tags = torch.stack(path[::-1], -1) // k
    return torch.where(chain.mask.unsqueeze(1), tags, 0), total


def marginals(chain: Chain) -> Float[Tensor, "B N Y"]:
    """The probability of each tag at each character, ``[B, N, Y]``; 0 for padding.

    In float64, and differentiable.
    """
    _, messages = _forward_backward(chain, backward=True)
    return torch.where(chain.mask.unsqueeze(-1), (messages.alpha * messages.beta).transpose(0, 1), 0.0)
