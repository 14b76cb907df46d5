"""The backward pass of the Lattice LSTM.

The gradient is written by hand. The gradient of a gate is the gradient of :math:`c` or of :math:`h` at its step,
times a factor that depends on the forward pass only. So the factors of all steps are computed in a few large
operations, which leaves a dozen small operations for each step of the backward pass. The gradients of the weights
are one product over all steps.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from hanlattice.layers.lattice_forward import ForwardPass
from hanlattice.layers.lattice_rows import Lattice


class StateWeights(NamedTuple):
    """The weights by which states are multiplied; G is 4, or 3 where the forget gate is 1 - i."""

    char: Float[Tensor, "2 H G*H"]
    word: Float[Tensor, "2 H 3*H"]
    merge: Float[Tensor, "2 H H"]


class Gradients(NamedTuple):
    """What a backward pass computes: the gradients of states, and of gates before their activations."""

    h: Float[Tensor, "N+1 2 B H"]
    c: Float[Tensor, "N+1 2 B H"]
    gates: Float[Tensor, "N 2 B G H"]
    word_s: Float[Tensor, "R H"]
    word_cells: Float[Tensor, "R 4*H"]  # of the gates i, f, g, and of the cell state before

    @classmethod
    def begin(cls, grad: Tensor, computed: ForwardPass, lattice: Lattice) -> "Gradients":
        """The tensors before the last step: gradients of h are those of the result, the rest is zero or empty."""
        h, d = computed.h, computed.h.shape[-1]
        dh, dc = torch.zeros_like(h), torch.zeros_like(h)
        torch.index_select(grad, 0, lattice.char, out=dh[1:].view(-1, d))
        shape, s = computed.gates.shape, computed.word_s
        return cls(
            dh, dc, h.new_empty(*shape[:3], shape[3] // d, d), torch.empty_like(s), s.new_empty(len(s), 4 * d)
        )

    def char_steps(self, computed: ForwardPass, lattice: Lattice) -> Iterator["_CharGradient"]:
        factors = _char_factors(computed, lattice)
        gates = (self.gates.flatten(-2), self.gates[..., 0, :], self.gates[..., 1:, :])
        return map(_CharGradient._make, zip(*(x.unbind() for x in (*gates, *factors)), strict=True))

    def word_steps(self, computed: ForwardPass, lattice: Lattice) -> Iterator["_WordGradient"]:
        d = self.word_s.shape[-1]
        factors = _word_factors(computed, lattice)
        by_part = (
            [x.view(*x.shape[:2], 4, d) for x in lattice.by_step(y)]
            for y in (self.word_cells, factors.word_to_cells)
        )
        gates_and_before = map(lattice.by_step, self.word_cells.split_with_sizes((3 * d, d), -1))
        by_step = map(lattice.by_step, (lattice.owner, factors.c_to_word, self.word_s, factors.c_to_s))
        return map(_WordGradient._make, zip(*by_step, *by_part, *gates_and_before, lattice.starts(), strict=True))

    def of_arguments(self, computed: ForwardPass, lattice: Lattice, n_words: int) -> tuple[Tensor, ...]:
        """Gradients of the six tensors that :class:`LatticeRecurrence` is applied to."""
        h, d = computed.h, self.word_s.shape[-1]
        gates, cells = self.gates.view(-1, computed.gates.shape[-1]), self.word_cells[:, : 3 * d]
        before = h.view(-1, d).index_select(0, lattice.start)[lattice.slots]
        return (
            torch.empty_like(gates).index_copy_(0, lattice.char, gates),
            cells.new_zeros(n_words, 3 * d).index_add_(0, lattice.word, cells),
            cells.new_zeros(len(gates), d).index_add_(0, lattice.end, self.word_s),
            torch.einsum("nrbd,nrbg->rdg", h[:-1], gates.view_as(computed.gates)),
            before.mT @ cells[lattice.slots],
            computed.word_c[lattice.slots].mT @ self.word_s[lattice.slots],
        )


class _CharGradient(NamedTuple):
    """Views of the gradients of characters at one step, ``[2 B ...]``, and of their factors."""

    gates: Tensor
    o: Tensor
    others: Tensor  # i, f and the candidate
    h_to_c: Tensor
    h_to_o: Tensor
    c_to_others: Tensor
    c_to_before: Tensor

    def read(self, dh: Tensor, dc: Tensor) -> None:
        """Compute the gradients of the gates, and add to ``dc`` what reaches the cell state through h."""
        dc.addcmul_(dh, self.h_to_c)
        torch.mul(dh, self.h_to_o, out=self.o)
        torch.mul(dc.unsqueeze(-2), self.c_to_others, out=self.others)

    def pass_back(self, dc: Tensor, dh_before: Tensor, dc_before: Tensor, weight: Tensor) -> None:
        """Add to the gradients of the states before."""
        dh_before.baddbmm_(self.gates, weight.mT)
        dc_before.addcmul_(dc, self.c_to_before)


class _WordGradient(NamedTuple):
    """Views of the gradients of the words that end at one step, ``[2 size ...]``, and of their factors."""

    owner: Tensor
    c_to_word: Tensor
    s: Tensor
    c_to_s: Tensor
    cells: Tensor
    word_to_cells: Tensor
    gates: Tensor
    before: Tensor
    start: Tensor

    def read(self, dc: Tensor, all_dh: Tensor, all_dc: Tensor, weights: StateWeights) -> None:
        """Compute the gradients of the words, and add to those of the states after their first characters."""
        d = dc.shape[-1]
        of_owner = torch.bmm(self.owner, dc)
        torch.mul(of_owner, self.c_to_s, out=self.s)
        of_word = of_owner.mul_(self.c_to_word).baddbmm_(self.s, weights.merge.mT)
        torch.mul(of_word.unsqueeze(-2), self.word_to_cells, out=self.cells)
        all_dh.index_add_(0, self.start, torch.bmm(self.gates, weights.word.mT).view(-1, d))
        all_dc.index_add_(0, self.start, self.before.flatten(0, 1))


class _CharFactors(NamedTuple):
    """Factors from the gradient of h or c to the gradients of gates, before their activations, and of states."""

    h_to_c: Float[Tensor, "N 2 B H"]
    h_to_o: Float[Tensor, "N 2 B H"]
    c_to_others: Float[Tensor, "N 2 B G-1 H"]  # i, f and the candidate
    c_to_before: Float[Tensor, "N 2 B H"]


def _char_factors(computed: ForwardPass, lattice: Lattice) -> _CharFactors:
    # Where words end, c is a mean of values x_k with weights e^(s_k). Let share_k be the weight of x_k divided by
    # the sum of all weights: then dc/dx_k = share_k and dc/ds_k = share_k (x_k - c). Factors such as i (1 - i) and
    # 1 - g² are the derivatives of sigmoid and tanh.
    g, tanh_c, merged = computed.g, computed.tanh_c, lattice.merged
    d = g.shape[-1]
    o, i, *f, _ = computed.gates.chunk(computed.gates.shape[-1] // d, -1)
    before, present, zero = computed.c[:-1], computed.c[1:], computed.c.new_zeros(())
    share = torch.exp(i).div_(computed.sums[..., d:])
    to_i = torch.where(merged, share * (g - present), g if f else g - before) * (i * (1 - i))
    to_f = [torch.where(merged, zero, before * (x * (1 - x))) for x in f]
    to_g = torch.where(merged, share, i) * (1 - g * g)
    kept = torch.where(merged, zero, f[0] if f else 1 - i)
    to_others = torch.stack([to_i, *to_f, to_g], -2)
    return _CharFactors(o * (1 - tanh_c * tanh_c), tanh_c * (o * (1 - o)), to_others, kept)


class _WordFactors(NamedTuple):
    """Factors from the gradients of c, at the step where a word ends, and of the word's own cell state.

    ``c_to_word`` and ``c_to_s`` multiply the first, ``word_to_cells`` the second.
    """

    c_to_word: Float[Tensor, "R H"]
    c_to_s: Float[Tensor, "R H"]
    word_to_cells: Float[Tensor, "R 4*H"]  # the gates i, f, g, and the cell state before


def _word_factors(computed: ForwardPass, lattice: Lattice) -> _WordFactors:
    g, s, d = computed.word_g, computed.word_s, computed.word_s.shape[-1]
    i, f, _ = computed.word_gates.chunk(3, -1)
    before = computed.c.view(-1, d).index_select(0, lattice.start)
    denominator = computed.sums.view(-1, 2 * d)[:, d:].index_select(0, lattice.into)
    share = computed.word_terms[:, d:] / denominator
    present = computed.c[1:].reshape(-1, d).index_select(0, lattice.into)
    to_cells = torch.cat([g * (i * (1 - i)), before * (f * (1 - f)), i * (1 - g * g), f], -1)
    return _WordFactors(share, share * (computed.word_c - present) * (s * (1 - s)), to_cells)
