r"""LR-CNN: stacked convolutions, where layer l reads the words of l characters, and feedback from the top layer.

Gui et al. 2019, CNN-Based Chinese NER with Lexicon Rethinking, https://www.ijcai.org/proceedings/2019/692.

Each layer is a convolution of width 2, so :math:`C^l_m` covers the characters from m to m + l - 1, as does a word
:math:`w^l_m` of length l that begins at m::

    layer 3   C^3_0 = 南京市   C^3_1 = 京市长   C^3_2 = 市长江     reads the word 南京市 at 0
    layer 2   C^2_0 = 南京     C^2_1 = 京市     C^2_2 = 市长       reads the words 南京 at 0, 市长 at 2
    layer 1   南               京               市                 characters only

Vector attention merges the two:

.. math::
    C^l_m &= \tanh(H^l [X^{l-1}_m; X^{l-1}_{m+1}] + b^l) \\
    u &= \tanh(W_u C^l_m + U_u w^l_m + b_u), \quad
    i, f = \sigma(W_{i,f} C^l_m + U_{i,f} w^l_m + b_{i,f}) \\
    X^l_m &= i' \odot u + f' \odot C^l_m, \quad i', f' = \mathrm{softmax}(i, f)

for each component. Rethinking reads the sentence again. Now the top layer is a third candidate, whose gate r joins
the softmax, and :math:`V X^L_m` is added to every gate. W, U and b are shared with the first reading and by all
layers. Multi-scale attention is a weighted sum over the layers of a character; the weights are a softmax over the
sums of the components of each layer.

Choices where the paper is silent or differs from the released code:

- The first layer, of single characters, is a projection and reads no words, as in the code. Words longer than the
  last layer are not read.
- Where no word matches, a learned vector takes its place, as in the code.
- A window that extends beyond the end of the sentence reads zeros there, as in the code.
- The paper looks ahead only. The code, which the published scores come from, also looks back to words that end
  at m, with separate weights. So does ``backward``, with layers that keep the alignment: in the code both
  directions read the sum of both; here they are summed in the feedback and in the multi-scale attention.
- ``scales="mlp"`` is the code's: two small layers before the softmax over the layers.
- The code's wider convolutions beside each layer, its gated self-attention over the sentence and its positions are
  left out, since the paper has none of them.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from hanlattice.embeddings.words import EmbeddedWords, WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.layers.dropout import Dropout


class VectorAttention(nn.Module):
    """Merges the features of a layer with the words of its length and, in rethinking, with the top layer."""

    def __init__(self, d_model: int, d_word: int, *, rethinking: bool):
        super().__init__()
        self.gates = 3 if rethinking else 2
        self.features = nn.Linear(d_model, (1 + self.gates) * d_model)
        self.word = nn.Linear(d_word, (1 + self.gates) * d_model, bias=False)
        self.top = nn.Linear(d_model, self.gates * d_model, bias=False) if rethinking else None

    def of_top(self, top: Float[Tensor, "B N D"] | None) -> Float[Tensor, "B N _"] | None:
        """The contribution of the top layer to candidates and gates."""
        return None if self.top is None or top is None else pad(self.top(top), (top.shape[-1], 0))

    def forward(
        self,
        features: Float[Tensor, "B N D"],
        of_words: Float[Tensor, "B N _"],
        top: Float[Tensor, "B N D"] | None,
        of_top: Float[Tensor, "B N _"] | None,
    ) -> Float[Tensor, "B N D"]:
        """The merged features; ``of_words`` and ``of_top`` are contributions to candidates and gates."""
        projected = self.features(features) + of_words
        new, *gates = (projected if of_top is None else projected + of_top).chunk(1 + self.gates, -1)
        candidates = [new.tanh(), features] if top is None else [new.tanh(), features, top]
        weights = torch.stack(gates[: len(candidates)]).sigmoid().softmax(0)
        return (weights * torch.stack(candidates)).sum(0)


class Direction(nn.Module):
    """All layers above the first, which look ahead or, with ``backward``, back."""

    def __init__(self, d_model: int, d_word: int, layers: int, *, backward: bool, rethinking: bool, dropout: float):
        super().__init__()
        self.backward = backward
        self.windows = nn.ModuleList(nn.Linear(2 * d_model, d_model) for _ in range(layers - 1))
        self.attention = VectorAttention(d_model, d_word, rethinking=rethinking)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        first: Float[Tensor, "B N D"],
        of_words: Float[Tensor, "B S N _"],
        mask: Bool[Tensor, "B N"],
        top: Float[Tensor, "B N D"] | None,
    ) -> list[Float[Tensor, "B N D"]]:
        """The layers of one reading; ``of_words`` are the contributions of the words of each layer."""
        layers, x, of_top = [], first, self.attention.of_top(top)
        for window, of_layer in zip(self.windows, of_words.unbind(1), strict=True):
            features = window(self._pairs(self.dropout(x))).tanh()
            x = self.attention(features, of_layer, top, of_top) * mask.unsqueeze(-1)
            layers.append(x)
        return layers

    def _pairs(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N 2*D"]:
        """Every character with the next one, or with ``backward`` with the one before."""
        if self.backward:
            return torch.cat([pad(x[:, :-1], (0, 0, 1, 0)), x], -1)
        return torch.cat([x, pad(x[:, 1:], (0, 0, 0, 1))], -1)


class LRCNN(Encoder):
    """LR-CNN as the module describes it.

    Args:
        d_in: width of the character vectors.
        words: embeds the matched words.
        d_model: D, the width of all layers.
        layers: at least two; the longest word that is read has as many characters.
        rethinking: how often the top layer is fed back; 0 for never.
        backward: also look back, to words that end at a character.
        scales: see the module.
        layer_dropout: rate for the input of a convolution.

    Raises:
        ValueError: fewer than two layers, a negative ``rethinking``, or unknown ``scales``.
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        d_model: int = 128,
        layers: int = 4,
        rethinking: int = 1,
        backward: bool = True,
        scales: Literal["sum", "mlp"] = "sum",
        layer_dropout: float = 0.5,
    ):
        super().__init__()
        if layers < 2:
            raise ValueError(f"layers must be at least 2, for layer 2 is the first that reads words, not {layers}")
        if rethinking < 0:
            raise ValueError(f"rethinking must be at least 0, not {rethinking}")
        if scales not in ("sum", "mlp"):
            raise ValueError(f"scales must be 'sum' or 'mlp', not {scales!r}")
        self.d_out, self.layers, self.rethinking = d_model, layers, rethinking
        self.words = words
        self.no_word = nn.Parameter(torch.empty(1, words.d_out).uniform_(-1, 1) * (3 / words.d_out) ** 0.5)
        self.first = nn.Linear(d_in, d_model)
        self.directions = nn.ModuleList(
            Direction(
                d_model,
                words.d_out,
                layers,
                backward=looks_back,
                rethinking=rethinking > 0,
                dropout=layer_dropout,
            )
            for looks_back in ([False, True] if backward else [False])
        )
        self.scales = (
            nn.Sequential(nn.Linear(layers, layers), nn.Tanh(), nn.Linear(layers, layers), nn.Tanh())
            if scales == "mlp"
            else nn.Identity()
        )

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        first = self.first(x).tanh() * batch.mask.unsqueeze(-1)
        embedded = self.words(x, batch.words)
        places = (batch.words.head, batch.words.tail)[: len(self.directions)]
        words = [
            self._by_length(direction, embedded, batch.words, x.shape[1], place)
            for direction, place in zip(self.directions, places, strict=True)
        ]
        top: Tensor | None = None
        for _ in range(1 + self.rethinking):
            outputs = [d(first, w, batch.mask, top) for d, w in zip(self.directions, words, strict=True)]
            above = [torch.stack(layer).sum(0) for layer in zip(*outputs, strict=True)]
            top = above[-1]
        features = torch.stack([first, *above], 2)  # [B N layers D]
        weights = self.scales(features.sum(-1)).softmax(-1)
        return torch.einsum("bnl,bnld->bnd", weights, features)

    def _by_length(
        self, direction: nn.Module, embedded: EmbeddedWords, words: Words, n: int, place: Int[Tensor, "B M"]
    ) -> Float[Tensor, "B S {n} _"]:
        """The contributions of words by layer and character; ``no_word`` contributes where there is none.

        A word stands at its ``place``. Each word is projected once, not in every layer and reading.
        """
        assert isinstance(direction, Direction)
        project = direction.attention.word
        projected = torch.cat([project(embedded.vectors.flatten(0, 1)), project(self.no_word)])
        length, n_layers = words.tail - words.head + 1, self.layers - 1
        read = embedded.mask & (length >= 2) & (length <= self.layers)
        # Words that are not read go to a last column, which is dropped.
        column = torch.where(read, (length - 2) * n + place, n_layers * n)
        none = torch.full((len(column), n_layers * n + 1), column.numel(), device=column.device)
        number = torch.arange(column.numel(), device=column.device).view_as(column)
        row = none.scatter(1, column, number)[:, :-1].reshape(-1, n_layers, n)
        return nn.functional.embedding(row, projected)
