r"""The recurrence of the Lattice LSTM, for a batch and for both directions at once, with its gradient.

At a step, let :math:`i, f, o` be the character's gates after the sigmoid, and :math:`g` its candidate after the
tanh. A word w that ends at this step has a cell state :math:`c^w`, which is computed from the word's vector and the
state after its first character, and a gate :math:`s_w`. Then

.. math:: c = \frac{e^i g + \sum_w e^{s_w} c^w}{e^i + \sum_w e^{s_w}}
          \text{ if words end here, else } f c_{t-1} + i g, \qquad h = o \tanh c

How words are batched: all words that end at one step are read together, in all sentences and in both directions.
They lie in slots, ordered by step, then by direction. A step has as many slots in each direction as the fuller
direction needs; a slot that is left over belongs to no sentence. For the sentence 南京市长江::

    step t               0     1         2          3         4
    forward reads        南    京        市         长        江
      words that end here      南京      南京市     市长      长江, (none)
    backward reads       江    长        市         京        南
      words that end here      长江      市长       (none)    南京, 南京市
    sizes                0     1         1          1         2
    slots                      0 | 1     2 | 3      4 | 5     6 7 | 8 9

The gradient is written by hand. The gradient of a gate is the gradient of :math:`c` or of :math:`h` at its step,
times a factor that depends on the forward pass only. So the factors of all steps are computed in a few large
operations, which leaves a dozen small operations for each step of the backward pass. The gradients of the weights
are one product over all steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable


@dataclass(frozen=True)
class Lattice:
    """Where characters and words stand in both directions; backward reads every sentence from its own end.

    Three kinds of rows are used, all flat:

    - inputs of characters: ``(sentence * N + position) * 2 + direction``;
    - inputs of words: ``(sentence * M + word) * 2 + direction``;
    - states: ``(step * 2 + direction) * B + sentence``, where step 0 is the state before the first character.

    C = 2 N B, and S slots in each direction make R = 2 S slots; a slot that is left over has row 0 and no owner.
    """

    n_sentences: int
    sizes: list[int]  # slots of each step in one direction
    char: Int[Tensor, "C"]  # rows of the inputs of characters, by step, direction and sentence
    word: Int[Tensor, "R"]  # row of the input of a slot's word
    start: Int[Tensor, "R"]  # row of the state after the word's first character
    end: Int[Tensor, "R"]  # row of the input of the word's last character
    into: Int[Tensor, "R"]  # row of the state that the word is merged into, counted from step 1
    owner: Float[Tensor, "R B"]  # 1 for the word's sentence, else 0
    slots: Int[Tensor, "2 S"]  # slots of each direction
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
        """The lattice of a batch.

        Args:
            chars: which characters are real.
            words: which words are real. Words of one character are left out: they would end before they begin.
            head: first characters of words.
            tail: last characters of words.
            dtype: of ``owner``.
        """
        (b, n), m = chars.shape, words.shape[1]
        sentences, directions = (torch.arange(k, device=chars.device) for k in (b, 2))
        position = _positions(chars)
        sentence, word = torch.nonzero(words & (tail > head), as_tuple=True)
        head, tail = head[sentence, word], tail[sentence, word]
        opening, closing = torch.stack([head, tail]), torch.stack([tail, head])  # characters  [2 W]
        start, end = (position[directions[:, None], sentence, at] for at in (opening, closing))  # steps
        size, slot, slots = _slots(end, n)

        def in_slots(values: Tensor) -> Tensor:
            return values.new_zeros(slots.numel()).index_put_((slot,), values)

        owner = torch.zeros(slots.numel(), b, dtype=dtype, device=chars.device)
        owner[slot, sentence] = 1
        merged = torch.zeros(n, 2, b, 1, dtype=torch.bool, device=chars.device)
        merged[end, directions[:, None], sentence] = True
        direction = directions[:, None]
        char = (sentences[:, None] * n + position) * 2 + direction[:, :, None]
        return cls(
            n_sentences=b,
            sizes=size.tolist(),
            char=char.permute(2, 0, 1).flatten(),
            word=in_slots((sentence * m + word) * 2 + direction),
            start=in_slots(((start + 1) * 2 + direction) * b + sentence),
            end=in_slots((sentence * n + closing) * 2 + direction),
            into=in_slots((end * 2 + direction) * b + sentence),
            owner=owner,
            slots=slots,
            merged=merged,
        )

    def by_step(self, rows: Tensor) -> list[Tensor]:
        """The slots of each step, ``[R W]`` to ``[2 size W]``."""
        blocks = rows.split_with_sizes([2 * size for size in self.sizes])
        return [block.view(2, size, rows.shape[1]) for block, size in zip(blocks, self.sizes, strict=True)]

    def starts(self) -> Sequence[Int[Tensor, "_"]]:
        """``start`` of the slots of each step."""
        return self.start.split_with_sizes([2 * size for size in self.sizes])


def _positions(chars: Bool[Tensor, "B N"]) -> Int[Tensor, "2 B N"]:
    """The position of the character that each direction reads at each step.

    The mapping is its own inverse: the same numbers are the steps at which a direction reads each character.
    Padding comes last and keeps its position.
    """
    step = torch.arange(chars.shape[1], device=chars.device)
    last = chars.sum(1, keepdim=True) - 1
    return torch.stack([step.expand(chars.shape), torch.where(chars, last - step, step)])


def _slots(end: Int[Tensor, "2 W"], n: int) -> tuple[Int[Tensor, "N"], Int[Tensor, "2 W"], Int[Tensor, "2 S"]]:
    """From the steps at which words end in each direction: sizes of steps, slots of words, slots of directions."""
    direction = torch.arange(2, device=end.device)[:, None]
    counts = torch.zeros(2, n, dtype=torch.long, device=end.device)
    counts.scatter_add_(1, end, torch.ones_like(end))
    size = counts.amax(0)
    before = size.cumsum(0) - size
    total = int(before[-1] + size[-1])
    ordered, order = end.sort(stable=True, dim=1)
    rank = torch.arange(end.shape[1], device=end.device) - (counts.cumsum(1) - counts).gather(1, ordered)
    first = 2 * before[ordered] + direction * size[ordered]
    slot = torch.empty_like(end).scatter_(1, order, first + rank)
    step = torch.arange(n, device=end.device).repeat_interleave(size)
    return size, slot, torch.arange(total, device=end.device) + before[step] + direction * size[step]


class _Weights(NamedTuple):
    """The weights by which states are multiplied; G is 4, or 3 where the forget gate is 1 - i."""

    char: Float[Tensor, "2 H G*H"]
    word: Float[Tensor, "2 H 3*H"]
    merge: Float[Tensor, "2 H H"]


class _Pass(NamedTuple):
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
    def begin(cls, chars: Tensor, words: Tensor, merges: Tensor, lattice: Lattice) -> "_Pass":
        """The tensors before the first step: gates hold the contributions of the inputs, the rest is empty."""
        n, b, d = len(lattice.sizes), lattice.n_sentences, merges.shape[-1]
        gates = _double_candidates(chars.index_select(0, lattice.char), d).view(n, 2, b, -1)
        word_gates = _double_candidates(words.index_select(0, lattice.word), d)
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
        computed = _Pass.begin(chars, words, merges, lattice)
        char_weight, word_weight = (_double_candidates(w.clone(), d) for w in (char_state, word_state))
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
        computed, weights = _Pass(*ctx.saved_tensors[:11]), _Weights(*ctx.saved_tensors[11:])
        lattice: Lattice = ctx.lattice
        d = computed.h.shape[-1]
        gradients = _Gradients.begin(grad, computed, lattice)
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


class _Gradients(NamedTuple):
    """What a backward pass computes: the gradients of states, and of gates before their activations."""

    h: Float[Tensor, "N+1 2 B H"]
    c: Float[Tensor, "N+1 2 B H"]
    gates: Float[Tensor, "N 2 B G H"]
    word_s: Float[Tensor, "R H"]
    word_cells: Float[Tensor, "R 4*H"]  # of the gates i, f, g, and of the cell state before

    @classmethod
    def begin(cls, grad: Tensor, computed: _Pass, lattice: Lattice) -> "_Gradients":
        """The tensors before the last step: gradients of h are those of the result, the rest is zero or empty."""
        h, d = computed.h, computed.h.shape[-1]
        dh, dc = torch.zeros_like(h), torch.zeros_like(h)
        torch.index_select(grad, 0, lattice.char, out=dh[1:].view(-1, d))
        shape, s = computed.gates.shape, computed.word_s
        return cls(
            dh, dc, h.new_empty(*shape[:3], shape[3] // d, d), torch.empty_like(s), s.new_empty(len(s), 4 * d)
        )

    def char_steps(self, computed: _Pass, lattice: Lattice) -> Iterator["_CharGradient"]:
        factors = _char_factors(computed, lattice)
        gates = (self.gates.flatten(-2), self.gates[..., 0, :], self.gates[..., 1:, :])
        return map(_CharGradient._make, zip(*(x.unbind() for x in (*gates, *factors)), strict=True))

    def word_steps(self, computed: _Pass, lattice: Lattice) -> Iterator["_WordGradient"]:
        d = self.word_s.shape[-1]
        factors = _word_factors(computed, lattice)
        by_part = (
            [x.view(*x.shape[:2], 4, d) for x in lattice.by_step(y)]
            for y in (self.word_cells, factors.word_to_cells)
        )
        gates_and_before = map(lattice.by_step, self.word_cells.split_with_sizes((3 * d, d), -1))
        by_step = map(lattice.by_step, (lattice.owner, factors.c_to_word, self.word_s, factors.c_to_s))
        return map(_WordGradient._make, zip(*by_step, *by_part, *gates_and_before, lattice.starts(), strict=True))

    def of_arguments(self, computed: _Pass, lattice: Lattice, n_words: int) -> tuple[Tensor, ...]:
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

    def read(self, dc: Tensor, all_dh: Tensor, all_dc: Tensor, weights: _Weights) -> None:
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


def _char_factors(computed: _Pass, lattice: Lattice) -> _CharFactors:
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


def _word_factors(computed: _Pass, lattice: Lattice) -> _WordFactors:
    g, s, d = computed.word_g, computed.word_s, computed.word_s.shape[-1]
    i, f, _ = computed.word_gates.chunk(3, -1)
    before = computed.c.view(-1, d).index_select(0, lattice.start)
    denominator = computed.sums.view(-1, 2 * d)[:, d:].index_select(0, lattice.into)
    share = computed.word_terms[:, d:] / denominator
    present = computed.c[1:].reshape(-1, d).index_select(0, lattice.into)
    to_cells = torch.cat([g * (i * (1 - i)), before * (f * (1 - f)), i * (1 - g * g), f], -1)
    return _WordFactors(share, share * (computed.word_c - present) * (s * (1 - s)), to_cells)


def _double_candidates(x: Tensor, d: int) -> Tensor:
    """``x`` with its last ``d`` columns doubled in place, so that one sigmoid serves gates and candidate."""
    x[..., -d:] *= 2
    return x


def _tanh_of_half(sigmoid: Tensor, out: Tensor) -> Tensor:
    """tanh z from the sigmoid of 2 z: on CPUs torch's tanh takes five times as long as its sigmoid."""
    return torch.mul(sigmoid, 2, out=out).sub_(1)
