"""Multi-sample dropout: the decoder reads several dropout samples of the encoder's vectors in one step."""

from hanlattice.layers.dropout import Dropout
from hanlattice.tagger import Outputs


class MultiSampleDropout:
    """Replaces each output of the encoder by several dropout samples of it, which share its weight in the loss.

    Inoue 2019, https://arxiv.org/abs/1905.09788. The encoder runs once; only the decoder runs for each sample. This
    dropout comes after the encoder's own output dropout.

    Args:
        samples: The number of samples, at least 1.
        rate: The dropout rate.
    """

    def __init__(self, samples: int, rate: float):
        self.samples, self.dropout = samples, Dropout(rate)

    def __call__(self, outputs: Outputs) -> Outputs:
        return [(weight / self.samples, self.dropout(h)) for weight, h in outputs for _ in range(self.samples)]
