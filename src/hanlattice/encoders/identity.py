"""No encoder: the decoder reads the embedding, as with a language model that has already read the context."""

from jaxtyping import Float
from torch import Tensor

from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch


class Identity(Encoder):
    """``h`` is ``x``."""

    def __init__(self, d_in: int):
        super().__init__()
        self.d_out = d_in

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        return x
