"""Biaffine scores of spans."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from hanlattice.decoders.base import check_size, divide
from hanlattice.decoders.table.base import Table
from hanlattice.decoders.table.rules import OneLabel
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.rotary import rotated

# Rows of the table of width scores: spans of at least this many characters share the last one.
WIDTHS = 32


class Biaffine(Table):
    r"""A softmax over "none" and the labels for every span.

    .. math:: r(i, j) = h_i^\top U h_j + W (h_i \oplus h_j) + b = [h_i; 1]^\top M [h_j; 1]

    Yu et al. 2020, https://aclanthology.org/2020.acl-main.577. :math:`h_i` is a projection of the first character
    and :math:`h_j` another projection of the last one. The paper calls them feed-forward networks; the authors'
    code has linear layers, ``activation = "none"``. As in their code M is zero at first, so training starts from
    equal probabilities of all classes; ``training.initialisation = "xavier"`` leaves M alone.

    The published decoder has neither a bias towards "none" nor position information. Both can be added:

    - ``none_bias`` is the initial score of "none", an entry of b. Nearly all spans are not entities, so without it
      the first steps mostly learn how rare entities are (Lin et al. 2017, https://arxiv.org/abs/1708.02002, section
      3.3). With T labels, the initial probability of an entity is :math:`T / (T + e^{\text{bias}})`.
    - ``position = "rotary"`` makes the bilinear term depend on the distance, :math:`h_i^\top U R_{j-i} h_j`, with
      the rotation R of :func:`hanlattice.layers.rotary.rotated`. Both sides are rotated after the product with U,
      as queries and keys are in :class:`~hanlattice.decoders.table.global_pointer.GlobalPointer`.
    - ``position = "width"`` adds a learned score for each width of a span and each class, zero at first. This is
      what an embedding of the width adds if it is concatenated to :math:`h_i \oplus h_j`, as in the code of Yan et
      al. 2023, https://aclanthology.org/2023.acl-short.123. Widths from :data:`WIDTHS` on share one score.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        d_span: Width of each projection; even for rotary positions.
        activation: Applied to the projections.
        dropout: Applied to the projections.
        position: Position information: ``none``, ``rotary`` or ``width``.
        none_bias: Initial score of "none", before the softmax.
        negative_weight: Weight in the loss of spans that are not entities, from 0 to 1.
        nested: Whether spans inside other spans may be predicted. Predicted spans never cross.

    Raises:
        ValueError: An argument is out of range, or the width is odd for rotary positions.
    """

    own_initialisation = ("products", "widths")

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_span: int = 150,
        activation: Literal["none", "relu"] = "none",
        dropout: float = 0.2,
        position: Literal["none", "rotary", "width"] = "none",
        none_bias: float = 0.0,
        negative_weight: float = 1.0,
        nested: bool = True,
    ):
        rule = OneLabel(negative_weight=negative_weight)
        super().__init__(labels, nested=nested, cell_size=len(labels) + 1, rule=rule)
        if activation not in ("none", "relu"):
            raise ValueError(f"activation must be 'none' or 'relu', not {activation!r}")
        if position not in ("none", "rotary", "width"):
            raise ValueError(f"position must be 'none', 'rotary' or 'width', not {position!r}")
        if position == "rotary" and d_span % 2:
            raise ValueError(f"d_span must be even for rotary positions, not {d_span}")
        check_size((len(self.labels) + 1) * (d_span + 1) ** 2, self.labels)
        self.projection = nn.Linear(d_in, 2 * d_span)
        self.activation = nn.ReLU() if activation == "relu" else nn.Identity()
        self.dropout = Dropout(dropout)
        self.rotary = position == "rotary"
        self.products = nn.Parameter(torch.zeros(len(self.labels) + 1, d_span + 1, d_span + 1))
        with torch.no_grad():
            self.products[0, -1, -1] = none_bias
        self.widths = nn.Parameter(torch.zeros(WIDTHS, len(self.labels) + 1)) if position == "width" else None

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character its projections as the first and as the last of a span; E is ``2 * d_span``."""
        return self.dropout(self.activation(self.projection(h)))

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B Z R C"]:
        first, last = (pad(side, (0, 1), value=1.0) for side in scores.chunk(2, -1))
        queries, keys = first[:, None, rows] @ self.products, last[:, None, rows.start :]
        if self.rotary:
            queries, keys = _rotated_without_bias(queries), _rotated_without_bias(keys)
        cells = queries @ keys.mT
        return cells if self.widths is None else cells + self._width_scores(self.widths, *cells.shape[-2:])

    def _width_scores(self, widths: Float[Tensor, "V Z"], n_rows: int, n_columns: int) -> Float[Tensor, "Z R C"]:
        """The score of each cell's width. Below the diagonal, where there are no spans, it is that of width 1."""
        rows, columns = (torch.arange(n, device=widths.device) for n in (n_rows, n_columns))
        return widths[(columns - rows[:, None]).clamp(0, WIDTHS - 1)].movedim(-1, 0)

    def divide_cells(self, divisor: float) -> None:
        divide(divisor, self.products, *([] if self.widths is None else [self.widths]))


def _rotated_without_bias(x: Float[Tensor, "*S N E"]) -> Float[Tensor, "*S N E"]:
    """Rotate all components but the last one, which is multiplied with a bias."""
    return torch.cat([rotated(x[..., :-1]), x[..., -1:]], -1)
