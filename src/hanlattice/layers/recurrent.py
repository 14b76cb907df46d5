"""A bidirectional LSTM for padded sentences, with tensor operations only, so that it can be exported."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class BidirectionalLSTM(nn.Module):
    """One LSTM from the first character to the last and one from the last to the first, concatenated.

    The second LSTM reads each sentence reversed within its own length, so it begins with the last real character.

    Args:
        d_in: width of the input.
        d_out: width of the result; each direction has half of it.

    Raises:
        ValueError: ``d_out`` is odd.
    """

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        if d_out % 2:
            raise ValueError(f"the width of an LSTM in both directions must be even, not {d_out}")
        self.d_out = d_out
        self.forwards = nn.LSTM(d_in, d_out // 2, batch_first=True)
        self.backwards = nn.LSTM(d_in, d_out // 2, batch_first=True)

    def forward(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D_out"]:
        position = torch.arange(mask.shape[1], device=mask.device)
        mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - position, position).unsqueeze(-1)  # [B N 1]
        ahead, _ = self.forwards(x)
        back, _ = self.backwards(x.take_along_dim(mirrored, 1))
        return torch.cat([ahead, back.take_along_dim(mirrored, 1)], -1)
