"""The attention weights of a torch model, recorded in a forward pass. This module imports torch."""

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
    """The attention weights of each layer of the encoder, in order; an empty list if the encoder has no attention.

    Queries are the N characters. Keys are the L nodes of a lattice, or the characters in an encoder without words.

    Args:
        batch: one sentence.
        convention: the annotation convention of the output; "" for a model that has only one.
    """
    recorded: list[np.ndarray] = []

    def record(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        # `weights` takes the arguments of `forward`, except for this one: its queries are always the characters.
        kept = {name: value for name, value in options.items() if name != "only_chars"}
        recorded.append(module.weights(*arguments, **kept)[0].float().cpu().numpy())  # type: ignore[operator]

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
