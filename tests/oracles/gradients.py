"""Gradients of a decoder's loss against finite differences."""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder
from hanlattice.spans import Span


class Loss(nn.Module):
    """The loss of a decoder as a function of characters."""

    def __init__(self, decoder: Decoder, mask: Tensor, gold: Sequence[Collection[Span]]):
        super().__init__()
        self.decoder, self.mask, self.gold = decoder, mask, gold

    def forward(self, h: Tensor) -> Tensor:
        return self.decoder.loss(self.decoder.scores(h), self.mask, self.gold)


def assert_right(decoder: Decoder, h: Tensor, mask: Tensor, gold: Sequence[Collection[Span]]) -> None:
    """Of characters and of all weights; that of padding is 0."""
    module = Loss(decoder, mask, gold)
    names, weights = zip(*module.named_parameters(), strict=True)

    def loss(h: Tensor, *weights: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, weights, strict=True)), h)

    inputs = [x.detach().clone().requires_grad_() for x in (h, *weights)]
    assert torch.autograd.gradcheck(loss, inputs, fast_mode=True)
    loss(*inputs).backward()
    assert not inputs[0].grad[~mask].any()
