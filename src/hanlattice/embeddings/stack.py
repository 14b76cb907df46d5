"""Several embeddings side by side."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch


class Stack(nn.Module):
    """``embedding(batch) -> x [B N D]``: the vectors of all ``parts``, embeddings too, one after the other."""

    def __init__(self, parts: Mapping[str, Any]):
        super().__init__()
        if not parts:
            raise ValueError("needs at least one part, such as [embedding.parts.chars] with a name")
        try:
            self.parts = nn.ModuleDict(parts)
        except KeyError as error:  # a name with a dot, or one that every dictionary has
            raise ValueError(f"give a part another name: {error.args[0]}") from None
        self.d_out = sum(part.d_out for part in parts.values())

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        return torch.cat([part(batch) for part in self.parts.values()], -1)
