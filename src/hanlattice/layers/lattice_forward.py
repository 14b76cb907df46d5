"""The forward pass of the Lattice LSTM: tensors for all steps, and what each step computes in them.

The equations are in :mod:`hanlattice.layers.lattice_recurrence`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from hanlattice.layers.lattice_rows import Lattice


class ForwardPass(NamedTuple):
    """What a forward pass computes; its loop fills these tensors in place, step by step.

    The input of a candidate is doubled, so that one sigmoid serves gates and candidate; see :func:`_tanh_of_half`.
    """

    h: Float[Tensor, "N+1 2 B H"]
    c: Float[Tensor, "N+1 2 B H"]
    gates: Float[Tensor, "N 2 B G*H"]  # o, i, f and the candidate, whose input is doubled
    g: Float[Tensor, "N 2 B H"]
    tanh_c: Float[Tensor, "N 2 B H"]
    sums: Float[Tensor, "N 2 B 2*H"]  # numerator and denominator of c where words end
    word_gates: Float[Tensor, "R 3*H"]  # i, f and the candidate, whose input is doubled
    word_g: Float[Tensor, "R H"]
    word_c: Float[Tensor, "R H"]
    word_s: Float[Tensor, "R H"]
    word_terms: Float[Tensor, "R 2*H"]  # of the numerator and of the denominator

    @classmethod
    def begin(cls, chars: Tensor, words: Tensor, merges: Tensor, lattice: Lattice) -> "ForwardPass":
        """The tensors before the first step: gates hold the contributions of the inputs, the rest is empty."""
        n, b, d = len(lattice.sizes), lattice.n_sentences, merges.shape[-1]
        gates = double_candidates(chars.index_select(0, lattice.char), d).view(n, 2, b, -1)
        word_gates = double_candidates(words.index_select(0, lattice.word), d)
        s = merges.index_select(0, lattice.end)
        h, c = chars.new_empty(2, n + 1, 2, b, d)
        h[0], c[0] = 0, 0
        g, tanh_c = chars.new_empty(2, n, 2, b, d)
        sums = chars.new_ones(n, 2, b, 2 * d)
        word_g, word_c = s.new_empty(2, *s.shape)
        return cls(h, c, gates, g, tanh_c, sums, word_gates, word_g, word_c, s, s.new_empty(len(s), 2 * d))

    def char_steps(self, lattice: Lattice) -> Iterator["_CharStep"]:
        o, i, *f, doubled = (x.unbind() for x in self.gates.chunk(self.gates.shape[-1] // self.g.shape[-1], -1))
        numerator, denominator = (x.unbind() for x in self.sums.chunk(2, -1))
        tensors = (self.gates, self.g, self.tanh_c, self.sums, lattice.merged)
        forget = f[0] if f else (None,) * len(o)
        views = zip(
            *(x.unbind() for x in tensors), o, i, forget, doubled, numerator, denominator, strict=True
        )  # fmt: skip
        return map(_CharStep._make, views)

    def word_steps(self, lattice: Lattice) -> Iterator["_WordStep"]:
        tensors = (self.word_gates, self.word_g, self.word_c, self.word_s, self.word_terms, lattice.owner)
        i, f, doubled = map(lattice.by_step, self.word_gates.chunk(3, -1))
        value, weight = map(lattice.by_step, self.word_terms.chunk(2, -1))
        views = zip(
            *map(lattice.by_step, tensors), i, f, doubled, value, weight, lattice.starts(), strict=True
        )  # fmt: skip
        return map(_WordStep._make, views)


class _CharStep(NamedTuple):
    """Views of the tensors of characters at one step, ``[2 B ...]``."""

    gates: Tensor
    g: Tensor
    tanh_c: Tensor
    sums: Tensor
    merged: Tensor
    o: Tensor
    i: Tensor
    f: Tensor | None  # None where it is 1 - i
    doubled: Tensor
    numerator: Tensor
    denominator: Tensor

    def read(self, h: Tensor, before: Tensor, present: Tensor, weight: Tensor) -> None:
        """The gates, and the cell state ``present`` as if no word ended here."""
        self.gates.baddbmm_(h, weight).sigmoid_()
        _tanh_of_half(self.doubled, out=self.g)
        if self.f is None:
            torch.lerp(before, self.g, self.i, out=present)
        else:
            torch.mul(self.i, self.g, out=present).addcmul_(before, self.f)

    def merge(self, words: "_WordStep", present: Tensor) -> None:
        """The cell state ``present`` where words end."""
        torch.mul(torch.exp(self.i, out=self.denominator), self.g, out=self.numerator)
        self.sums.baddbmm_(words.owner.mT, words.terms)
        torch.where(self.merged, self.numerator / self.denominator, present, out=present)

    def finish(self, present: Tensor, h: Tensor) -> None:
        """The state ``h`` from the cell state."""
        _tanh_of_half(torch.mul(present, 2, out=self.tanh_c).sigmoid_(), out=self.tanh_c)
        torch.mul(self.o, self.tanh_c, out=h)


class _WordStep(NamedTuple):
    """Views of the tensors of the words that end at one step, ``[2 size ...]``."""

    gates: Tensor
    g: Tensor
    c: Tensor
    s: Tensor
    terms: Tensor
    owner: Tensor
    i: Tensor
    f: Tensor
    doubled: Tensor
    value: Tensor
    weight: Tensor
    start: Tensor

    def read(self, h: Tensor, c: Tensor, word_weight: Tensor, merge_weight: Tensor) -> None:
        """Cell states of the words from the states ``h`` and ``c`` of all steps, and their terms of the sums."""
        self.gates.baddbmm_(h.index_select(0, self.start).view_as(self.c), word_weight).sigmoid_()
        _tanh_of_half(self.doubled, out=self.g)
        torch.mul(self.i, self.g, out=self.c)
        self.c.addcmul_(c.index_select(0, self.start).view_as(self.c), self.f)
        self.s.baddbmm_(self.c, merge_weight).sigmoid_()
        torch.mul(torch.exp(self.s, out=self.weight), self.c, out=self.value)


def double_candidates(x: Tensor, d: int) -> Tensor:
    """``x`` with its last ``d`` columns doubled in place, so that one sigmoid serves gates and candidate."""
    x[..., -d:] *= 2
    return x


def _tanh_of_half(sigmoid: Tensor, out: Tensor) -> Tensor:
    """tanh z from the sigmoid of 2 z: on CPUs torch's tanh takes five times as long as its sigmoid."""
    return torch.mul(sigmoid, 2, out=out).sub_(1)
