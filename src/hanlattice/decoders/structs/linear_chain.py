r"""Linear-chain structures: all the sequences of tags of a sentence.

A sequence scores :math:`a_{y_1} + \sum_t E_{t,y_t} + \sum_{t\ge2} A_{y_{t-1},y_t} + b_{y_N}` with emissions E,
transitions A (from, to), and optional start and end scores a, b (Lafferty et al. 2001). Forbidden transitions
are minus infinity. Sentences are padded on the right; every sentence has at least one character.

The sums run in probability space and float64 with rescaling at every step, a matrix product a step, and the
gradient of log Z is written down (it is the marginals) instead of recorded. What is asked of a trained model, the
best sequence and the probability of an entity, is in :mod:`hanlattice.decoders.structs.decoding`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from hanlattice.decoders.structs.decoding import FAINTEST, LARGEST, Potentials


@dataclass(frozen=True)
class Chain:
    """Scores of a batch of linear chains; ``start`` and ``end`` are zero where a model has none."""

    emissions: Float[Tensor, "B N Y"]
    transitions: Float[Tensor, "Y Y"]
    start: Float[Tensor, "Y"]
    end: Float[Tensor, "Y"]
    mask: Bool[Tensor, "B N"]

    def potentials(self) -> Potentials:
        """The same scores as arrays, to decode them."""
        tensors = (self.emissions, self.transitions, self.start, self.end, self.mask.sum(1))
        return Potentials(*(tensor.detach().cpu().numpy() for tensor in tensors))


class Messages(NamedTuple):
    """Forward and backward messages, each step divided by its sum: :math:`p(y_t) = \\alpha_t \\beta_t`."""

    alpha: Float[Tensor, "N B Y"]
    beta: Float[Tensor, "N B Y"]
    emissions: Float[Tensor, "N B Y"]
    transitions: Float[Tensor, "Y Y"]


def _forward_backward(chain: Chain, *, backward: bool) -> tuple[Tensor, Messages]:
    """log Z [B] in float64, and the messages (``beta`` is empty unless asked for)."""
    emissions = chain.emissions.double().transpose(0, 1)  # [N B Y]
    mask = chain.mask.T.unsqueeze(-1)  # [N B 1]
    peak = emissions.amax(-1, keepdim=True)
    e = torch.where(mask, (emissions - peak).exp().clamp_min(FAINTEST), 1.0)
    a = chain.transitions.double().exp()
    end = chain.end.double().exp()
    n = len(e)
    alpha, scale = torch.empty_like(e), e.new_ones(n, e.shape[1], 1)
    state = chain.start.double().exp() * e[0]
    for t in range(n):
        if t:
            state = torch.where(mask[t], (state @ a) * e[t], state)
        scale[t] = torch.where(mask[t], state.sum(-1, keepdim=True), 1.0)
        state = state / scale[t]
        alpha[t] = state
    last = (state * end).sum(-1)
    log_scale = (scale.log() + torch.where(mask, peak, 0.0)).squeeze(-1)
    log_z = log_scale.sum(0) + last.log()
    beta = torch.empty_like(e) if backward else e.new_empty(0)
    if backward:
        state = end / last.unsqueeze(-1)
        for t in reversed(range(n)):
            beta[t] = state
            if t:
                state = torch.where(mask[t], (state * (e[t] / scale[t])) @ a.T, state).clamp_max(LARGEST)
    return log_z, Messages(alpha, beta, e / scale, a)


class _LogPartition(torch.autograd.Function):
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
    """log Z, the log of the summed exponentiated scores of all sequences; float64, once differentiable."""
    inputs = (chain.emissions, chain.transitions, chain.start, chain.end, chain.mask)
    return _LogPartition.apply(*inputs)  # type: ignore[no-untyped-call]


def score(chain: Chain, tags: Int[Tensor, "B N"]) -> Float[Tensor, "B"]:
    """The score of one sequence of tags a sentence; tags beyond the mask are ignored."""
    steps = chain.emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
    moves = chain.transitions[tags[:, :-1], tags[:, 1:]]
    total = torch.where(chain.mask, steps, 0.0).sum(1) + torch.where(chain.mask[:, 1:], moves, 0.0).sum(1)
    last = chain.mask.sum(1, keepdim=True) - 1
    return total + chain.start[tags[:, 0]] + chain.end[tags.gather(1, last).squeeze(1)]


def k_best(chain: Chain, k: int) -> tuple[Int[Tensor, "B K N"], Float[Tensor, "B K"]]:
    """The ``k`` best sequences ``[B K N]``, best first, and their scores, minus infinity where there are fewer.

    Viterbi with k entries a tag; of equal sequences any order.
    """
    emissions, mask = chain.emissions.transpose(0, 1), chain.mask.T[..., None, None]
    n, n_sentences, n_tags = emissions.shape
    state = emissions.new_full((n_sentences, n_tags, k), -torch.inf)  # by last tag, best first
    state[:, :, 0] = chain.start + emissions[0]
    entries = torch.arange(n_tags * k, device=state.device)
    itself = entries.view(n_tags, k)
    came_from = []
    for t in range(1, n):
        moved = state.flatten(1)[:, :, None] + chain.transitions.repeat_interleave(k, 0)  # [B Y*k Y]
        best, origin = moved.transpose(1, 2).topk(k, -1)
        state = torch.where(mask[t], best + emissions[t].unsqueeze(-1), state)
        came_from.append(torch.where(mask[t], origin, itself))
    total, entry = (state + chain.end[:, None]).flatten(1).topk(k, -1)
    path = [entry]
    for origin in reversed(came_from):
        path.append(origin.flatten(1).gather(1, path[-1]))
    tags = torch.stack(path[::-1], -1) // k
    return torch.where(chain.mask.unsqueeze(1), tags, 0), total


def marginals(chain: Chain) -> Float[Tensor, "B N Y"]:
    """The probability of each tag at each character; 0 beyond the mask."""
    _, messages = _forward_backward(chain, backward=True)
    return torch.where(chain.mask.unsqueeze(-1), (messages.alpha * messages.beta).transpose(0, 1), 0.0)
