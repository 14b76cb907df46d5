"""Several embeddings side by side."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.batch import Batch


class Stack(nn.Module):
    """``embedding(batch) -> x [B N D]``: the vectors of all ``parts``, one after the other."""

    def __init__(self, parts: Mapping[str, nn.Module]):
        super().__init__()
        if not parts:
            raise ValueError("needs at least one part, such as [embedding.parts.chars] with a name")
        self.parts = nn.ModuleDict(parts)
        self.d_out = sum(part.d_out for part in parts.values())

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        return torch.cat([part(batch) for part in self.parts.values()], -1)
