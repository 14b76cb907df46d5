r"""CGN: three graphs over characters and words, each with attention of its own, over a BiLSTM.

Sui et al. 2019, Leverage Lexical Knowledge for Chinese Named Entity Recognition via Collaborative Graph Network,
https://aclanthology.org/D19-1396. Nodes are the states H of a BiLSTM over the characters, then the vectors of the
matched words. Three graphs, without direction, join them:

- containing (C): a word and every character inside it;
- transition (T): what ends just before the other begins, be they characters or words;
- lattice (L): a word and its first and its last character; a character and the next.

On each of them two layers of graph attention,

.. math::
    e_{ij} = \mathrm{LeakyReLU}(a_1^\top W f_i + a_2^\top W f_j), \quad
    f'_i = \mathrm{ELU}\Big(\sum_{j \in N_i} \mathrm{softmax}_j(e_{ij}) W f_j\Big)

whose heads are side by side, or averaged in the last layer. Of their results the characters' rows
:math:`Q_1, Q_2, Q_3` are kept and fused: :math:`R = W_1 H + W_2 Q_1 + W_3 Q_2 + W_4 Q_3`.

Where the text is silent, or the released code differs, this is what was chosen:

- every node is its own neighbour, as in the code, which also gives a sentence without words something to attend to;
- the code's BiLSTM is as wide as its words (300) so that both stack; where widths differ here, words are projected;
- in the code the graphs end in a log-softmax over tags; an encoder knows of none, so they end in ``d_graph``
  features, and the decoder's own layer leads to tags;
- ``fusion="vector"`` and ``"scalar"`` are the code's: H is brought to ``d_graph`` first, then the four are weighted
  by a vector or a number each, all 1 at first;
- the code's last layer has one head (``last_heads``) where the text averages several.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import TwoWayLSTM

GRAPHS = ("containing", "transition", "lattice")

# Of LeakyReLU below zero; the code's.
SLOPE = 0.1


def graphs(words: Words, word_mask: Bool[Tensor, "B M"], char_mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "3 B L L"]:
    """Which nodes, characters then words, are neighbours in each of :data:`GRAPHS`. Padding has itself alone."""
    n = char_mask.shape[1]
    position = torch.arange(n, device=char_mask.device).expand(len(char_mask), -1)
    head, tail = torch.cat([position, words.head], 1), torch.cat([position, words.tail], 1)
    head_i, tail_i, head_j, tail_j = head.unsqueeze(2), tail.unsqueeze(2), head.unsqueeze(1), tail.unsqueeze(1)
    char = torch.arange(head.shape[1], device=head.device) < n
    word_and_char = ~char.unsqueeze(1) & char  # [L L]
    contains = word_and_char & (head_i <= head_j) & (tail_j <= tail_i)
    touches = word_and_char & ((head_i == head_j) | (tail_i == tail_j))
    precedes = tail_i + 1 == head_j
    neighbours = torch.stack([contains, precedes, touches | (precedes & char.unsqueeze(1) & char)])
    node = torch.cat([char_mask, word_mask], 1)
    real = node.unsqueeze(2) & node.unsqueeze(1)
    itself = torch.eye(len(char), dtype=torch.bool, device=char.device)
    return ((neighbours | neighbours.mT) & real) | itself


class GraphAttention(nn.Module):
    """One layer of graph attention; its heads stand side by side, or are averaged with ``average``.

    ``dropout``: of its input and of the attention weights.
    """

    def __init__(self, d_in: int, d_head: int, heads: int, *, average: bool, dropout: float):
        super().__init__()
        self.heads, self.average = heads, average
        self.d_out = d_head if average else heads * d_head
        self.project = nn.Linear(d_in, heads * d_head, bias=False)
        self.query, self.key = nn.Parameter(torch.empty(heads, d_head)), nn.Parameter(torch.empty(heads, d_head))
        nn.init.xavier_uniform_(self.query)
        nn.init.xavier_uniform_(self.key)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B L D_in"], edges: Bool[Tensor, "B Q L"]) -> Float[Tensor, "B Q D_out"]:
        """The first Q nodes ask."""
        h = self.project(self.dropout(x)).unflatten(-1, (self.heads, -1))  # [B L A d]
        asking = torch.einsum("bqad,ad->baq", h[:, : edges.shape[1]], self.query)
        asked = torch.einsum("blad,ad->bal", h, self.key)
        scores = nn.functional.leaky_relu(asking.unsqueeze(-1) + asked.unsqueeze(-2), SLOPE)
        weights = scores.masked_fill(~edges.unsqueeze(1), torch.finfo(scores.dtype).min).softmax(-1)
        met = torch.einsum("baql,blad->bqad", self.dropout(weights), h)
        return nn.functional.elu(met.mean(2) if self.average else met.flatten(2))


class GraphNetwork(nn.Module):
    """Layers of graph attention on one graph; only characters are asked for in the last."""

    def __init__(
        self, d_in: int, d_head: int, heads: int, d_out: int, last_heads: int, layers: int, dropout: float
    ):
        super().__init__()
        below = [
            GraphAttention(heads * d_head if i else d_in, d_head, heads, average=False, dropout=dropout)
            for i in range(layers - 1)
        ]
        last = GraphAttention(below[-1].d_out if below else d_in, d_out, last_heads, average=True, dropout=dropout)
        self.below, self.last = nn.ModuleList(below), last

    def forward(
        self, nodes: Float[Tensor, "B L D"], edges: Bool[Tensor, "B L L"], n_chars: int
    ) -> Float[Tensor, "B N D_out"]:
        for layer in self.below:
            nodes = layer(nodes, edges)
        return self.last(nodes, edges[:, :n_chars])


class Fusion(nn.Module):
    """Sums the BiLSTM's states and the graphs' results, weighted by a matrix, a vector or a number each."""

    def __init__(self, d_states: int, d_graph: int, weights: Literal["matrix", "vector", "scalar"]):
        super().__init__()
        self.states = nn.Linear(d_states, d_graph)
        if weights == "matrix":
            self.matrix: nn.Linear | None = nn.Linear(len(GRAPHS) * d_graph, d_graph, bias=False)
        else:
            self.matrix = None
            self.weights = nn.Parameter(torch.ones(1 + len(GRAPHS), d_graph if weights == "vector" else 1))

    def forward(self, states: Float[Tensor, "B N D"], seen: list[Float[Tensor, "B N F"]]) -> Float[Tensor, "B N F"]:
        if self.matrix is not None:
            return self.states(states) + self.matrix(torch.cat(seen, -1))
        return (torch.stack([self.states(states), *seen], -2) * self.weights).sum(-2)


class CGN(Encoder):
    """A BiLSTM of width ``d_model``, three graph networks, and what they say of the characters fused.

    ``heads`` of width ``d_head`` in all layers of a graph network but the last, which has ``last_heads`` of width
    ``d_graph``. Dropout: ``lstm_dropout`` of the BiLSTM's states, ``graph_dropout`` within graph attention.

    Raises:
        ValueError: no layer, an odd ``d_model``, or a fusion that does not exist.
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        d_model: int = 300,
        d_head: int = 30,
        heads: int = 3,
        d_graph: int = 30,
        last_heads: int = 1,
        graph_layers: int = 2,
        fusion: Literal["matrix", "vector", "scalar"] = "matrix",
        lstm_dropout: float = 0.5,
        graph_dropout: float = 0.5,
    ):
        super().__init__()
        if graph_layers < 1:
            raise ValueError(f"graph_layers must be at least 1, not {graph_layers}")
        if fusion not in ("matrix", "vector", "scalar"):
            raise ValueError(f"fusion must be 'matrix', 'vector' or 'scalar', not {fusion!r}")
        self.d_out = d_graph
        self.words = words
        self.lstm = TwoWayLSTM(d_in, d_model)
        self.word_projection = nn.Identity() if words.d_out == d_model else nn.Linear(words.d_out, d_model)
        self.graphs = nn.ModuleList(
            GraphNetwork(d_model, d_head, heads, d_graph, last_heads, graph_layers, graph_dropout) for _ in GRAPHS
        )
        self.fusion = Fusion(d_model, d_graph, fusion)
        self.lstm_dropout = Dropout(lstm_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        states = self.lstm_dropout(self.lstm(x, batch.mask))
        nodes = torch.cat([states, self.word_projection(words.vectors)], 1)
        edges = graphs(batch.words, words.mask, batch.mask).unbind(0)
        seen = [network(nodes, e, x.shape[1]) for network, e in zip(self.graphs, edges, strict=True)]
        return self.fusion(states, seen)
