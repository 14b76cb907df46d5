"""Dropout that is several times as fast on CPUs as torch's, which draws a number for every component."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropout(nn.Module):
    """Sets a share ``rate`` of the components to zero in training, and scales the others up to keep the mean.

    On CPUs 64 random bits decide four components. The actual rate is the multiple of 1 / 65,536 that is nearest to
    ``rate``, and the scale is that of the actual rate.

    Raises:
        ValueError: the rate is not in [0, 1).
    """

    def __init__(self, rate: float):
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"a dropout rate must be at least 0 and less than 1, not {rate}")
        self.rate = rate

    def forward(self, x: Float[Tensor, "*S"]) -> Float[Tensor, "*S"]:
        if not self.training or not self.rate:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.rate)
        dropped = round(self.rate * 65536)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        kept = bits.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 32768
        return x * kept.to(x.dtype).mul_(65536 / (65536 - dropped))

    def extra_repr(self) -> str:
        return str(self.rate)
