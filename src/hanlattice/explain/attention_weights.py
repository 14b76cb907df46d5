"""The attention weights of a torch model, recorded while it reads. This module imports torch."""

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
    """The attention weights of each layer of the encoder, in order; none if the encoder has no attention.

    Args:
        batch: one sentence.
        convention: the annotation convention to read by; "" for a model that has only one.
    """
    recorded: list[np.ndarray] = []

    def record(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        # The weights are those of character queries alone, in every layer.
        named = {name: value for name, value in options.items() if name != "only_chars"}
        recorded.append(module.weights(*arguments, **named)[0].float().cpu().numpy())  # type: ignore[operator]

    hooks = [
        module.register_forward_pre_hook(record, with_kwargs=True)
        for module in tagger.encoder.modules()
        if isinstance(module, LatticeAttention | Attention)
    ]
    try:
        tagger(batch, convention)
    finally:
        for hook in hooks:
            hook.remove()
    return recorded
