r"""Semantic augmentation: any encoder, fused with an attention over characters of similar meaning.

Nie et al. 2020 (SANER), https://aclanthology.org/2020.emnlp-main.107. Let :math:`h` be the encoder's vector of
a character, and :math:`e_j` a vector of its j-th neighbour. Neighbours are the characters with the nearest
pretrained vectors, or, as in the paper, the words with the nearest vectors in a second table. Then

.. math::
    p_j = \mathrm{softmax}_j(h \cdot e_j / \sqrt{D}), \quad v = \sum_j p_j e_j, \quad
    g = \sigma(W_1 h + W_2 v + b), \quad u = [g \odot h; (1 - g) \odot v]

The paper's next step, :math:`W u + b`, is the first layer of the decoder. Difference from the authors' code: a
character without neighbours attends to nothing; in their code it attends to padding.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.atomic import atomic_write
from hanlattice.embeddings.initial_weights import Rows, rows_to_keep
from hanlattice.embeddings.table import Table
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.inputs.vocabulary import PAD, UNKNOWN
from hanlattice.layers.dropout import Dropout
from hanlattice.vectors import Vectors

Fusion = Literal["gate-concat", "gate-sum", "concat", "sum"]

# Number of rows that are compared with all others at once; it limits memory.
BLOCK = 512

# The file with the names of neighbours that are words, in the folder of a model.
NEIGHBOURS = "neighbours.json"


def saved_words(folder: Path) -> tuple[tuple[str, ...], int]:
    """The words that :meth:`Augmented.save_files` wrote, and the width of their vectors.

    Raises:
        ValueError: the file is missing or broken.
    """
    try:
        saved = json.loads((folder / NEIGHBOURS).read_text(encoding="utf-8"))
        return tuple(map(str, saved["words"])), int(saved["width"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / NEIGHBOURS} is missing or broken ({error}); copy the model again") from None


def nearest(vectors: Float[Tensor, "V D"], k: int) -> Int[Tensor, "V K"]:
    """The ``k`` nearest other rows of each row by cosine, nearest first; ``PAD`` where there are fewer.

    Rows that are zero, and the rows of padding and of unknown characters, have no neighbours and are not
    neighbours of other rows.

    Raises:
        ValueError: ``k`` is less than 1.
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


def nearest_rows(rows: Rows, k: int) -> Rows:
    """The :func:`nearest` rows: of a trained row among the trained rows, of any other row among all rows."""
    among_trained = nearest(rows.trained, k)
    if rows.n_trained == len(rows.values):
        return Rows.of(among_trained)
    return Rows(torch.cat([among_trained, nearest(rows.values, k)[rows.n_trained :]]), rows.n_trained)


@dataclass(frozen=True)
class WordNeighbours:
    """The nearest words of characters, by the cosine of vectors in a second table.

    Attributes:
        words: the distinct words, in the order of their rows.
        rows: K rows of ``values`` for each character, ``PAD`` for none.
        values: vectors of padding, of an unknown word, and of the words.
    """

    words: tuple[str, ...]
    rows: Rows
    values: Rows


def nearest_words(names: Sequence[str], n_trained: int, table: Vectors, k: int, n_words: int = 0) -> WordNeighbours:
    """The ``k`` nearest words of each character in a second table, such as that of Tencent.

    A character without a vector in the table has no neighbours, and is not its own neighbour.

    Args:
        names: the characters, in the order of their rows after padding and unknown.
        n_trained: the number of rows that are trained.
        table: vectors of characters and words in one space.
        k: number of neighbours.
        n_words: only so many of the most frequent names of the table can be neighbours; 0 for all.

    Raises:
        ValueError: ``k`` is less than 1, or the table has none of the characters.
    """
    if k < 1:
        raise ValueError(f"neighbours must be at least 1, not {k}")
    ids = table.ids(names)
    known = np.flatnonzero(ids >= 0)
    if not len(known):
        raise ValueError(
            "its vectors of neighbours have none of the characters; are they vectors of Chinese words?"
        )
    among = table.top(n_words) if n_words else table
    unit = nn.functional.normalize(torch.from_numpy(among.matrix))
    n = min(k, len(among) - 1)
    found = torch.full((len(names) + 2, k), -1)
    for first in range(0, len(known), BLOCK):
        block = known[first : first + BLOCK]
        similarity = nn.functional.normalize(torch.from_numpy(table.at(ids[block]))) @ unit.T
        own = torch.from_numpy(ids[block])
        inside = own < len(among)
        similarity[inside, own[inside]] = -torch.inf
        found[torch.from_numpy(block) + 2, :n] = similarity.topk(n).indices
    # Rows of values: first the words that are neighbours of trained rows, then the others.
    order = list(dict.fromkeys(i for i in found.flatten().tolist() if i >= 0))
    row_of = torch.full((len(among) + 1,), PAD)
    row_of[order] = torch.arange(len(order)) + 2
    n_seen = len(dict.fromkeys(i for i in found[:n_trained].flatten().tolist() if i >= 0))
    values = torch.cat([torch.zeros(2, among.dimension), torch.from_numpy(among.at(np.array(order)))])
    return WordNeighbours(
        tuple(among.names[i] for i in order), Rows(row_of[found], n_trained), Rows(values, n_seen + 2)
    )


class Augmented(Encoder):
    """The result of ``inner`` for each character, fused with an attention over its neighbours.

    Args:
        inner: any encoder of characters.
        neighbours: K rows of ``values`` for each character, ``PAD`` for none; see :func:`nearest`.
        values: vectors of neighbours; they are projected if their width is not that of ``inner``.
        of: whether rows of ``neighbours`` are those of characters or of bigrams; ``"words"`` are the neighbours of
            characters.
        words: the names of the rows of ``values`` after the first two, if neighbours are words; they are saved.
        fusion: ``"gate-concat"`` is the paper's u, and ``"gate-sum"`` adds its two parts; ``"concat"`` and
            ``"sum"`` are the same without the gate.
        scaled: divide scores by the square root of D.
        memory_dropout: rate for values.
        fusion_dropout: rate for the result.
    """

    neighbours: Int[Tensor, "V K"]

    def __init__(
        self,
        inner: Encoder,
        neighbours: Rows | Int[Tensor, "V K"],
        values: Table,
        words: Sequence[str] = (),
        *,
        of: Literal["chars", "bigrams", "words"] = "chars",
        fusion: Fusion = "gate-concat",
        scaled: bool = True,
        memory_dropout: float = 0.2,
        fusion_dropout: float = 0.2,
    ):
        super().__init__()
        self.words = tuple(words)
        self.inner, self.values, self.of, self.fusion = inner, values, of, fusion
        neighbours = Rows.of(neighbours)
        self.register_buffer("neighbours", neighbours.trained)
        self.further_rows = rows_to_keep(neighbours=neighbours)
        d_model = inner.d_out
        self.project = nn.Linear(values.d_out, d_model, bias=False) if values.d_out != d_model else None
        self.gate = nn.Linear(2 * d_model, d_model) if fusion.startswith("gate") else None
        self.scale = d_model**-0.5 if scaled else 1.0
        self.memory_dropout, self.fusion_dropout = Dropout(memory_dropout), Dropout(fusion_dropout)
        self.d_out = 2 * d_model if fusion.endswith("concat") else d_model

    def save_files(self, folder: Path) -> None:
        """Write the words whose vectors are the values, if neighbours are words."""
        if self.words:
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(folder / NEIGHBOURS) as stream:
                json.dump({"width": self.values.d_out, "words": self.words}, stream, ensure_ascii=False, indent=0)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        h = self.inner(x, batch)
        v = self._meaning(h, self.neighbours[batch.bigrams if self.of == "bigrams" else batch.chars])
        if self.gate is not None:
            g = self.gate(torch.cat([h, v], -1)).sigmoid()
            h, v = g * h, (1 - g) * v
        return self.fusion_dropout(torch.cat([h, v], -1) if self.fusion.endswith("concat") else h + v)

    def _meaning(self, h: Float[Tensor, "B N D"], neighbours: Int[Tensor, "B N K"]) -> Float[Tensor, "B N D"]:
        """The attended neighbours of each character; zeros, the value of padding, where there are none."""
        e, real = self.memory_dropout(self.values(neighbours)), neighbours != PAD
        # The scores are those of projected values. To project each query is cheaper than to project its K values.
        query = h if self.project is None else h @ self.project.weight
        scores = self.scale * torch.einsum("bnd,bnkd->bnk", query, e)
        p = scores.masked_fill(~real, torch.finfo(scores.dtype).min).softmax(-1)
        v = torch.einsum("bnk,bnkd->bnd", p, e)
        return v if self.project is None else self.project(v)
