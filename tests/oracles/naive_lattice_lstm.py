"""The Lattice LSTM by the formulas of its paper: one sentence, one direction, one character and one word at a time.

The weights are those of the module under test, read by name; only the computation is another one.
"""

import torch
from torch import Tensor

from hanlattice.encoders.lattice_lstm import Direction, LatticeLSTM
from hanlattice.inputs.batch import Batch

Word = tuple[int, int, Tensor]  # first character, last character, vector


def direction(weights: Direction, x: Tensor, words: list[Word]) -> Tensor:
    """Hidden states of a sentence ``x`` [N D], read from its first character to its last, [N H]."""
    d = weights.merge_state.out_features
    h, c = [x.new_zeros(d)], [x.new_zeros(d)]  # the state before character j is h[j], c[j]
    for j in range(len(x)):
        z = weights.char_input(x[j]) + weights.char_state(h[j])
        o, i = torch.sigmoid(z[:d]), torch.sigmoid(z[d : 2 * d])
        f = torch.sigmoid(z[2 * d : 3 * d]) if len(z) == 4 * d else 1 - i
        g = torch.tanh(z[-d:])
        gates, cells = [i], [g]
        for first, last, vector in words:
            if last == j:
                cells.append(word_cell(weights, vector, h[first + 1], c[first + 1]))
                gates.append(torch.sigmoid(weights.merge_input(x[j]) + weights.merge_state(cells[-1])))
        alpha = torch.stack(gates).softmax(0)
        c.append((alpha * torch.stack(cells)).sum(0) if len(cells) > 1 else f * c[j] + i * g)
        h.append(o * torch.tanh(c[-1]))
    return torch.stack(h[1:])


def word_cell(weights: Direction, vector: Tensor, h: Tensor, c: Tensor) -> Tensor:
    """The cell state that a word carries, from the state after its first character."""
    i, f, g = (weights.word_input(vector) + weights.word_state(h)).chunk(3)
    return torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)


def lattice_lstm(encoder: LatticeLSTM, x: Tensor, batch: Batch) -> list[Tensor]:
    """The whole encoder without dropout: for each sentence ``[N 2H]``, where N is its own length."""
    forward, backward = encoder.directions
    embedded = encoder.words(x, batch.words)
    found = []
    for b, n in enumerate(batch.lengths):
        words = [
            (int(batch.words.head[b, m]), int(batch.words.tail[b, m]), embedded.vectors[b, m])
            for m in torch.nonzero(embedded.mask[b])[:, 0].tolist()
            if batch.words.tail[b, m] > batch.words.head[b, m]
        ]
        mirrored = [(n - 1 - last, n - 1 - first, vector) for first, last, vector in words]
        ahead = direction(forward, x[b, :n], words)
        back = direction(backward, x[b, :n].flip(0), mirrored).flip(0)
        found.append(torch.cat([ahead, back], -1))
    return found
