"""A character Transformer from ``hanlattice pretrain``, with character and bigram vectors beside it."""

from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.body import Body, multiply_in_bfloat16
from hanlattice.embeddings.body_files import BOUNDARY, save_files
from hanlattice.embeddings.body_files import Characters as KnownCharacters
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.subwords import Subwords, rows_of
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout


class Own(Embedding):
    """The contextual vectors of the characters of ``batch.texts``, from a pretrained character Transformer.

    Texts beyond its window are read in windows that overlap by half, and each character is taken from the window
    whose edges are farthest.

    Args:
        body: The Transformer.
        known: Its vocabulary.
        beside: An embedding whose vectors are concatenated, if any.
        mode: Whether the Transformer is fine-tuned (``tuned``) or not (``frozen``).
        body_dropout: Applied to the Transformer's output.
        precision: Number type of the products of the Transformer's linear layers in training; float32 otherwise.

    Attributes:
        held: Set by the training loop while the Transformer is temporarily frozen.
    """

    def __init__(
        self,
        body: Body,
        known: KnownCharacters,
        beside: Characters | None = None,
        *,
        mode: Literal["frozen", "tuned"] = "frozen",
        body_dropout: float = 0.1,
        precision: Literal["float32", "bfloat16"] = "float32",
    ):
        super().__init__()
        self.language_model, self.known, self.beside = body, known, beside
        self.dropout = Dropout(body_dropout)
        self.d_out = body.shape.width + (0 if beside is None else beside.d_out)
        self.held = False
        body.requires_grad_(mode == "tuned")
        if precision == "bfloat16":
            multiply_in_bfloat16(body)

    def depths(self) -> list[tuple[nn.Parameter, int]]:
        """The trained parameters of the Transformer, each with the number of layers above it."""
        return [(p, depth) for p, depth in self.language_model.depths() if p.requires_grad]

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        if len(batch.texts) != len(batch.chars):
            raise ValueError("a pretrained body reads batch.texts: give the texts of the sentences")
        learns = not self.held and self.language_model.norm.weight.requires_grad
        with nullcontext() if learns else torch.no_grad():
            x = self._vectors(batch)
        x = self.dropout(x)
        return x if self.beside is None else torch.cat([x, self.beside(batch)], -1)

    def _vectors(self, batch: Batch) -> Float[Tensor, "B N D"]:
        texts = [_one_per_character(self.known.ids(text)) for text in batch.texts]
        marks = [BOUNDARY]
        rows = rows_of(texts, batch.chars.shape[1], self.language_model.shape.window - 2, marks, marks, BOUNDARY)
        ids, lengths, index, weight = (
            torch.from_numpy(array).to(batch.chars.device)
            for array in (rows.ids, rows.lengths, rows.index[..., 0], rows.weight)
        )
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        states = self.language_model(ids, None if bool(mask.all()) else mask)
        return states.flatten(0, 1)[index] * weight

    def save_files(self, folder: Path) -> None:
        """Write the sizes and the vocabulary, without weights."""
        save_files(folder, self.language_model.shape, self.known)


def _one_per_character(ids: np.ndarray) -> Subwords:
    """One token for each character."""
    index = np.arange(len(ids))
    return Subwords(ids, index, index)
