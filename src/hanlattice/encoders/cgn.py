r"""CGN: three graphs over characters and words, each read by its own graph attention, on top of a BiLSTM.

Sui et al. 2019, Leverage Lexical Knowledge for Chinese Named Entity Recognition via Collaborative Graph Network,
https://aclanthology.org/D19-1396. The nodes are the states H of a BiLSTM over the characters, followed by the
vectors of the matched words. Three undirected graphs connect them:

- containing (C): a word and every character inside it;
- transition (T): two nodes, characters or words, of which one ends just before the other begins;
- lattice (L): a word and its first and its last character; a character and the next one.

Each graph has its own network of two layers of graph attention,

.. math::
    e_{ij} = \mathrm{LeakyReLU}(a_1^\top W f_i + a_2^\top W f_j), \quad
    f'_i = \mathrm{ELU}\Big(\sum_{j \in N_i} \mathrm{softmax}_j(e_{ij}) W f_j\Big)

whose heads are concatenated, or averaged in the last layer. The rows of the characters, :math:`Q_1, Q_2, Q_3`, are
kept and fused: :math:`R = W_1 H + W_2 Q_1 + W_3 Q_2 + W_4 Q_3`.

Choices where the paper is silent or differs from the released code:

- Every node is its own neighbour, as in the code. So a sentence without words has something to attend to.
- The code's BiLSTM is as wide as its word vectors (300), so that both can be stacked. Here words are projected
  where the widths differ.
- The code's graphs end in a log-softmax over tags. An encoder does not know tags, so here they end in ``d_graph``
  features, and the linear layer of the decoder computes scores of tags.
- ``fusion="vector"`` and ``"scalar"`` are the code's: H is projected to ``d_graph``, then the four parts are
  weighted by a vector or a number each, initially 1.
- The last layer has one head in the code (``last_heads``); the paper averages several.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import BidirectionalLSTM

GRAPHS = ("containing", "transition", "lattice")

# Negative slope of LeakyReLU; the value of the code.
SLOPE = 0.1


def graphs(words: Words, word_mask: Bool[Tensor, "B M"], char_mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "3 B L L"]:
    """Which nodes are neighbours in each of :data:`GRAPHS`. The L nodes are the N characters, then the M words.

    Each node is its own neighbour, and a node of padding has no other one.
    """
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
    """One layer of graph attention. Its heads are concatenated, or averaged with ``average``.

    ``dropout`` is the rate for the input and for attention weights.
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
        """New states of the first Q nodes, which are the queries."""
        h = self.project(self.dropout(x)).unflatten(-1, (self.heads, -1))  # [B L A d]
        of_queries = torch.einsum("bqad,ad->baq", h[:, : edges.shape[1]], self.query)
        of_keys = torch.einsum("blad,ad->bal", h, self.key)
        scores = nn.functional.leaky_relu(of_queries.unsqueeze(-1) + of_keys.unsqueeze(-2), SLOPE)
        weights = scores.masked_fill(~edges.unsqueeze(1), torch.finfo(scores.dtype).min).softmax(-1)
        attended = torch.einsum("baql,blad->bqad", self.dropout(weights), h)
        return nn.functional.elu(attended.mean(2) if self.average else attended.flatten(2))


class GraphNetwork(nn.Module):
    """Layers of graph attention on one graph; in the last layer only the characters are queries."""

    def __init__(
        self, d_in: int, d_head: int, heads: int, d_out: int, last_heads: int, layers: int, dropout: float
    ):
        super().__init__()
        lower = [
            GraphAttention(heads * d_head if i else d_in, d_head, heads, average=False, dropout=dropout)
            for i in range(layers - 1)
        ]
        last = GraphAttention(lower[-1].d_out if lower else d_in, d_out, last_heads, average=True, dropout=dropout)
        self.below, self.last = nn.ModuleList(lower), last

    def forward(
        self, nodes: Float[Tensor, "B L D"], edges: Bool[Tensor, "B L L"], n_chars: int
    ) -> Float[Tensor, "B N D_out"]:
        for layer in self.below:
            nodes = layer(nodes, edges)
        return self.last(nodes, edges[:, :n_chars])


class Fusion(nn.Module):
    """The sum of BiLSTM states and results of the graphs, each weighted by a matrix, a vector or a number."""

    def __init__(self, d_states: int, d_graph: int, weights: Literal["matrix", "vector", "scalar"]):
        super().__init__()
        self.states = nn.Linear(d_states, d_graph)
        if weights == "matrix":
            self.matrix: nn.Linear | None = nn.Linear(len(GRAPHS) * d_graph, d_graph, bias=False)
        else:
            self.matrix = None
            self.weights = nn.Parameter(torch.ones(1 + len(GRAPHS), d_graph if weights == "vector" else 1))

    def forward(
        self, states: Float[Tensor, "B N D"], results: list[Float[Tensor, "B N F"]]
    ) -> Float[Tensor, "B N F"]:
        if self.matrix is not None:
            return self.states(states) + self.matrix(torch.cat(results, -1))
        return (torch.stack([self.states(states), *results], -2) * self.weights).sum(-2)


class CGN(Encoder):
    """CGN, from its parts; :func:`build_cgn` builds the parts from settings.

    Args:
        words: embeds the matched words.
        lstm: from the width of character vectors to D.
        word_projection: from the width of word vectors to D.
        networks: one for each of :data:`GRAPHS`, in that order, from D to ``d_graph``.
        fusion: of the states of the BiLSTM and the results of the graphs.
        lstm_dropout: rate for the states of the BiLSTM.
    """

    def __init__(
        self,
        words: WordEmbedding,
        lstm: BidirectionalLSTM,
        word_projection: nn.Module,
        networks: Sequence[GraphNetwork],
        fusion: Fusion,
        *,
        lstm_dropout: float = 0.0,
    ):
        super().__init__()
        self.d_out = fusion.states.out_features
        self.words = words
        self.lstm = lstm
        self.word_projection = word_projection
        self.graphs = nn.ModuleList(networks)
        self.fusion = fusion
        self.lstm_dropout = Dropout(lstm_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        states = self.lstm_dropout(self.lstm(x, batch.mask))
        nodes = torch.cat([states, self.word_projection(words.vectors)], 1)
        edges = graphs(batch.words, words.mask, batch.mask).unbind(0)
        results = [network(nodes, e, x.shape[1]) for network, e in zip(self.graphs, edges, strict=True)]
        return self.fusion(states, results)


def build_cgn(
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
) -> CGN:
    """A :class:`CGN` by its settings.

    Args:
        d_in: width of the character vectors.
        words: embeds the matched words.
        d_model: D, the width of the BiLSTM, both directions together.
        d_head, heads: width and number of heads in all layers of a graph network but the last.
        d_graph, last_heads: width and number of heads in the last layer.
        graph_layers: layers of each graph network.
        fusion: weights of the fusion; see the module.
        lstm_dropout: rate for the states of the BiLSTM.
        graph_dropout: rate for the input and the attention weights of graph attention.

    Raises:
        ValueError: no layer, an odd ``d_model``, or an unknown ``fusion``.
    """
    if graph_layers < 1:
        raise ValueError(f"graph_layers must be at least 1, not {graph_layers}")
    if fusion not in ("matrix", "vector", "scalar"):
        raise ValueError(f"fusion must be 'matrix', 'vector' or 'scalar', not {fusion!r}")
    # Weights are drawn in the order of construction: changing it changes what a seed gives.
    lstm = BidirectionalLSTM(d_in, d_model)
    word_projection = nn.Identity() if words.d_out == d_model else nn.Linear(words.d_out, d_model)
    networks = [
        GraphNetwork(d_model, d_head, heads, d_graph, last_heads, graph_layers, graph_dropout) for _ in GRAPHS
    ]
    fused = Fusion(d_model, d_graph, fusion)
    return CGN(words, lstm, word_projection, networks, fused, lstm_dropout=lstm_dropout)
