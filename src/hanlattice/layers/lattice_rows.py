"""Where the characters and words of a batch stand while the Lattice LSTM reads it, in both directions.

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
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


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
