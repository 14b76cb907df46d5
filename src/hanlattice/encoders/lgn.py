r"""LGN: characters are nodes, words are edges between them, and a relay node hears of everything.

Gui et al. 2019, A Lexicon-Based Graph Neural Network for Chinese NER, https://aclanthology.org/D19-1096. A word
from character b to character e is an edge :math:`e_{b,e}` from node b to node e. In each step every state first
gathers, by multi-head attention over the states of the step before,

.. math::
    \hat c_i &= \mathrm{Att}(c_i, \{[e_{k,i}; c_k]\}_k), \quad
    \hat e_{b,e} = \mathrm{Att}(e_{b,e}, \{c_k\}_{b \le k \le e}), \\
    \hat g &= [\mathrm{Att}(g, \{c\}); \mathrm{Att}(g, \{e\})]

and is then updated by a gated cell, whose gates :math:`\sigma(W [\text{own}; \text{gathered}; \hat g] + b)` go
through a softmax componentwise:

.. math::
    c_i \leftarrow l \odot c_{i-1} + f \odot c_i + i \odot u, \quad
    e \leftarrow f \odot e + i \odot u, \quad g \leftarrow f \odot g + i \odot u, \quad u = \tanh(\cdot).

The transposed graph, edges reversed and :math:`c_{i+1}` in the place of :math:`c_{i-1}`, has weights of its own.
Nodes begin as the states of an LSTM in their direction, edges as word vectors.

Where the text is silent this is the released code's choice:

- attention is scaled, ends in LeakyReLU(0.01) of a linear layer, is added to what asked and normalised; it has
  weights of its own in every step, the cells are shared by all steps;
- a further edge, a learned vector that ends everywhere and begins nowhere, gives characters where no word ends
  something to attend to, and the relay a word in every sentence;
- keys of nodes hold where in the word the character stands (begin, middle, end, single), keys of edges the word's
  length, as small learned vectors;
- the relay begins as the mean of the nodes plus the mean of the edges;
- what a step reads is the normalised sum of all states so far (the code shares one normalisation where here nodes,
  edges and the relay of a direction each have theirs);
- the states of all steps, the LSTM's included, are summed with weights from a softmax over
  :math:`\sigma(w^\top h)`.

Words of another width than the nodes are projected. In the last step nobody reads edges or the relay any more, so
they are not updated.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, pad

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import TwoWayLSTM

# Words from this length on share one vector; the code's.
LONGEST = 5
# Where a character stands in a word.
BEGIN, MIDDLE, END, SINGLE = range(4)


@dataclass(frozen=True)
class Graph:
    """Where the edges of a batch lead; edge 0 is the one that begins nowhere, the others are the words.

    ``inside``: which characters a word covers; ``place``: where in it they stand; ``length``: 0 for edge 0.
    """

    head: Int[Tensor, "B E"]
    tail: Int[Tensor, "B E"]
    length: Int[Tensor, "B E"]
    edge_mask: Bool[Tensor, "B E"]
    node_mask: Bool[Tensor, "B N"]
    inside: Bool[Tensor, "B M N"]
    place: Int[Tensor, "B M N"]

    @classmethod
    def of(cls, words: Words, word_mask: Bool[Tensor, "B M"], char_mask: Bool[Tensor, "B N"]) -> "Graph":
        position = torch.arange(char_mask.shape[1], device=char_mask.device)
        first, last = (position == end.unsqueeze(-1) for end in (words.head, words.tail))  # [B M N]
        place = torch.full_like(first, MIDDLE, dtype=torch.long)
        place = place.masked_fill(first, BEGIN).masked_fill(last, END).masked_fill(first & last, SINGLE)
        inside = (words.head.unsqueeze(-1) <= position) & (position <= words.tail.unsqueeze(-1))
        return cls(
            pad(words.head, (1, 0)),
            pad(words.tail, (1, 0)),
            pad((words.tail - words.head + 1).clamp(max=LONGEST), (1, 0)),
            pad(word_mask, (1, 0), value=True),
            char_mask,
            inside,
            place,
        )


def mean(x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B 1 D"]:
    """Of the rows that are real."""
    return (x * mask.unsqueeze(-1)).sum(1, keepdim=True) / mask.sum(1, keepdim=True).unsqueeze(-1)


class Gathering(nn.Module):
    """Multi-head attention of states to what they are joined with, added to them and normalised.

    A key may stand in one of four places towards the one who asks: with ``d_place``, the place's vector counts as
    part of the key. As it meets linear layers only, there is one product a place, not one a pair.
    """

    def __init__(self, d_model: int, d_key: int, heads: int, d_head: int, dropout: float, d_place: int = 0):
        super().__init__()
        self.heads, self.d_head = heads, d_head
        self.query, self.key = nn.Linear(d_model, heads * d_head), nn.Linear(d_key, heads * d_head)
        self.value, self.output = nn.Linear(d_key, heads * d_head), nn.Linear(heads * d_head, d_model)
        if d_place:
            self.place_key = nn.Linear(d_place, heads * d_head, bias=False)
            self.place_value = nn.Linear(d_place, heads * d_head, bias=False)
        self.norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        asking: Float[Tensor, "B Q D"],
        keys: Float[Tensor, "B K D_key"],
        joined: Bool[Tensor, "B #Q K"],
        places: Float[Tensor, "4 D_place"] | None = None,
        place: Int[Tensor, "B Q K"] | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """``place`` is a row of ``places`` for every pair."""
        q, k, v = self._by_head(self.query(asking)), self._by_head(self.key(keys)), self._by_head(self.value(keys))
        scores = torch.einsum("bqad,bkad->baqk", q, k)
        index = None if place is None else place.unsqueeze(1).expand_as(scores)
        if index is not None:
            by_place = torch.einsum("bqad,pad->baqp", q, self._by_head(self.place_key(places)))
            scores = scores + by_place.gather(-1, index)
        scores = (scores * q.shape[-1] ** -0.5).masked_fill(~joined.unsqueeze(1), torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(-1))
        met = torch.einsum("baqk,bkad->bqad", weights, v)
        if index is not None:
            share = weights.new_zeros(*weights.shape[:-1], 4).scatter_add(-1, index, weights)
            met = met + torch.einsum("baqp,pad->bqad", share, self._by_head(self.place_value(places)))
        return self.norm(leaky_relu(self.output(met.flatten(2))) + asking)

    def _by_head(self, x: Float[Tensor, "*S F"]) -> Float[Tensor, "*S A d"]:
        return x.view(*x.shape[:-1], self.heads, self.d_head)


class Cell(nn.Module):
    """The update of a state: a new one from all that is known, mixed with ``kept`` former ones by softmax gates.

    ``dropout``: of what was gathered.
    """

    def __init__(self, d_model: int, kept: int, gathered: int, dropout: float):
        super().__init__()
        self.kept = kept
        self.gates = nn.Linear((kept + gathered) * d_model, (2 + kept) * d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self, kept: list[Float[Tensor, "B S D"]], gathered: Float[Tensor, "B S G"]
    ) -> Float[Tensor, "B S D"]:
        known = torch.cat([*kept, self.dropout(gathered)], -1)
        new, *gates = self.gates(known).chunk(2 + self.kept, -1)
        weights = torch.stack(gates).sigmoid().softmax(0)
        return (weights * torch.stack([new.tanh(), *kept])).sum(0)


class DirectedGraph(nn.Module):
    """All steps on the graph whose edges lead forward, or on its transpose with ``backward``."""

    def __init__(
        self,
        d_model: int,
        d_place: int,
        heads: int,
        d_head: int,
        steps: int,
        *,
        backward: bool,
        attention_dropout: float,
        cell_dropout: float,
    ):
        super().__init__()
        self.backward, self.steps = backward, steps

        def gatherings(n: int, d_key: int, places: int = 0) -> nn.ModuleList:
            return nn.ModuleList(
                Gathering(d_model, d_key, heads, d_head, attention_dropout, places) for _ in range(n)
            )

        self.to_nodes = gatherings(steps, 2 * d_model + d_place)
        self.to_edges = gatherings(steps - 1, d_model, d_place)
        self.nodes_to_relay, self.edges_to_relay = gatherings(steps, d_model), gatherings(steps, d_model)
        self.node_cell = Cell(d_model, 2, 3, cell_dropout)
        if steps > 1:
            self.places = nn.Parameter(torch.randn(4, d_place))
            self.edge_cell, self.relay_cell = Cell(d_model, 1, 3, cell_dropout), Cell(d_model, 1, 2, cell_dropout)
            self.node_norm, self.edge_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
            self.relay_norm = nn.LayerNorm(d_model)

    def forward(
        self,
        nodes: Float[Tensor, "B N D"],
        edges: Float[Tensor, "B E D"],
        graph: Graph,
        lengths: Float[Tensor, "B E D_place"],
    ) -> list[Float[Tensor, "B N D"]]:
        """The states of the nodes before the first step and after each; edge 0 is the one that begins nowhere."""
        begin, end = (graph.tail, graph.head) if self.backward else (graph.head, graph.tail)
        n = nodes.shape[1]
        arrives = graph.edge_mask.unsqueeze(1) & (
            end.unsqueeze(1) == torch.arange(n, device=end.device).unsqueeze(1)
        )
        arrives = torch.cat([torch.ones_like(arrives[:, :, :1]), arrives[:, :, 1:]], 2)  # [B N E]
        real_node = graph.node_mask.unsqueeze(-1)
        nodes = nodes * real_node
        relay = mean(nodes, graph.node_mask) + mean(edges, graph.edge_mask)
        found, node_sum, edge_sum, relay_sum = [nodes], nodes, edges, relay
        for step in range(self.steps):
            first = nodes.take_along_dim(begin.unsqueeze(-1), 1)
            first = torch.cat([torch.zeros_like(first[:, :1]), first[:, 1:]], 1)
            to_nodes = self.to_nodes[step](nodes, torch.cat([edges, first, lengths], -1), arrives)
            to_relay = torch.cat(
                [
                    self.nodes_to_relay[step](relay, nodes, graph.node_mask.unsqueeze(1)),
                    self.edges_to_relay[step](relay, edges, graph.edge_mask.unsqueeze(1)),
                ],
                -1,
            )
            state = self.node_cell([nodes, self._before(nodes)], self._with(to_nodes, to_relay)) * real_node
            found.append(state)
            if step == self.steps - 1:
                break
            to_edges = self.to_edges[step](edges[:, 1:], nodes, graph.inside, self.places, graph.place)
            words = self.edge_cell([edges[:, 1:]], self._with(to_edges, to_relay))
            node_sum, relay_sum = node_sum + state, relay_sum + self.relay_cell([relay], to_relay)
            edge_sum = edge_sum + pad(words, (0, 0, 1, 0))
            nodes, relay = self.node_norm(node_sum) * real_node, self.relay_norm(relay_sum)
            edges = torch.cat([edges[:, :1], self.edge_norm(edge_sum[:, 1:])], 1)
        return found

    def _before(self, nodes: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """The neighbour on the side that the direction comes from, zeros at the border."""
        return pad(nodes[:, 1:], (0, 0, 0, 1)) if self.backward else pad(nodes[:, :-1], (0, 0, 1, 0))

    @staticmethod
    def _with(gathered: Float[Tensor, "B S D"], relay: Float[Tensor, "B 1 2*D"]) -> Float[Tensor, "B S 3*D"]:
        return torch.cat([gathered, relay.expand(-1, gathered.shape[1], -1)], -1)


class LGN(Encoder):
    """``steps`` steps on nodes and edges of width ``d_model``, in both directions, which come out side by side.

    ``heads`` of width ``d_head`` in all attention; ``d_place`` is the width of places and lengths. Dropout:
    ``attention_dropout`` of attention weights, ``cell_dropout`` of what a cell is told.

    Raises:
        ValueError: no step.
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        d_model: int = 50,
        steps: int = 4,
        heads: int = 10,
        d_head: int = 20,
        d_place: int = 10,
        attention_dropout: float = 0.1,
        cell_dropout: float = 0.2,
    ):
        super().__init__()
        if steps < 1:
            raise ValueError(f"steps must be at least 1, not {steps}")
        self.d_out = 2 * d_model
        self.words = words
        self.lstm = TwoWayLSTM(d_in, 2 * d_model)
        self.word_projection = nn.Identity() if words.d_out == d_model else nn.Linear(words.d_out, d_model)
        self.no_word = nn.Parameter(torch.empty(1, d_model).uniform_(-1, 1) * (3 / d_model) ** 0.5)
        self.lengths = nn.Embedding(LONGEST + 1, d_place)
        self.directions = nn.ModuleList(
            DirectedGraph(
                d_model,
                d_place,
                heads,
                d_head,
                steps,
                backward=backward,
                attention_dropout=attention_dropout,
                cell_dropout=cell_dropout,
            )
            for backward in (False, True)
        )
        self.step_weight = nn.Linear(2 * d_model, 1)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        graph = Graph.of(batch.words, words.mask, batch.mask)
        edges = torch.cat([self.no_word.expand(len(x), 1, -1), self.word_projection(words.vectors)], 1)
        lengths = self.lengths(graph.length)
        states = self.lstm(x, batch.mask).chunk(2, -1)
        found = [
            torch.stack(direction(nodes, edges, graph, lengths))
            for direction, nodes in zip(self.directions, states, strict=True)
        ]
        steps = torch.cat(found, -1)  # [steps+1 B N 2D]
        return (self.step_weight(steps).sigmoid().softmax(0) * steps).sum(0)
