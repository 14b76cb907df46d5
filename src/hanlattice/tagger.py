"""The whole model: an embedding, an encoder and a decoder in a row."""

import torch
from torch import Tensor, nn

from hanlattice.batch import Batch
from hanlattice.decoders.base import Decoder, Gold, ScoredSpan
from hanlattice.encoders.base import Encoder


class Tagger(nn.Module):
    """``tagger(batch)`` gives the decoder's scores; any embedding, encoder and decoder compose.

    The embedding maps a batch to ``x [B N D]`` and has ``d_out``; the encoder maps ``(x, batch)`` to
    ``h [B N D]``; the decoder maps ``h`` to scores, a loss and spans.
    """

    def __init__(self, embedding: nn.Module, encoder: Encoder, decoder: Decoder):
        super().__init__()
        self.embedding, self.encoder, self.decoder = embedding, encoder, decoder

    def forward(self, batch: Batch) -> Tensor:
        return self.decoder.scores(self.encoder(self.embedding(batch), batch))

    def loss(self, batch: Batch, gold: Gold) -> Tensor:
        return self.decoder.loss(self(batch), batch.mask, gold)

    @torch.inference_mode()
    def predict(self, batch: Batch) -> list[list[ScoredSpan]]:
        return self.decoder.decode(self(batch), batch.mask)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device
