"""The losses of a step: those of one forward pass, or of the techniques in the settings around it."""

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from hanlattice.config.settings import TrainingConfig
from hanlattice.decoders.base import Decoder, Gold
from hanlattice.errors import ConfigError
from hanlattice.inputs.batch import Batch
from hanlattice.tagger import ForwardPass, Head, Tagger
from hanlattice.training.device import autocast
from hanlattice.training.techniques.adversarial import Adversarial, sources
from hanlattice.training.techniques.multi_sample_dropout import MultiSampleDropout
from hanlattice.training.techniques.r_drop import RDrop

Loss = Callable[[Batch, Gold, Head | None], Tensor]

Losses = Callable[[Batch, Gold, Head | None], Iterator[Tensor]]
"""The losses of a batch, ``[]`` each. The backward pass of one must be run before the next one is requested."""


def losses_of(learner: nn.Module, tagger: Tagger, config: TrainingConfig) -> Losses:
    """The losses that ``config`` describes.

    Args:
        learner: has all decoders that are trained, those of auxiliary corpora included.
        tagger: gives the forward passes.
        config: the settings of the techniques.

    Raises:
        ConfigError: a part of the model does not support one of the techniques.
    """
    expand = MultiSampleDropout(config.dropout_samples, config.sample_dropout) if config.dropout_samples else None

    def forward(batch: Batch, gold: Gold, head: Head | None) -> ForwardPass:
        with autocast(config, tagger.device):
            return tagger.training_pass(batch, gold, head, expand)

    if config.r_drop:
        _refuse_decoders_without_divergence(learner)
    loss: Loss = RDrop(forward, config.r_drop) if config.r_drop else lambda *given: forward(*given).loss
    if config.fgm:
        return Adversarial(loss, sources(tagger, config.fgm_on), config.fgm)
    return lambda *given: iter([loss(*given)])


def _refuse_decoders_without_divergence(learner: nn.Module) -> None:
    """
    Raises:
        ConfigError: a decoder does not implement :meth:`Decoder.divergence`.
    """
    for module in learner.modules():
        if isinstance(module, Decoder) and type(module).divergence is Decoder.divergence:
            raise ConfigError(
                f"training.r_drop needs {type(module).__name__}.divergence, which this decoder does not implement;"
                " set training.r_drop = 0, or use another decoder"
            )
