r"""Semantic augmentation: any encoder, with the neighbours of each character in meaning beside what it says.

Nie et al. 2020 (SANER), https://aclanthology.org/2020.findings-emnlp.378. With :math:`h` from the encoder and
:math:`e_j` a vector of the j-th of the characters whose pretrained vectors are nearest to this one's,

.. math::
    p_j = \mathrm{softmax}_j(h \cdot e_j / \sqrt{D}), \quad v = \sum_j p_j e_j, \quad
    g = \sigma(W_1 h + W_2 v + b), \quad u = [g \odot h; (1 - g) \odot v]

What the paper then calls :math:`W u + b` is the first layer of the decoder. Differs from the authors' code: names
without neighbours attend to nothing, where theirs attends to padding.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.table import Table
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.inputs.vocabulary import PAD, UNKNOWN
from hanlattice.layers.dropout import Dropout

Fusion = Literal["gate-concat", "gate-sum", "concat", "sum"]

# Rows whose similarity to all others is held at once.
BLOCK = 512


def nearest(vectors: Float[Tensor, "V D"], k: int) -> Int[Tensor, "V K"]:
    """For each row the ``k`` others nearest by cosine, nearest first, and ``PAD`` where there are no more.

    Rows that are zero, and those of padding and unknown, neither have neighbours nor are any.

    Raises:
        ValueError: fewer than one is asked for.
    """
    if k < 1:
        raise ValueError(f"neighbours must be at least 1, not {k}")
    found = torch.full((len(vectors), k), PAD)
    named = vectors.any(1)
    named[[PAD, UNKNOWN]] = False
    rows = named.nonzero().squeeze(1)
    unit = nn.functional.normalize(vectors[rows])
    n = max(min(k, len(rows) - 1), 0)
    for first in range(0, len(rows), BLOCK):
        block = torch.arange(first, min(first + BLOCK, len(rows)))
        similarity = unit[block] @ unit.T
        similarity[torch.arange(len(block)), block] = -torch.inf  # itself
        found[rows[block], :n] = rows[similarity.topk(n).indices]
    return found


class Augmented(Encoder):
    """The result of ``inner`` for each character, fused with what its neighbours mean.

    ``neighbours`` are rows of ``values`` for each row of the table of characters (or bigrams: ``of``), ``PAD`` for
    none; see :func:`nearest`. Values of another width than ``inner`` gives are projected to it. ``fusion``:
    ``gate-concat`` is the paper's u, ``gate-sum`` adds its halves; ``concat`` and ``sum`` are the same without the
    gate. Dropout: ``memory_dropout`` on values, ``fusion_dropout`` on the result. ``scaled``: the root of D above.
    """

    neighbours: Int[Tensor, "V K"]

    def __init__(
        self,
        inner: Encoder,
        neighbours: Int[Tensor, "V K"],
        values: Table,
        *,
        of: Literal["chars", "bigrams"] = "chars",
        fusion: Fusion = "gate-concat",
        scaled: bool = True,
        memory_dropout: float = 0.2,
        fusion_dropout: float = 0.2,
    ):
        super().__init__()
        self.inner, self.values, self.of, self.fusion = inner, values, of, fusion
        self.register_buffer("neighbours", neighbours)
        d_model = inner.d_out
        self.project = nn.Linear(values.d_out, d_model, bias=False) if values.d_out != d_model else None
        self.gate = nn.Linear(2 * d_model, d_model) if fusion.startswith("gate") else None
        self.scale = d_model**-0.5 if scaled else 1.0
        self.memory_dropout, self.fusion_dropout = Dropout(memory_dropout), Dropout(fusion_dropout)
        self.d_out = 2 * d_model if fusion.endswith("concat") else d_model

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        h = self.inner(x, batch)
        v = self._meaning(h, self.neighbours[batch.bigrams if self.of == "bigrams" else batch.chars])
        if self.gate is not None:
            g = self.gate(torch.cat([h, v], -1)).sigmoid()
            h, v = g * h, (1 - g) * v
        return self.fusion_dropout(torch.cat([h, v], -1) if self.fusion.endswith("concat") else h + v)

    def _meaning(self, h: Float[Tensor, "B N D"], neighbours: Int[Tensor, "B N K"]) -> Float[Tensor, "B N D"]:
        """What a character attends to among its neighbours; zeros, the value of padding, where it has none."""
        e, real = self.memory_dropout(self.values(neighbours)), neighbours != PAD
        query = h if self.project is None else h @ self.project.weight  # rather than project K values for each h
        scores = self.scale * torch.einsum("bnd,bnkd->bnk", query, e)
        p = scores.masked_fill(~real, torch.finfo(scores.dtype).min).softmax(-1)
        v = torch.einsum("bnk,bnkd->bnd", p, e)
        return v if self.project is None else self.project(v)
