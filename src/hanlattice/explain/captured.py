"""Attention weights, caught while a tagger reads."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from hanlattice.encoders.flat import LatticeAttention
from hanlattice.encoders.transformer import Attention
from hanlattice.inputs.batch import Batch
from hanlattice.tagger import Tagger


@torch.inference_mode()
def attention_weights(tagger: Tagger, batch: Batch, convention: str = "") -> list[Float[np.ndarray, "A N L"]]:
    """Of a batch of one sentence, read by a convention, layer by layer in the order in which they read."""
    caught: list[np.ndarray] = []

    def catch(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        # A layer of FLAT that asks for words as well is told to give the rows of characters alone.
        named = {name: value for name, value in options.items() if name != "only_chars"}
        caught.append(module.weights(*arguments, **named)[0].float().cpu().numpy())  # type: ignore[operator]

    hooks = [
        module.register_forward_pre_hook(catch, with_kwargs=True)
        for module in tagger.encoder.modules()
        if isinstance(module, LatticeAttention | Attention)
    ]
    try:
        tagger(batch, convention)
    finally:
        for hook in hooks:
            hook.remove()
    return caught
