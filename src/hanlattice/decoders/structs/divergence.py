r"""Symmetric Kullback-Leibler divergences between two forward passes, which R-Drop adds to the loss.

All distributions here have the form :math:`p(y) \propto \exp(s \cdot f(y))` with scores s and indicators f. Let p
have the scores s, and q the scores t. The normalisers cancel, so the divergence is

.. math:: \tfrac12 (\mathrm{KL}(p \| q) + \mathrm{KL}(q \| p)) = \tfrac12 (E_p[f] - E_q[f]) \cdot (s - t)

where :math:`E_p[f]` are probabilities: of classes, of cells, or of the tags of each character.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from hanlattice.decoders.structs.linear_chain import Chain, marginals


def bernoulli(first: Float[Tensor, "*S"], second: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
    """The divergence of two independent yes-or-no decisions, for each pair of log-odds."""
    return (first.sigmoid() - second.sigmoid()) * (first - second) / 2


def categorical(first: Tensor, second: Tensor, dim: int = -1) -> Tensor:
    """The divergence of two softmax distributions over the dimension ``dim``, which the result does not have."""
    return ((first.softmax(dim) - second.softmax(dim)) * (first - second)).sum(dim) / 2


def chains(first: Chain, second: Chain) -> Float[Tensor, "B"]:
    """The divergence of the distributions over whole tag sequences, ``[B]``, in float64.

    The chains may differ in their emissions only. The result is exact: transitions have the same scores on both
    sides and cancel, and the marginals of the tags contain what transitions contribute.
    """
    change = torch.where(first.mask.unsqueeze(-1), first.emissions.double() - second.emissions.double(), 0.0)
    return ((marginals(first) - marginals(second)) * change).sum((1, 2)) / 2
