r"""Low-rank adaptation (LoRA): large linear layers are frozen, and small matrices beside them are trained."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class LowRank(nn.Module):
    r"""A frozen linear layer plus a trained update of rank r.

    .. math:: y = W x + b + \frac{\alpha}{r} B A x

    B is zero at first, so the layer is unchanged before the first training step. Hu et al. 2021,
    https://arxiv.org/abs/2106.09685.

    Args:
        linear: The layer with the weights W, b, which is frozen.
        rank: The rank r.
        alpha: The scale of the update.
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.linear, self.scale = linear.requires_grad_(False), alpha / rank
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=5**0.5)

    def forward(self, x: Float[Tensor, "*S D_in"]) -> Float[Tensor, "*S D_out"]:
        return self.linear(x) + self.scale * (x @ self.down.mT @ self.up.mT)


def adapt(model: nn.Module, targets: tuple[str, ...], rank: int, alpha: float) -> None:
    """Freeze a model, and replace its linear layers of the given names by :class:`LowRank`.

    Args:
        model: The model, which is changed in place.
        targets: Names of linear layers. A name is the last part of a layer's path, such as ``query`` for
            ``encoder.layer.0.attention.self.query``.
        rank: See :class:`LowRank`.
        alpha: See :class:`LowRank`.

    Raises:
        ValueError: The model has no linear layer of one of these names.
    """
    model.requires_grad_(False)
    linear = {path: module for path, module in model.named_modules() if isinstance(module, nn.Linear)}
    names = {path.rpartition(".")[2] for path in linear}
    for target in targets:
        if target not in names:
            raise ValueError(f"there is no linear layer {target!r} to adapt; there are {', '.join(sorted(names))}")
    for path, module in linear.items():
        parent, _, name = path.rpartition(".")
        if name in targets:
            setattr(model.get_submodule(parent), name, LowRank(module, rank, alpha))
