"""R-Drop: two forward passes with different dropout, and a penalty for the difference of their predictions."""

from collections.abc import Callable

from torch import Tensor

from hanlattice.decoders.base import Gold
from hanlattice.inputs.batch import Batch
from hanlattice.tagger import ForwardPass, Head


class RDrop:
    r"""The mean loss of two forward passes plus the weighted divergence between them.

    .. math:: \tfrac12 (L_1 + L_2) + \alpha \tfrac12 (\mathrm{KL}(p_1 \| p_2) + \mathrm{KL}(p_2 \| p_1))

    Wu et al. 2021, https://arxiv.org/abs/2106.14448. This is the form of the authors' code; the paper adds the two
    losses, so its :math:`\alpha` is twice as large for the same gradient. Without dropout the result is the
    ordinary loss.

    Args:
        forward: Runs a forward pass, with new dropout in each call.
        weight: :math:`\alpha`.
    """

    def __init__(self, forward: Callable[[Batch, Gold, Head | None], ForwardPass], weight: float):
        self.forward, self.weight = forward, weight

    def __call__(self, batch: Batch, gold: Gold, head: Head | None) -> Tensor:
        first, second = self.forward(batch, gold, head), self.forward(batch, gold, head)
        return (first.loss + second.loss) / 2 + self.weight * first.divergence(second)
