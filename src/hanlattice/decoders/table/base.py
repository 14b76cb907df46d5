"""What all tables share: they are formed block by block, and of a block only what may be an entity is kept.

A table has a row for each first character and a column for each last one; cells below the diagonal and in padding
are of no span. What is exported, ``scores``, grows with the characters alone.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hanlattice.decoders.base import Decoder, Gold
from hanlattice.decoders.candidates import Found, Surest, places_of, precise
from hanlattice.errors import ModelError
from hanlattice.spans import ScoredSpan

# Numbers in a block, where gradients are wanted (64 MB in float32) and where not; and in a single row at most.
BLOCK_TO_LEARN, BLOCK_TO_READ, LARGEST_ROW = 1 << 24, 1 << 21, 1 << 28


class Table(Decoder):
    """A decoder whose cells are scored by :meth:`cells`; ``width`` numbers are formed for each.

    Raises:
        ModelError: in ``loss`` and ``decode``, when even one row of the table is more than memory can hold.
    """

    def __init__(self, labels: tuple[str, ...], *, nested: bool, width: int):
        super().__init__()
        self.labels, self.nested, self.width = tuple(labels), nested, width

    @abstractmethod
    def cells(self, scores: Tensor, rows: slice) -> Float[Tensor, "B Z R C"]:
        """Some rows of the table, from the column on that meets the first of them in the diagonal."""

    @abstractmethod
    def part(
        self, cells: Float[Tensor, "B Z R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Tensor:
        """What a block adds to the loss; ``gold`` are sentences, rows, columns and labels of the entities in it."""

    @abstractmethod
    def combined(self, parts: Tensor) -> Float[Tensor, "B"]:
        """The loss of each sentence from the stacked parts of all blocks."""

    @abstractmethod
    def found(
        self, cells: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"], floors: Float[Tensor, "B"]
    ) -> Found:
        """The cells of a block that may be entities, by their places in it, of ranks above their sentence's."""

    @abstractmethod
    def together(self, spans: Sequence[ScoredSpan]) -> Sequence[ScoredSpan]:
        """Of the spans of a sentence, the best first, those that the decoder's rules let stand together."""

    def loss(self, scores: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        gold_places = places_of(gold, self.labels).to(mask.device)
        blocks = list(self._blocks(mask, BLOCK_TO_LEARN))
        with torch.autocast(scores.device.type, enabled=False):
            given = (precise(scores), mask, gold_places)
            if len(blocks) == 1:
                parts = [self._part(*given, blocks[0])]
            else:  # blocks are formed anew for their gradients, else all of them would lie in memory at once
                parts = [checkpoint(self._part, *given, rows, use_reentrant=False) for rows in blocks]
            return self.combined(torch.stack(parts)).mean()

    def decode(self, scores: Tensor, mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        with torch.autocast(scores.device.type, enabled=False):
            scores = precise(scores)
            surest = Surest(mask, scores.dtype)
            for rows in self._blocks(mask, BLOCK_TO_READ):
                in_block = self.found(self.cells(scores, rows), _real(mask, rows), surest.floors)
                surest.add(in_block._replace(places=in_block.places + _offset(rows, mask)))
        return [sorted(self.together(candidates)) for candidates in surest.spans(self.labels)]

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[slice]:
        """Rows that are formed at once; ever more of them, as their columns become fewer."""
        batch, n = mask.shape
        if batch * n * self.width > LARGEST_ROW:
            raise ModelError(
                f"a table of {n:,} characters with {len(self.labels):,} types for {batch} texts at once does not"
                " fit in memory: set a smaller training.batch_size or text.window, or have fewer types"
            )
        start = 0
        while start < max(n, 1):
            stop = min(n, start + max(1, size // max(1, batch * (n - start) * self.width)))
            yield slice(start, stop)
            start = max(stop, 1)

    def _part(self, scores: Tensor, mask: Tensor, gold: Tensor, rows: slice) -> Tensor:
        inside = (rows.start <= gold[:, 1]) & (gold[:, 1] < rows.stop)
        return self.part(self.cells(scores, rows), gold[inside] - _offset(rows, mask), _real(mask, rows))


def _offset(rows: slice, mask: Tensor) -> Int[Tensor, "4"]:
    """From places in a block to places in the table."""
    return torch.tensor([0, rows.start, rows.start, 0], device=mask.device)


def _real(mask: Bool[Tensor, "B N"], rows: slice) -> Bool[Tensor, "B R C"]:
    """Which cells of a block are of spans."""
    columns = mask[:, rows.start :]
    n_rows = rows.stop - rows.start
    upper = torch.ones(n_rows, columns.shape[1], dtype=torch.bool, device=mask.device).triu()
    return columns[:, :n_rows, None] & columns[:, None] & upper
