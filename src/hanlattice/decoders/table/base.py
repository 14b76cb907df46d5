"""Tables of spans: one row for each first character, one column for each last character.

In a sentence of 4 characters, cell (1, 3) is the span of characters 1, 2 and 3::

                  last character
                    0  1  2  3
    first      0    x  x  x  x       x  a span
    character  1    .  x  x [x]      .  below the diagonal: no span
               2    .  .  x  x
               3    .  .  .  x

A table has N * N cells with one score for each label or class. It is computed in blocks of rows, and only the
candidates of each block are kept, so memory grows with N and not with its square. The exported part, ``scores``,
has one vector for each character, or one for each character and label. A block of rows a to b leaves out the
columns before a, which are below the diagonal: its column 0 is column a of the table.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hanlattice.decoders.base import Decoder, Gold
from hanlattice.decoders.candidates import TopCandidates, at_least_float32, gold_positions
from hanlattice.decoders.structs.blocks import by_block
from hanlattice.decoders.table.rules import Rule
from hanlattice.errors import ModelError
from hanlattice.spans import ScoredSpan, Span

# Elements of a block in training (64 MB in float32) and in inference (8 MB); maximum number of elements of a row.
TRAINING_BLOCK, INFERENCE_BLOCK, MAX_ROW = 1 << 24, 1 << 21, 1 << 28


class Table(Decoder):
    """A decoder that scores every span by :meth:`cells`, and turns the scores into entities by a rule.

    Args:
        labels: The entity labels.
        nested: Whether spans inside other spans may be predicted.
        cell_size: Numbers that :meth:`cells` computes for each cell, intermediate results included.
        rule: The loss, and the rule by which cells are entities.

    Raises:
        ModelError: In ``loss`` and ``decode``, if a single row of the table does not fit in memory.
    """

    def __init__(self, labels: tuple[str, ...], *, nested: bool, cell_size: int, rule: Rule):
        super().__init__()
        self.labels, self.nested = tuple(labels), nested
        self.cell_size, self.rule = cell_size, rule

    @abstractmethod
    def cells(self, scores: Tensor, rows: slice) -> Float[Tensor, "B Z R C"]:
        """Compute the scores of a block of the table.

        Args:
            scores: The result of ``scores``; one vector, or one for each label, for each character.
            rows: The first characters of the block, R of them.

        Returns:
            Z scores for each of the R rows and the C = N - rows.start columns from ``rows.start`` on.
        """

    @abstractmethod
    def divide_cells(self, divisor: float) -> None:
        """Change the weights so that :meth:`cells` returns its scores divided by ``divisor``."""

    def loss(self, scores: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        entities = gold_positions([self.rule.targets(spans) for spans in gold], self.labels).to(mask.device)
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(scores.device.type, enabled=False):
            inputs = (at_least_float32(scores), mask, entities)
            return self.rule.combined(torch.stack(by_block(self._part, inputs, blocks))).mean()

    def divergence(self, first: Tensor, second: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Summed over spans, the mean over sentences; see :meth:`Rule.divergence`."""
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(first.device.type, enabled=False):
            inputs = (at_least_float32(first), at_least_float32(second), mask)
            return torch.stack(by_block(self._divergence_part, inputs, blocks)).sum(0).mean()

    def decode(self, scores: Tensor, mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        with torch.autocast(scores.device.type, enabled=False):
            scores = at_least_float32(scores)
            top = TopCandidates(mask, scores.dtype)
            for rows in self._blocks(mask, INFERENCE_BLOCK):
                found = self.rule.candidates(self.cells(scores, rows), _real(mask, rows), top.min_ranks)
                top.add(found._replace(positions=found.positions + _offset(rows, mask)))
        return [sorted(self.selected(spans)) for spans in top.spans(self.labels)]

    def selected(self, spans: Sequence[ScoredSpan]) -> Sequence[ScoredSpan]:
        """The spans of a sentence that may be predicted together; ``spans`` are sorted from best to worst."""
        return self.rule.selected(spans, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        return self.rule.compatible(spans, nested=self.nested)

    def soften(self, temperature: float) -> dict[str, Any]:
        self.divide_cells(temperature)
        return self.rule.soften(temperature)

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[slice]:
        """The rows of each block. Later blocks have more rows, because their rows have fewer columns."""
        batch, n = mask.shape
        if batch * n * self.cell_size > MAX_ROW:
            raise ModelError(
                f"a table of {n:,} characters with {len(self.labels):,} labels for {batch} texts at once does not"
                " fit in memory: set a smaller training.batch_size or text.window, or have fewer labels"
            )
        start = 0
        while start < max(n, 1):
            stop = min(n, start + max(1, size // max(1, batch * (n - start) * self.cell_size)))
            yield slice(start, stop)
            start = max(stop, 1)

    def _part(self, scores: Tensor, mask: Tensor, entities: Tensor, rows: slice) -> Tensor:
        inside = (rows.start <= entities[:, 1]) & (entities[:, 1] < rows.stop)
        return self.rule.part(self.cells(scores, rows), entities[inside] - _offset(rows, mask), _real(mask, rows))

    def _divergence_part(self, first: Tensor, second: Tensor, mask: Tensor, rows: slice) -> Float[Tensor, "B"]:
        return self.rule.divergence(self.cells(first, rows), self.cells(second, rows), _real(mask, rows))


def _offset(rows: slice, mask: Tensor) -> Int[Tensor, "4"]:
    """What to add to positions in a block to get positions in the table."""
    return torch.tensor([0, rows.start, rows.start, 0], device=mask.device)


def _real(mask: Bool[Tensor, "B N"], rows: slice) -> Bool[Tensor, "B R C"]:
    """Which cells of a block are spans: on or above the diagonal, and not padding."""
    columns = mask[:, rows.start :]
    n_rows = rows.stop - rows.start
    upper = torch.ones(n_rows, columns.shape[1], dtype=torch.bool, device=mask.device).triu()
    return columns[:, :n_rows, None] & columns[:, None] & upper
