r"""The recurrence of the Lattice LSTM, for a batch and for both directions at once, with its gradient.

At a step, let :math:`i, f, o` be the character's gates after the sigmoid, and :math:`g` its candidate after the
tanh. A word w that ends at this step has a cell state :math:`c^w`, which is computed from the word's vector and the
state after its first character, and a gate :math:`s_w`. Then

.. math:: c = \frac{e^i g + \sum_w e^{s_w} c^w}{e^i + \sum_w e^{s_w}}
          \text{ if words end here, else } f c_{t-1} + i g, \qquad h = o \tanh c

:mod:`hanlattice.layers.lattice_rows` states where characters and words stand in a batch,
:mod:`hanlattice.layers.lattice_forward` computes one step after another, and
:mod:`hanlattice.layers.lattice_gradient` the gradient.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from hanlattice.layers.lattice_forward import ForwardPass, double_candidates
from hanlattice.layers.lattice_gradient import Gradients, StateWeights
from hanlattice.layers.lattice_rows import Lattice

__all__ = ["Lattice", "LatticeRecurrence"]


class LatticeRecurrence(torch.autograd.Function):
    """``apply(chars, words, merges, char_state, word_state, merge_state, lattice) -> h [B*N*2 H]``.

    Args:
        chars: contributions of characters to their gates o, i, f, g, bias included, ``[B*N*2 4*H]``, or to o, i, g
            where the forget gate is 1 - i, ``[B*N*2 3*H]``.
        words: contributions of words to the gates i, f, g of their cells, ``[B*M*2 3*H]``.
        merges: contributions of characters to the gates s of the words that end there, ``[B*N*2 H]``.
        char_state: weights from h to the gates of characters, ``[2 H 4*H]`` or ``[2 H 3*H]``.
        word_state: weights from h to the gates of words, ``[2 H 3*H]``.
        merge_state: weights from cell states of words to s, ``[2 H H]``.
        lattice: see :class:`Lattice`, which also describes the order of rows.
    """

    @staticmethod
    def forward(
        ctx: Any,
        chars: Tensor,
        words: Tensor,
        merges: Tensor,
        char_state: Tensor,
        word_state: Tensor,
        merge_state: Tensor,
        lattice: Lattice,
    ) -> Tensor:
        d = merge_state.shape[-1]
        computed = ForwardPass.begin(chars, words, merges, lattice)
        char_weight, word_weight = (double_candidates(w.clone(), d) for w in (char_state, word_state))
        all_h, all_c = computed.h.view(-1, d), computed.c.view(-1, d)
        h, c = computed.h.unbind(), computed.c.unbind()
        steps = zip(computed.char_steps(lattice), computed.word_steps(lattice), lattice.sizes, strict=True)
        for t, (char, ending, size) in enumerate(steps):
            char.read(h[t], c[t], c[t + 1], char_weight)
            if size:
                ending.read(all_h, all_c, word_weight, merge_state)
                char.merge(ending, c[t + 1])
            char.finish(c[t + 1], h[t + 1])
        ctx.save_for_backward(*computed, char_state, word_state, merge_state)
        ctx.lattice, ctx.n_words = lattice, len(words)
        return torch.empty_like(chars[:, :d]).index_copy_(0, lattice.char, computed.h[1:].view(-1, d))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        computed, weights = ForwardPass(*ctx.saved_tensors[:11]), StateWeights(*ctx.saved_tensors[11:])
        lattice: Lattice = ctx.lattice
        d = computed.h.shape[-1]
        gradients = Gradients.begin(grad, computed, lattice)
        dh, dc = gradients.h.unbind(), gradients.c.unbind()
        all_dh, all_dc = gradients.h.view(-1, d), gradients.c.view(-1, d)
        steps = list(
            zip(gradients.char_steps(computed, lattice), gradients.word_steps(computed, lattice), strict=True)
        )
        for t in reversed(range(len(steps))):
            char, ending = steps[t]
            char.read(dh[t + 1], dc[t + 1])
            if lattice.sizes[t]:
                ending.read(dc[t + 1], all_dh, all_dc, weights)
            char.pass_back(dc[t + 1], dh[t], dc[t], weights.char)
        return *gradients.of_arguments(computed, lattice, ctx.n_words), None
