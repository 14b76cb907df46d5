r"""Lattice LSTM: an LSTM over characters; words carry cell states from their first character to their last.

Zhang & Yang 2018, https://aclanthology.org/P18-1144. A character has the gates of an LSTM. A word
:math:`w_{b,e}` from character b to character e has its own cell state, computed from the state after its first
character and from its vector. A gate s decides how much of this cell state its last character takes:

.. math::
    (i, f) = \sigma, \tilde c = \tanh \text{ of } W^w [x^w; h_b] + b^w, \quad c^w = f c_b + i \tilde c, \quad
    s = \sigma(W^l [x_e; c^w] + b^l)

Where words end, the new cell state is a weighted mean of the character's candidate and of the cell states of these
words. The weights are a softmax over the character's input gate and the words' gates s, all after the sigmoid, for
each component; the previous cell state is not read. Where no word ends, the step is that of an LSTM::

    c_0 --南--> c_1 --京--> c_2 --市--> c_3 --长--> c_4 --江--> c_5
                 |           ^           ^           |           ^
                 +---南京----+           |           +---长江----+
                 +--------南京市---------+

The backward direction does the same for the reversed sentence: a word carries the state from its last character to
its first.

The authors' code reads one sentence and one word at a time. Here all words that end at a step are read together, in
all sentences and in both directions: :mod:`hanlattice.layers.lattice_recurrence`.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.lattice_recurrence import LatticeRecurrence
from hanlattice.layers.lattice_rows import Lattice


class Direction(nn.Module):
    """The weights of one direction.

    Rows are ordered by gate: ``char`` has o, i, f (unless ``coupled``) and g; ``word`` has i, f and g of a word's
    cell; ``merge`` has s. Initial weights are those of the authors' code: orthogonal for inputs, the identity for
    states, biases 0.
    """

    def __init__(self, d_in: int, d_word: int, d_hidden: int, *, coupled: bool):
        super().__init__()
        gates = 3 if coupled else 4
        self.char_input, self.char_state = _linear_pair(d_in, d_hidden, gates)
        self.word_input, self.word_state = _linear_pair(d_word, d_hidden, 3)
        self.merge_input, self.merge_state = _linear_pair(d_in, d_hidden, 1)


def _linear_pair(d_in: int, d_hidden: int, gates: int) -> tuple[nn.Linear, nn.Linear]:
    """Linear layers from an input and from a state to ``gates`` gates; the two share one bias."""
    of_input, of_state = nn.Linear(d_in, gates * d_hidden), nn.Linear(d_hidden, gates * d_hidden, bias=False)
    nn.init.orthogonal_(of_input.weight)
    nn.init.zeros_(of_input.bias)
    with torch.no_grad():
        of_state.weight.copy_(torch.eye(d_hidden).repeat(gates, 1))
    return of_input, of_state


class LatticeLSTM(Encoder):
    """Characters and matched words, read in both directions; the forward direction comes first in the result.

    Words of one character are not read. The authors' code has a second table of word vectors for the backward
    direction, with the same initial weights; here both directions read ``words``.

    Args:
        d_in: width of the character vectors.
        words: embeds the matched words.
        d_hidden: H, the width of each direction.
        coupled: the forget gate of a character is 1 - i, as in the authors' code. In the paper it has its own
            weights. The forget gate of a word has its own weights in both.
        output_dropout: rate for the result; the code has it, the paper does not mention it.
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        d_hidden: int = 100,
        coupled: bool = False,
        output_dropout: float = 0.5,
    ):
        super().__init__()
        self.d_out = 2 * d_hidden
        self.words = words
        self.ahead = Direction(d_in, words.d_out, d_hidden, coupled=coupled)
        self.back = Direction(d_in, words.d_out, d_hidden, coupled=coupled)
        self.dropout = Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        both = self.directions
        dtype = both[0].char_input.weight.dtype
        lattice = Lattice.of(batch.mask, words.mask, batch.words.head, batch.words.tail, dtype)
        # Rounding errors of a recurrence in half precision add up.
        with torch.autocast(x.device.type, enabled=False):
            h = LatticeRecurrence.apply(  # type: ignore[no-untyped-call]
                _of_inputs(x, [d.char_input for d in both]),
                _of_inputs(words.vectors, [d.word_input for d in both]),
                _of_inputs(x, [d.merge_input for d in both]),
                _of_states([d.char_state for d in both]),
                _of_states([d.word_state for d in both]),
                _of_states([d.merge_state for d in both]),
                lattice,
            )
        return self.dropout(h.view(*x.shape[:2], self.d_out))

    @property
    def directions(self) -> tuple[Direction, Direction]:
        return self.ahead, self.back


def _of_inputs(x: Float[Tensor, "B S D"], linears: list[nn.Linear]) -> Float[Tensor, "B*S*2 G"]:
    """The contributions of inputs to gates, in one product for both directions."""
    weight, bias = torch.cat([f.weight for f in linears]), torch.cat([f.bias for f in linears])
    return nn.functional.linear(x.to(weight.dtype), weight, bias).view(-1, len(weight) // 2)


def _of_states(linears: list[nn.Linear]) -> Float[Tensor, "2 H G"]:
    return torch.stack([f.weight for f in linears]).mT
