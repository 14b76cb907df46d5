"""The concatenation of several embeddings."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.base import Embedding
from hanlattice.inputs.batch import Batch


class Stack(Embedding):
    """Concatenates the vectors of several embeddings.

    Args:
        parts: The embeddings, by name, in the order of their vectors.

    Raises:
        ValueError: There are no parts, or a name cannot be the name of a module.
    """

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
