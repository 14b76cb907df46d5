r"""The recurrence of the Lattice LSTM: a batch of sentences in both directions at once, its gradient by hand.

At a step :math:`i, f, o` are the character's gates after the sigmoid and :math:`g` its candidate after the tanh. A
word that ends here has the cell state :math:`c^w`, from the state after its first character and its vector, and
the gate :math:`s`:

.. math:: c = \frac{e^i g + \sum_w e^{s_w} c^w}{e^i + \sum_w e^{s_w}}
          \text{ where words end, else } f c_{t-1} + i g, \qquad h = o \tanh c

The gradient reaches every gate of a step through that of :math:`c` or of :math:`h` alone, times a factor which the
forward pass has settled. So the factors of all steps are computed in a few large operations, which leaves a dozen
small ones for each step backwards; the gradients of the weights are one product over all steps.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Lattice:
    """Where characters and words stand in the two directions; the second reads every sentence from its own end.

    Rows of inputs are ``(sentence * N + position) * 2 + direction``, of words ``(sentence * M + word) * 2 +
    direction``; rows of states ``(step * 2 + direction) * B + sentence``, where step 0 is before the first
    character. Words lie in slots, those that end at one step together, first the first direction's. A step has
    ``sizes`` of them in either direction, R = 2 S in all; those left over are of no sentence and change nothing.
    """

    n_sentences: int
    sizes: list[int]
    char: Int[Tensor, "C"]  # rows of the characters, by step, direction and sentence
    word: Int[Tensor, "R"]  # row of a slot's word
    start: Int[Tensor, "R"]  # row of the state after the word's first character
    end: Int[Tensor, "R"]  # row of the word's last character
    into: Int[Tensor, "R"]  # row of the state that the word is merged into, counted from step 1
    owner: Float[Tensor, "R B"]  # 1 for the sentence that the word is of
    slots: Int[Tensor, "2 S"]  # of each direction
    merged: Bool[Tensor, "N 2 B 1"]  # whether words end here

    @classmethod
    def of(
        cls,
        chars: Bool[Tensor, "B N"],
        words: Bool[Tensor, "B M"],
        head: Int[Tensor, "B M"],
        tail: Int[Tensor, "B M"],
        dtype: torch.dtype,
    ) -> "Lattice":
        """Of the real characters and the real words; words of one character, which would have to end before they
        begin, are left out."""
        (b, n), m = chars.shape, words.shape[1]
        step, sentences = torch.arange(n, device=chars.device), torch.arange(b, device=chars.device)
        both = torch.arange(2, device=chars.device)[:, None]
        last = chars.sum(1, keepdim=True) - 1
        backwards = torch.where(chars, last - step, step)  # padding stays where it is, behind everything
        position = torch.stack([step.expand(b, n), backwards])  # [2 B N]
        char = (sentences[:, None] * n + position) * 2 + both[:, :, None]

        sentence, word = torch.nonzero(words & (tail > head), as_tuple=True)
        head, tail = head[sentence, word], tail[sentence, word]
        opening, closing = torch.stack([head, tail]), torch.stack([tail, head])  # characters  [2 W]
        start, end = (position[both, sentence, of] for of in (opening, closing))  # steps

        counts = torch.zeros(2, n, dtype=torch.long, device=chars.device)
        counts.scatter_add_(1, end, torch.ones_like(end))
        size = counts.amax(0)
        before = size.cumsum(0) - size
        total = int(before[-1] + size[-1])
        ordered, order = end.sort(stable=True, dim=1)
        rank = torch.arange(end.shape[1], device=end.device) - (counts.cumsum(1) - counts).gather(1, ordered)
        slot = torch.empty_like(end).scatter_(1, order, 2 * before[ordered] + both * size[ordered] + rank)

        def filled(values: Tensor) -> Tensor:
            return values.new_zeros(2 * total).index_put_((slot,), values)

        owner = torch.zeros(2 * total, b, dtype=dtype, device=chars.device)
        owner[slot, sentence] = 1
        merged = torch.zeros(n, 2, b, 1, dtype=torch.bool, device=chars.device)
        merged[end, both, sentence] = True
        step = step.repeat_interleave(size)
        return cls(
            n_sentences=b,
            sizes=size.tolist(),
            char=char.permute(2, 0, 1).flatten(),
            word=filled((sentence * m + word) * 2 + both),
            start=filled(((start + 1) * 2 + both) * b + sentence),
            end=filled((sentence * n + closing) * 2 + both),
            into=filled((end * 2 + both) * b + sentence),
            owner=owner,
            slots=torch.arange(total, device=step.device) + before[step] + both * size[step],
            merged=merged,
        )

    def by_step(self, rows: Float[Tensor, "R W"]) -> list[Tensor]:
        """The slots of each step, ``[2 size W]``."""
        blocks = rows.split_with_sizes([2 * size for size in self.sizes])
        return [block.view(2, size, rows.shape[1]) for block, size in zip(blocks, self.sizes, strict=True)]


class LatticeRecurrence(torch.autograd.Function):
    """``(chars, words, merges, char_state, word_state, merge_state, lattice) -> h [B*N*2 H]``.

    The first three are what characters and words add to the gates, bias included, in rows of inputs: ``chars``
    [B*N*2 G*H] for o, i, f, g (G = 4) or, where f is 1 - i, for o, i, g (G = 3); ``words`` [B*M*2 3*H] for i, f, g
    of the word's cell; ``merges`` [B*N*2 H] for s. The next three are the weights that states meet on their way to
    the same gates: ``char_state`` [2 H G*H] and ``word_state`` [2 H 3*H] for h, ``merge_state`` [2 H H] for the
    cell states of words.
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
        n, b, d = len(lattice.sizes), lattice.n_sentences, merge_state.shape[-1]
        coupled = chars.shape[-1] == 3 * d
        gates = _candidates_doubled(chars.index_select(0, lattice.char), d).view(n, 2, b, -1)
        cells = _candidates_doubled(words.index_select(0, lattice.word), d)
        char_weight, word_weight = (_candidates_doubled(w.clone(), d) for w in (char_state, word_state))
        s = merges.index_select(0, lattice.end)
        h, c = chars.new_empty(2, n + 1, 2, b, d)
        h[0], c[0] = 0, 0
        g, tanh_c = chars.new_empty(2, n, 2, b, d)
        sums = chars.new_ones(n, 2, b, 2 * d)  # numerators, denominators
        word_g, word_c = s.new_empty(2, *s.shape)
        shares = s.new_empty(len(s), 2 * d)  # of words in the sums

        states, c_states = h.view(-1, d), c.view(-1, d)
        start = lattice.start.split_with_sizes([2 * size for size in lattice.sizes])
        o, i, *f, doubled = (x.unbind() for x in gates.chunk(gates.shape[-1] // d, -1))
        numerator, denominator = (x.unbind() for x in sums.chunk(2, -1))
        word_i, word_f, word_doubled = map(lattice.by_step, cells.chunk(3, -1))
        share, weight = map(lattice.by_step, shares.chunk(2, -1))
        of_words = zip(
            *map(lattice.by_step, (cells, word_g, word_c, s, shares, lattice.owner)), word_i, word_f, word_doubled,
            strict=True,
        )  # fmt: skip
        each = zip(*(x.unbind() for x in (gates, g, tanh_c, sums, lattice.merged)), of_words, strict=True)
        h_steps, c_steps = h.unbind(), c.unbind()
        for t, (z, g_t, tanh_c_t, sums_t, merged, of_words_t) in enumerate(each):
            before, present = c_steps[t], c_steps[t + 1]
            z.baddbmm_(h_steps[t], char_weight).sigmoid_()
            _tanh_of_half(doubled[t], out=g_t)
            if coupled:
                torch.lerp(before, g_t, i[t], out=present)
            else:
                torch.mul(i[t], g_t, out=present).addcmul_(before, f[0][t])
            if lattice.sizes[t]:
                cell, word_g_t, word_c_t, s_t, shares_t, owner, word_i_t, word_f_t, doubled_t = of_words_t
                cell.baddbmm_(states.index_select(0, start[t]).view_as(word_c_t), word_weight).sigmoid_()
                _tanh_of_half(doubled_t, out=word_g_t)
                torch.mul(word_i_t, word_g_t, out=word_c_t)
                word_c_t.addcmul_(c_states.index_select(0, start[t]).view_as(word_c_t), word_f_t)
                s_t.baddbmm_(word_c_t, merge_state).sigmoid_()
                torch.mul(torch.exp(s_t, out=weight[t]), word_c_t, out=share[t])
                torch.mul(torch.exp(i[t], out=denominator[t]), g_t, out=numerator[t])
                sums_t.baddbmm_(owner.mT, shares_t)
                torch.where(merged, numerator[t] / denominator[t], present, out=present)
            _tanh_of_half(torch.mul(present, 2, out=tanh_c_t).sigmoid_(), out=tanh_c_t)
            torch.mul(o[t], tanh_c_t, out=h_steps[t + 1])
        ctx.save_for_backward(
            h, c, gates, g, tanh_c, sums, cells, word_g, word_c, s, shares, char_state, word_state, merge_state
        )
        ctx.lattice, ctx.n_words = lattice, len(words)
        return torch.empty_like(chars[:, :d]).index_copy_(0, lattice.char, h[1:].view(-1, d))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """``d_x`` is the gradient by x: by what goes into the activation, where x is a gate."""
        h, c, gates, g, tanh_c, sums, cells, word_g, word_c, s, shares = ctx.saved_tensors[:11]
        char_state, word_state, merge_state = ctx.saved_tensors[11:]
        lattice: Lattice = ctx.lattice
        n, d = len(lattice.sizes), h.shape[-1]
        dh, dc = torch.zeros_like(h), torch.zeros_like(c)
        torch.index_select(grad, 0, lattice.char, out=dh[1:].view(-1, d))
        through_c, through_o, of_c, kept = _char_factors(gates, g, tanh_c, c, sums, lattice.merged)
        before_h, before_c = (x.view(-1, d).index_select(0, lattice.start) for x in (h, c))
        share, of_s, of_word_c = _word_factors(cells, word_g, word_c, s, shares, sums, c, before_c, lattice)
        d_gates = h.new_empty(*gates.shape[:3], gates.shape[3] // d, d)
        d_s, d_cells = torch.empty_like(s), torch.empty_like(of_word_c)

        dh_states, dc_states = dh.view(-1, d), dc.view(-1, d)
        start = lattice.start.split_with_sizes([2 * size for size in lattice.sizes])
        of_words = list(
            zip(
                *map(lattice.by_step, (lattice.owner, share, d_s, of_s)),
                *([x.view(*x.shape[:2], 4, d) for x in lattice.by_step(y)] for y in (d_cells, of_word_c)),
                *map(lattice.by_step, d_cells.split_with_sizes((3 * d, d), -1)),
                strict=True,
            )
        )
        steps = (d_gates[..., 0, :], d_gates[..., 1:, :], through_o, of_c, through_c, kept, d_gates.flatten(-2))
        each = list(zip(*(x.unbind() for x in steps), of_words, strict=True))
        dh_steps, dc_steps, dc_beside = dh.unbind(), dc.unbind(), dc.unsqueeze(-2).unbind()
        for t in reversed(range(n)):
            d_o, d_others, through_o_t, of_c_t, through_c_t, kept_t, d_gates_t, of_words_t = each[t]
            dh_t, dc_t = dh_steps[t + 1], dc_steps[t + 1]
            dc_t.addcmul_(dh_t, through_c_t)
            torch.mul(dh_t, through_o_t, out=d_o)
            torch.mul(dc_beside[t + 1], of_c_t, out=d_others)
            if lattice.sizes[t]:
                owner, share_t, d_s_t, of_s_t, d_each, of_word_c_t, d_word_gates, d_before = of_words_t
                reached = torch.bmm(owner, dc_t)
                torch.mul(reached, of_s_t, out=d_s_t)
                d_word_c = reached.mul_(share_t).baddbmm_(d_s_t, merge_state.mT)
                torch.mul(d_word_c.unsqueeze(-2), of_word_c_t, out=d_each)
                dh_states.index_add_(0, start[t], torch.bmm(d_word_gates, word_state.mT).view(-1, d))
                dc_states.index_add_(0, start[t], d_before.flatten(0, 1))
            dh_steps[t].baddbmm_(d_gates_t, char_state.mT)
            dc_steps[t].addcmul_(dc_t, kept_t)

        d_gates, d_cells = d_gates.view(-1, gates.shape[-1]), d_cells[:, : 3 * d]
        before_h, word_c = before_h[lattice.slots], word_c[lattice.slots]
        return (
            torch.empty_like(d_gates).index_copy_(0, lattice.char, d_gates),
            d_cells.new_zeros(ctx.n_words, 3 * d).index_add_(0, lattice.word, d_cells),
            d_s.new_zeros(len(grad), d).index_add_(0, lattice.end, d_s),
            torch.einsum("nrbd,nrbg->rdg", h[:-1], d_gates.view_as(gates)),
            before_h.mT @ d_cells[lattice.slots],
            word_c.mT @ d_s[lattice.slots],
            None,
        )


def _char_factors(
    gates: Tensor, g: Tensor, tanh_c: Tensor, c: Tensor, sums: Tensor, merged: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What takes dh to dc and to o's gate, and dc to the gates i, (f,) g, side by side, and to the c before."""
    d = g.shape[-1]
    o, i, *f, _ = gates.chunk(gates.shape[-1] // d, -1)
    previous, present, zero = c[:-1], c[1:], c.new_zeros(())
    share = torch.exp(i).div_(sums[..., d:])
    of_i = torch.where(merged, share * (g - present), g if f else g - previous) * (i * (1 - i))
    of_f = [torch.where(merged, zero, previous * (x * (1 - x))) for x in f]
    of_g = torch.where(merged, share, i) * (1 - g * g)
    kept = torch.where(merged, zero, f[0] if f else 1 - i)
    return o * (1 - tanh_c * tanh_c), tanh_c * (o * (1 - o)), torch.stack([of_i, *of_f, of_g], -2), kept


def _word_factors(
    cells: Tensor,
    word_g: Tensor,
    word_c: Tensor,
    s: Tensor,
    shares: Tensor,
    sums: Tensor,
    c: Tensor,
    before_c: Tensor,
    lattice: Lattice,
) -> tuple[Tensor, Tensor, Tensor]:
    """What takes dc to the word's cell state and to its gate s, and that cell state's gradient to the gates i, f, g
    of the cell and to the c before, side by side."""
    d = s.shape[-1]
    i, f, _ = cells.chunk(3, -1)
    denominator = sums.view(-1, 2 * d)[:, d:].index_select(0, lattice.into)
    share = shares[:, d:] / denominator
    of_s = share * (word_c - c[1:].reshape(-1, d).index_select(0, lattice.into)) * (s * (1 - s))
    of_word_c = torch.cat([word_g * (i * (1 - i)), before_c * (f * (1 - f)), i * (1 - word_g * word_g), f], -1)
    return share, of_s, of_word_c


def _candidates_doubled(x: Tensor, d: int) -> Tensor:
    """``x`` with its last ``d`` columns doubled in place, whose tanh the sigmoid of all then gives in one go."""
    x[..., -d:] *= 2
    return x


def _tanh_of_half(sigmoid: Tensor, out: Tensor) -> Tensor:
    """tanh z out of the sigmoid of 2 z: on CPUs torch's tanh takes five times as long as its sigmoid."""
    return torch.mul(sigmoid, 2, out=out).sub_(1)
