"""A tagger as one static graph from padded ids to emissions, for export to ONNX.

The graph computes the same emissions as the PyTorch modules. A static graph cannot make decisions that depend on
the batch, such as which word lengths are rare. :mod:`hanlattice.engines.onnx` makes these decisions and passes them
to the graph as inputs.
"""

from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.encoders.flat import Flat, FlatLayer
from hanlattice.encoders.positions import FourDistances, Sines
from hanlattice.encoders.positions.absolute import sinusoid
from hanlattice.inputs.batch import Batch, Words
from hanlattice.tagger import Head, Tagger


class StoredTable(nn.Module):
    """An embedding table as it is stored: float32, float16, or int8 with a scale for each row."""

    values: Tensor
    scale: Tensor | None

    def __init__(self, values: Tensor, scale: Tensor | None):
        super().__init__()
        self.register_buffer("values", values)
        self.register_buffer("scale", scale)

    def forward(self, ids: Int[Tensor, "*S"]) -> Float[Tensor, "*S D"]:
        rows = nn.functional.embedding(ids, self.values).float()
        return rows if self.scale is None else rows * nn.functional.embedding(ids, self.scale).float()


class Conventions(nn.Module):
    """The embedding shifts and emission layers of all C conventions; the default convention is the first.

    Y is the largest number of tags of any convention. Emissions of conventions with fewer tags are padded to Y.
    """

    shifts: Float[Tensor, "C D_in"]
    weight: Float[Tensor, "C Y D"]
    bias: Float[Tensor, "C Y"]

    def __init__(self, tagger: Tagger):
        super().__init__()
        heads = [cast(Head, head) for head in tagger.conventions.values()]
        shifts = [head.shift for head in heads]
        zero = torch.zeros(cast(int, tagger.embedding.d_out))
        self.register_buffer("shifts", torch.stack([zero, *(shift.detach() for shift in shifts)]))
        decoders = [tagger.decoder, *(head.decoder for head in heads)]
        linear = [cast(nn.Linear, decoder.emission).requires_grad_(False) for decoder in decoders]
        most = max(part.out_features for part in linear)
        pad = nn.functional.pad
        weights = [pad(part.weight, (0, 0, 0, most - part.out_features)) for part in linear]
        self.register_buffer("weight", torch.stack(weights))
        self.register_buffer("bias", torch.stack([pad(part.bias, (0, most - len(part.bias))) for part in linear]))

    def shifted(self, x: Float[Tensor, "B N D_in"], convention: Int[Tensor, "1"]) -> Float[Tensor, "B N D_in"]:
        return x + self.shifts[convention]

    def emissions(self, h: Float[Tensor, "B N D"], convention: Int[Tensor, "1"]) -> Float[Tensor, "B N Y"]:
        return h @ self.weight[convention].mT + self.bias[convention][:, None]


class CharacterGraph(nn.Module):
    """Emissions of a tagger whose encoder reads no words."""

    inputs = ("chars", "bigrams", "char_bias", "convention")

    def __init__(self, tagger: Tagger):
        super().__init__()
        self.embedding, self.encoder, self.conventions = tagger.embedding, tagger.encoder, Conventions(tagger)

    def forward(
        self,
        chars: Int[Tensor, "B N"],
        bigrams: Int[Tensor, "B N"],
        char_bias: Float[Tensor, "B N"],
        convention: Int[Tensor, "1"],
    ) -> Float[Tensor, "B N Y"]:
        none = chars[:, :0]
        words = Words(none, none, none, none, none.bool())
        batch = Batch(chars, bigrams, char_bias == 0, words)
        h = self.encoder(self.conventions.shifted(self.embedding(batch), convention), batch)
        return self.conventions.emissions(h, convention)


class FlatGraph(nn.Module):
    """Emissions of a tagger whose encoder is FLAT with one layer, for sentences of at most ``window`` characters.

    Only characters are queries, so words need only a key and a value. One projection computes key and value of a
    word; another computes the query, key, value and residual of a character. The head and the tail of a character
    are the same position, so the four distances between a character and a key have only two distinct values: to the
    head of the key and to its tail. Two tables are enough.

    Inputs: ``char_bias`` and ``word_bias`` are 0 for a real character or word, and very low for padding. In each
    sentence, the first C words have common lengths: ``common`` lists these lengths, and ``column`` is the index of
    a word's length in ``common`` (index 0 is length 1, the length of characters). The other R words have rare
    lengths. The inputs ``rare_…`` list these words of all sentences, W in total: their sentence
    (``rare_sentence``), their first character (``rare_head``), and the index of their length in ``rare``
    (``rare_column``). ``rare_place`` is the index in this list of each of the R words of a sentence.

    ``of_heads`` and ``of_tails`` have one column for each distance; see `_tables`.
    """

    inputs = (
        *("chars", "bigrams", "char_bias", "words", "head", "tail", "labels", "word_bias"),
        *("common", "column", "rare", "rare_column", "rare_sentence", "rare_head", "rare_place", "convention"),
    )
    of_heads: Float[Tensor, "D S"]
    of_tails: Float[Tensor, "D S"]

    def __init__(self, tagger: Tagger, window: int):
        super().__init__()
        flat = tagger.encoder
        assert isinstance(flat, Flat)
        (layer,) = flat.layers
        assert isinstance(layer, FlatLayer)
        self.embedding, self.words, self.layer = tagger.embedding, flat.words, layer
        self.conventions = Conventions(tagger)
        self.window, self.heads = window, layer.attention.heads
        attention, itself = layer.attention, _identity(flat.d_out)
        key = attention.key if isinstance(attention.key, nn.Linear) else itself
        self.of_chars = _composed(flat.char_projection, [attention.query, key, attention.value, itself])
        self.of_words = _composed(flat.word_projection, [key, attention.value])
        assert isinstance(flat.distances, FourDistances)
        of_heads, of_tails = _tables(flat.distances, window)
        self.register_buffer("of_heads", of_heads)
        self.register_buffer("of_tails", of_tails)

    def forward(
        self,
        chars: Int[Tensor, "B N"],
        bigrams: Int[Tensor, "B N"],
        char_bias: Float[Tensor, "B N"],
        words: Int[Tensor, "B M"],
        head: Int[Tensor, "B M"],
        tail: Int[Tensor, "B M"],
        labels: Int[Tensor, "B M"],
        word_bias: Float[Tensor, "B M"],
        common: Int[Tensor, "K"],
        column: Int[Tensor, "B C"],
        rare: Int[Tensor, "J"],
        rare_column: Int[Tensor, "W"],
        rare_sentence: Int[Tensor, "W"],
        rare_head: Int[Tensor, "W"],
        rare_place: Int[Tensor, "B R"],
        convention: Int[Tensor, "1"],
    ) -> Float[Tensor, "B N Y"]:
        matched = Words(words, head, tail, labels, word_bias == 0)
        x = self.conventions.shifted(self.embedding(Batch(chars, bigrams, char_bias == 0, matched)), convention)
        q, k, v, residual = self.of_chars(x).chunk(4, -1)
        word_k, word_v = self.of_words(self.words(x, matched).vectors).chunk(2, -1)
        attention = self.layer.attention
        q_position = q + attention.v.flatten()
        places = [
            *self._of_common(self._by_head(q_position), head[:, : column.shape[1]], common, column),
            self._of_rare(q_position, rare, rare_column, rare_sentence, rare_head, rare_place),
        ]
        q = self._by_head(q + attention.u.flatten())
        k, v = self._by_head(torch.cat([k, word_k], 1)), self._by_head(torch.cat([v, word_v], 1))
        logits = q @ k.transpose(2, 3) + torch.cat(places, -1)
        if attention.scale != 1.0:
            logits = logits * attention.scale
        weights = (logits + torch.cat([char_bias, word_bias], 1)[:, None]).softmax(-1)
        attended = attention.output((weights @ v).permute(1, 2, 0, 3).flatten(2))
        from_itself = self.layer.residual == "self"
        h = self.layer.attention_norm(attended + (attended if from_itself else residual))
        fed = self.layer.feed_forward(h)
        return self.conventions.emissions(
            self.layer.feed_forward_norm(fed + (fed if from_itself else h)), convention
        )

    def _by_head(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "A B S d"]:
        return x.view(*x.shape[:2], self.heads, -1).permute(2, 0, 1, 3)

    def _of_common(
        self,
        q: Float[Tensor, "A B N d"],
        head: Int[Tensor, "B C"],
        common: Int[Tensor, "K"],
        column: Int[Tensor, "B C"],
    ) -> tuple[Float[Tensor, "A B N N"], Float[Tensor, "A B N C"]]:
        """Position scores of characters and of words with common lengths, from a table of all distances.

        The table has one row for each query i. A key with the head j is in column n - 1 + j - i: one column to the
        left in each next row. So the scores of all characters are a strided view of the table, with the row stride
        2n - 1. The scores of words are gathered.
        """
        a, b, n, d = q.shape
        size, rows = 2 * n, q.reshape(a, b * n, d)
        encodings = self._encodings(n, common)
        of_chars = (rows @ encodings[..., :size]).view(a, b, n * size)
        of_chars = of_chars[..., n - 1 : n - 1 + n * (size - 1)].reshape(a, b, n, size - 1)[..., :n]
        table = (rows @ encodings[..., size:]).view(a, b, n, -1)
        at = ((column - 1) * size + n - 1 + head)[:, None] - torch.arange(n)[:, None]  # [B N C]
        return of_chars, table.gather(3, at.expand(a, -1, -1, -1))

    def _of_rare(
        self,
        q: Float[Tensor, "B N D"],
        lengths: Int[Tensor, "J"],
        column: Int[Tensor, "W"],
        sentence: Int[Tensor, "W"],
        head: Int[Tensor, "W"],
        place: Int[Tensor, "B R"],
    ) -> Float[Tensor, "A B N R"]:
        """Position scores of words with rare lengths, computed for each word from its own encodings.

        In `_of_common`, every rare length would add 2n columns to the table.
        """
        n = q.shape[1]
        encodings = self._encodings(n, lengths).flatten(0, 1).T  # [J*S D]
        at = (column * (2 * n) + n - 1 + head)[:, None] - torch.arange(n)  # [W N]
        products = nn.functional.embedding(at, encodings) * q[sentence]
        scores = products.view(*products.shape[:2], self.heads, -1).sum(-1)  # [W N A]
        return scores[place].permute(3, 0, 2, 1)

    def _encodings(self, n: int, lengths: Int[Tensor, "K"]) -> Float[Tensor, "A d K*S"]:
        """Projected position encodings of keys with these lengths.

        For each length there are S = 2n encodings: the head of the key is n - 1 before to n after the query.
        """
        distance = n - 1 - torch.arange(2 * n) + self.window
        to_head = self.of_heads[:, distance]
        to_tail = self.of_tails[:, (distance - (lengths[:, None] - 1)).clamp(min=0)]
        fused = torch.relu(to_head[:, None] + to_tail).flatten(1)  # [D K*S]
        position = self.layer.attention.position
        return (position.weight @ fused + position.bias[:, None]).view(self.heads, -1, fused.shape[1])


def _identity(d: int) -> nn.Linear:
    linear = nn.Linear(d, d)
    nn.init.eye_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


@torch.no_grad()
def _composed(first: nn.Linear, then: list[nn.Linear]) -> nn.Linear:
    """One layer that equals ``first``, followed by each layer of ``then``; the outputs are concatenated."""
    weight = torch.cat([f.weight @ first.weight for f in then])
    linear = nn.Linear(first.in_features, len(weight))
    linear.weight.copy_(weight)
    linear.bias.copy_(torch.cat([f(first.bias) for f in then]))
    return linear


def can_export(flat: Flat) -> bool:
    """Whether :class:`FlatGraph` can compute the positions of a FLAT with one layer."""
    distances = flat.distances
    plain = isinstance(distances, FourDistances) and distances.distances != "heads"
    layer = flat.layers[0]
    assert isinstance(layer, FlatLayer)
    return (
        plain
        and isinstance(distances.encode, Sines)
        and isinstance(distances.activation, nn.ReLU)
        and layer.attention.hidden is None
    )


@torch.no_grad()
def _tables(distances: FourDistances, window: int) -> tuple[Tensor, Tensor]:
    """The two summands of a position encoding: one for the distance to a key's head, one for that to its tail.

    The distance is the position of the query minus that of the key. Its column is the distance plus ``window``.
    """
    encoded = sinusoid(torch.arange(-window, window) + distances.origin, distances.d_model)
    weights = distances.fuse.weight.chunk(distances.fuse.in_features // distances.d_model, 1)
    tables = [encoded @ w.T for w in weights]
    to_head, to_tail = (tables[0] + tables[2], tables[1] + tables[3]) if len(tables) == 4 else tables
    return (to_head + distances.fuse.bias).T.contiguous(), to_tail.T.contiguous()
