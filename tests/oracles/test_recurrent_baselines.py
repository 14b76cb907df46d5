"""BiLSTMs over characters and over words, against loops over steps and words.

Faults that go red here: a direction that starts in the padding, halves swapped, states taken at the wrong end of a
word, a word's vector at another word, entities of a word-level tagger at the wrong characters.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.bilstm import BiLSTM
from hanlattice.encoders.word_bilstm import WordBiLSTM
from hanlattice.inputs.batch import Batch, Words
from hanlattice.spans import Span
from hanlattice.tagger import WordTagger

D_IN, D_WORD = 5, 3
# Characters, and (head, tail) of each match; the words of the fewest are in SEGMENTED.
SENTENCES = [(7, [(0, 1), (1, 4), (2, 4), (5, 6)]), (3, [(1, 2)]), (1, []), (5, [(0, 3), (3, 4)])]
SEGMENTED = [[(0, 1), (2, 4), (5, 6)], [(0, 0), (1, 2)], [(0, 0)], [(0, 3), (4, 4)]]


def batch_of(sentences: Sequence[tuple[int, list[tuple[int, int]]]]) -> tuple[Tensor, Batch]:
    torch.manual_seed(0)
    n, m = max(n for n, _ in sentences), max(len(words) for _, words in sentences)
    head, tail, ids = torch.zeros(3, len(sentences), m, dtype=torch.long)
    for b, (_, words) in enumerate(sentences):
        for i, (first, last) in enumerate(words):
            head[b, i], tail[b, i], ids[b, i] = first, last, 1 + 4 * b + i
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    matched = torch.arange(m) < torch.tensor([len(words) for _, words in sentences])[:, None]
    chars = torch.zeros_like(mask, dtype=torch.long)
    x = torch.randn(len(sentences), n, D_IN, dtype=torch.float64)
    return x, Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), matched))


def step(cell: Any, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM, gate by gate."""
    z = cell.weight_ih_l0 @ x + cell.bias_ih_l0 + cell.weight_hh_l0 @ h + cell.bias_hh_l0
    i, f, g, o = z.chunk(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def states(cell: nn.LSTM, xs: Sequence[Tensor]) -> list[Tensor]:
    h = c = torch.zeros(cell.hidden_size, dtype=torch.float64)
    out = []
    for x in xs:
        h, c = step(cell, x, h, c)
        out.append(h)
    return out


def both(layer: Any, xs: Sequence[Tensor]) -> list[Tensor]:
    right, left = states(layer.forwards, xs), states(layer.backwards, xs[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(right, left, strict=True)]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_bilstm_step_by_step(layers: int) -> None:
    x, batch = batch_of(SENTENCES)
    encoder = BiLSTM(D_IN, d_hidden=4, layers=layers).double().eval()
    h = encoder(x, batch)
    assert h.shape[-1] == encoder.d_out == 8
    for b, (n, _) in enumerate(SENTENCES):
        xs = list(x[b, :n])
        for layer in encoder.recurrence.layers:
            xs = both(layer, xs)
        assert_close(h[b, :n], torch.stack(xs))


def test_bilstm_equals_packed_sequences() -> None:
    x, batch = batch_of(SENTENCES)
    encoder = BiLSTM(D_IN, d_hidden=4, layers=2).double().eval()
    packed = nn.LSTM(D_IN, 4, 2, batch_first=True, bidirectional=True).double()
    for i, layer in enumerate(encoder.recurrence.layers):
        for lstm, suffix in ((layer.forwards, ""), (layer.backwards, "_reverse")):
            assert isinstance(lstm, nn.Module)
            for name, weight in lstm.named_parameters():
                getattr(packed, name.replace("l0", f"l{i}") + suffix).data.copy_(weight)
    sequence = pack_padded_sequence(x, batch.mask.sum(1), batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(packed(sequence)[0], batch_first=True)
    assert_close(encoder(x, batch)[batch.mask], expected[batch.mask])


def word_encoder(**settings: Any) -> WordBiLSTM:
    words = WordEmbedding(Table(torch.randn(20, D_WORD)))
    encoder = WordBiLSTM(D_IN, words, d_hidden=4, d_characters=2, **settings).double().eval()
    nn.init.normal_(encoder.unmatched)
    return encoder


def character_features(encoder: WordBiLSTM, xs: Tensor, first: int, last: int) -> Tensor:
    features: Any = encoder.features
    inside = list(xs[first : last + 1])
    match type(features).__name__:
        case "OfWord":
            layer = features.recurrence
            return torch.cat([states(layer.forwards, inside)[-1], states(layer.backwards, inside[::-1])[-1]])
        case "OfSentence":
            h = both(features.recurrence, list(xs))
            return torch.cat([h[last][:2], h[first][2:]])
        case "Convolved":
            weight, bias = features.convolution.weight, features.convolution.bias
            padded = [torch.zeros_like(inside[0]), *inside, torch.zeros_like(inside[0])]
            each = [bias + sum(weight[:, :, k] @ padded[i + k] for k in range(3)) for i in range(len(inside))]
            return torch.stack(each).max(0).values
    return xs.new_zeros(0)


@pytest.mark.parametrize("characters", ["none", "lstm", "sentence", "cnn"])
def test_equals_reading_word_by_word(characters: str) -> None:
    x, batch = batch_of(SENTENCES)
    encoder = word_encoder(characters=characters)
    h = encoder(x, batch)
    words = encoder.words_of(batch)
    for b, (n, matches) in enumerate(SENTENCES):
        count = int(words.mask[b].sum())
        found = list(zip(words.head[b, :count].tolist(), words.tail[b, :count].tolist(), strict=True))
        assert found == SEGMENTED[b]
        vectors = []
        for first, last in found:
            known = (first, last) in matches
            row = (
                encoder.words.table.weight[1 + 4 * b + matches.index((first, last))] if known else encoder.unmatched
            )
            vectors.append(torch.cat([row, character_features(encoder, x[b, :n], first, last)]))
        assert_close(h[b, :count], torch.stack(both(encoder.recurrence.layers[0], vectors)))


class TestWholeWords:
    """A tagger of words: what it can find and what it cannot."""

    GOLD: tuple[list[Span], ...] = (
        [Span(0, 2, "A"), Span(5, 7, "A")],
        [Span(0, 3, "A")],
        [],
        [Span(1, 5, "A"), Span(0, 1, "A")],  # both cut the word of four characters
    )

    def tagger(self) -> WordTagger:
        torch.manual_seed(0)

        class Given(nn.Module):
            def forward(self, batch: Batch) -> Tensor:
                return batch_of(SENTENCES)[0]

        encoder = word_encoder(output_dropout=0.0)
        return WordTagger(Given(), encoder, CRF(encoder.d_out, ("A",))).double()

    def test_unreachable_entities_are_known(self) -> None:
        lost = self.tagger().unreachable(batch_of(SENTENCES)[1], self.GOLD)
        assert lost == [[], [], [], sorted(self.GOLD[3])]

    def test_reachable_entities_are_learned(self) -> None:
        tagger, batch = self.tagger(), batch_of(SENTENCES)[1]
        optimiser = torch.optim.Adam(tagger.parameters(), lr=0.05)
        for _ in range(60):
            optimiser.zero_grad()
            tagger.loss(batch, self.GOLD).backward()
            optimiser.step()
        found = [[s.span for s in spans] for spans in tagger.eval().predict(batch)]
        assert found == [*map(list, self.GOLD[:3]), []]
