"""The contract of every encoder."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.batch import Batch


class Encoder(nn.Module, ABC):
    """``encoder(x, batch) -> h``: one vector a character; it knows nothing of labels and never sees padding."""

    d_out: int

    @abstractmethod
    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]: ...
