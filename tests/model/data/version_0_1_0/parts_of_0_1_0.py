"""An encoder that a user wrote for version 0.1.0: it imports modules by the paths that they had then."""

from hanlattice.batch import Batch
from hanlattice.dropout import Dropout
from hanlattice.encoders.feed_forward import FeedForward
from hanlattice.encoders.recurrent import BidirectionalLSTM
from hanlattice.structs.segmentation import word_starts
from torch import Tensor, nn

from hanlattice.encoders.base import Encoder


class WordStarts(Encoder):
    """A bidirectional LSTM over characters, which reads at each of them whether a word starts there."""

    def __init__(self, d_in: int, tables: object, *, d_hidden: int = 6):
        super().__init__()
        self.start = nn.Embedding(2, d_in)
        self.recurrence = BidirectionalLSTM(d_in, 2 * d_hidden)
        self.feed_forward = FeedForward(2 * d_hidden, 3 * d_hidden, 0.0)
        self.dropout = Dropout(0.1)
        self.d_out = 2 * d_hidden

    def forward(self, x: Tensor, batch: Batch) -> Tensor:
        words = batch.words
        starts = word_starts(words.head, words.tail, words.mask, batch.mask)
        h = self.recurrence(self.dropout(x + self.start(starts.long())), batch.mask)
        result: Tensor = h + self.feed_forward(h)
        return result
