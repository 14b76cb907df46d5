"""A body that ``hanlattice pretrain`` made, beside the vectors of characters and bigrams."""

from contextlib import nullcontext
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.body import Body
from hanlattice.embeddings.body_folder import BOUNDARY, save_files
from hanlattice.embeddings.body_folder import Characters as KnownCharacters
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.pieces import Pieces, laid_out
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout


class Own(nn.Module):
    """``embedding(batch) -> x [B N D]``: what a pretrained body makes of each character of ``batch.texts``.

    Texts beyond the body's window are read in windows that share half, each character where it is most inside.
    ``beside`` gives further vectors of the same characters. ``mode``: the body is ``tuned``, or stays ``frozen``.
    ``held`` is for the training loop: the body does not learn for the time being.
    """

    def __init__(
        self,
        body: Body,
        known: KnownCharacters,
        beside: Characters | None = None,
        *,
        mode: Literal["frozen", "tuned"] = "frozen",
        body_dropout: float = 0.1,
    ):
        super().__init__()
        self.language_model, self.known, self.beside = body, known, beside
        self.dropout = Dropout(body_dropout)
        self.d_out = body.shape.width + (0 if beside is None else beside.d_out)
        self.held = False
        body.requires_grad_(mode == "tuned")

    def depths(self) -> list[tuple[nn.Parameter, int]]:
        """Trained parameters of the body, and how many of its layers lie above each: 0 in the last."""
        return [(p, depth) for p, depth in self.language_model.depths() if p.requires_grad]

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        if len(batch.texts) != len(batch.chars):
            raise ValueError("a pretrained body reads batch.texts: give the texts of the sentences")
        learns = not self.held and self.language_model.norm.weight.requires_grad
        with nullcontext() if learns else torch.no_grad():
            x = self._read(batch)
        x = self.dropout(x)
        return x if self.beside is None else torch.cat([x, self.beside(batch)], -1)

    def _read(self, batch: Batch) -> Float[Tensor, "B N D"]:
        texts = [_one_each(self.known.ids(text)) for text in batch.texts]
        marks = [BOUNDARY]
        rows = laid_out(texts, batch.chars.shape[1], self.language_model.shape.window - 2, marks, marks, BOUNDARY)
        ids, lengths, index, weight = (
            torch.from_numpy(array).to(batch.chars.device)
            for array in (rows.ids, rows.lengths, rows.index[..., 0], rows.weight)
        )
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        states = self.language_model(ids, None if bool(mask.all()) else mask)
        return states.flatten(0, 1)[index] * weight

    def save_files(self, folder: Path) -> None:
        """Write what a blank embedding of this kind is built from."""
        save_files(folder, self.language_model.shape, self.known)


def _one_each(ids: np.ndarray) -> Pieces:
    """A piece for each character."""
    at = np.arange(len(ids))
    return Pieces(ids, at, at)
