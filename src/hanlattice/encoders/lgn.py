r"""LGN: a graph whose nodes are characters and whose edges are words, with a relay node connected to all of them.

Gui et al. 2019, A Lexicon-Based Graph Neural Network for Chinese NER, https://aclanthology.org/D19-1096. A word
from character b to character e is an edge :math:`e_{b,e}` from node b to node e::

                  +-------- 南京市 -------+
                  |                       v
    nodes         南          京          市          长          江
                                          |           ^
                                          +--- 市长 --+

In each step every state first gathers the states that it is connected to, by multi-head attention over the states
of the step before,

.. math::
    \hat c_i &= \mathrm{Att}(c_i, \{[e_{k,i}; c_k]\}_k), \quad
    \hat e_{b,e} = \mathrm{Att}(e_{b,e}, \{c_k\}_{b \le k \le e}), \\
    \hat g &= [\mathrm{Att}(g, \{c\}); \mathrm{Att}(g, \{e\})]

and is then updated by a gated cell. Its gates :math:`\sigma(W [\text{own}; \text{gathered}; \hat g] + b)` are
normalised by a softmax over the gates, for each component:

.. math::
    c_i \leftarrow l \odot c_{i-1} + f \odot c_i + i \odot u, \quad
    e \leftarrow f \odot e + i \odot u, \quad g \leftarrow f \odot g + i \odot u, \quad u = \tanh(\cdot).

The transposed graph has reversed edges, :math:`c_{i+1}` in the place of :math:`c_{i-1}`, and separate weights. The
initial states of nodes are those of an LSTM in the same direction, and the initial states of edges are word
vectors.

Choices of the released code where the paper is silent:

- Attention is scaled, ends in a linear layer and LeakyReLU(0.01), and is added to the query and normalised. Each
  step has its own attention weights; all steps share the cells.
- There is one more edge, a learned vector that ends at every node and begins at none. So every character has an
  edge to attend to, and every sentence has one for the relay.
- Where an edge attends to nodes, a key includes the place of the character in the word (begin, middle, end,
  single). Where a node attends to edges, a key includes the length of the word. Both are small learned vectors.
- The initial state of the relay is the mean of the nodes plus the mean of the edges.
- A step reads the normalised sum of all states so far. The code has one normalisation for all; here nodes, edges
  and the relay of each direction have their own.
- The result is a weighted sum of the states of all steps, the LSTM's included. The weights are a softmax over
  :math:`\sigma(w^\top h)`.

Words are projected if their width is not that of the nodes. After the last step no state reads the edges or the
relay, so the last step does not update them.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, linear, pad

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import BidirectionalLSTM

# Words of this length and longer share one vector; the value of the code.
LONGEST = 5
# The place of a character in a word.
BEGIN, MIDDLE, END, SINGLE = range(4)


@dataclass(frozen=True)
class Graph:
    """The edges of a batch. Edge 0 is the additional one, which begins at no node; the other M are the words.

    ``inside`` is True for the characters of a word, and ``place`` is their place in it. ``length`` is 0 for edge 0.
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
    """The mean of the real rows."""
    return (x * mask.unsqueeze(-1)).sum(1, keepdim=True) / mask.sum(1, keepdim=True).unsqueeze(-1)


class Gather(nn.Module):
    """Multi-head attention of states to the states they are connected to, added to the queries and normalised.

    With ``d_place``, a key has one of four places in relation to the query, and a vector of the place is part of
    the key. These vectors are read by linear layers only, so there is one product for each place, not for each
    pair.
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
        queries: Float[Tensor, "B Q D"],
        keys: Float[Tensor, "B K D_key"],
        connected: Bool[Tensor, "B #Q K"],
        places: Float[Tensor, "4 D_place"] | None = None,
        place: Int[Tensor, "B Q K"] | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """The new states of the queries; ``place`` is a row of ``places`` for every pair."""
        q, k, v = (self._split_heads(x) for x in (self.query(queries), self.key(keys), self.value(keys)))
        scores = torch.einsum("bqad,bkad->baqk", q, k)
        index = None if place is None else place.unsqueeze(1).expand_as(scores)
        if index is not None:
            by_place = torch.einsum("bqad,pad->baqp", q, self._split_heads(self.place_key(places)))
            scores = scores + by_place.gather(-1, index)
        scores = (scores * q.shape[-1] ** -0.5).masked_fill(~connected.unsqueeze(1), torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(-1))
        gathered = torch.einsum("baqk,bkad->bqad", weights, v)
        if index is not None:
            share = weights.new_zeros(*weights.shape[:-1], 4).scatter_add(-1, index, weights)
            gathered = gathered + torch.einsum("baqp,pad->bqad", share, self._split_heads(self.place_value(places)))
        return self.norm(leaky_relu(self.output(gathered.flatten(2))) + queries)

    def to_one(
        self, query: Float[Tensor, "B 1 D"], keys: Float[Tensor, "B K D_key"], mask: Bool[Tensor, "B K"]
    ) -> Float[Tensor, "B 1 D"]:
        """The same for one query that is connected to all keys in ``mask``.

        Keys and values are projected by linear maps. So the query is projected to the keys instead, and the
        weighted sum of the keys to the value: one product for each head in the place of one for each key.
        """
        q = self._split_heads(self.query(query)).squeeze(1) * self.d_head**-0.5  # [B A d]
        of_key, of_value = (layer.weight.view(self.heads, self.d_head, -1) for layer in (self.key, self.value))
        constant = (q * self.key.bias.view(self.heads, -1)).sum(-1, keepdim=True)
        scores = torch.einsum("bad,adk->bak", q, of_key) @ keys.mT + constant  # [B A K]
        scores = scores.masked_fill(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        weights = self.dropout(scores.softmax(-1))
        gathered = torch.einsum("bak,adk->bad", weights @ keys, of_value)
        gathered = gathered + weights.sum(-1, keepdim=True) * self.value.bias.view(self.heads, -1)
        return self.norm(leaky_relu(self.output(gathered.flatten(1).unsqueeze(1))) + query)

    def to_ends(
        self,
        queries: Float[Tensor, "B N D"],
        keys: Float[Tensor, "B E D_key"],
        end: Int[Tensor, "B E"],
        mask: Bool[Tensor, "B E"],
    ) -> Float[Tensor, "B N D"]:
        """The same where key 0 is connected to every query and each further key to the query ``end`` only.

        The cost grows with the number of keys, not with that of pairs.
        """
        q, k, v = (self._split_heads(x) for x in (self.query(queries), self.key(keys), self.value(keys)))
        q = q * self.d_head**-0.5
        index = end[:, 1:, None].expand(-1, -1, self.heads)  # [B M A]
        wide = index.unsqueeze(-1).expand(-1, -1, -1, self.d_head)
        real = mask[:, 1:, None]
        score = (q.gather(1, wide) * k[:, 1:]).sum(-1).masked_fill(~real, torch.finfo(q.dtype).min)
        of_all = (q * k[:, :1]).sum(-1)  # [B N A]
        top = of_all.detach().scatter_reduce(1, index, score.detach(), "amax")
        weight_of_all, weight = (of_all - top).exp(), (score - top.gather(1, index)).exp() * real
        total = weight_of_all.scatter_add(1, index, weight)
        weight_of_all, weight = (
            self.dropout(weight_of_all / total).unsqueeze(-1),
            self.dropout(weight / total.gather(1, index)).unsqueeze(-1),
        )
        gathered = (weight_of_all * v[:, :1]).scatter_add(1, wide, weight * v[:, 1:])
        return self.norm(leaky_relu(self.output(gathered.flatten(2))) + queries)

    def _split_heads(self, x: Float[Tensor, "*S F"]) -> Float[Tensor, "*S A d"]:
        return x.view(*x.shape[:-1], self.heads, self.d_head)


def _gather(modules: nn.ModuleList, step: int) -> Gather:
    gather = modules[step]
    assert isinstance(gather, Gather)
    return gather


class Cell(nn.Module):
    """The update of a state: softmax gates mix a candidate with ``kept`` previous states.

    The gates read these and ``gathered`` more states, which attention has gathered; ``dropout`` is their rate.
    """

    def __init__(self, d_model: int, kept: int, gathered: int, dropout: float):
        super().__init__()
        self.kept = kept
        self.gates = nn.Linear((kept + gathered) * d_model, (2 + kept) * d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        kept: list[Float[Tensor, "B S D"]],
        gathered: Float[Tensor, "B S G"],
        shared: Float[Tensor, "B 1 H"] | None = None,
    ) -> Float[Tensor, "B S D"]:
        """The new states; ``shared`` has been gathered for all states of a sentence together."""
        new, *gates = self._projected(kept, gathered, shared).chunk(2 + self.kept, -1)
        weights = torch.stack(gates).sigmoid().softmax(0)
        return (weights * torch.stack([new.tanh(), *kept])).sum(0)

    def _projected(
        self, kept: list[Float[Tensor, "B S D"]], gathered: Float[Tensor, "B S G"], shared: Tensor | None
    ) -> Float[Tensor, "B S F"]:
        if shared is None:
            return self.gates(torch.cat([*kept, self.dropout(gathered)], -1))
        if self.training and self.dropout.rate:  # each state has its own dropout of what is shared
            wide = torch.cat([gathered, shared.expand(-1, gathered.shape[1], -1)], -1)
            return self.gates(torch.cat([*kept, self.dropout(wide)], -1))
        own = torch.cat([*kept, gathered], -1)
        of_own, of_shared = torch.split(self.gates.weight, [own.shape[-1], shared.shape[-1]], 1)
        return linear(own, of_own, self.gates.bias) + linear(shared, of_shared)


class DirectedGraph(nn.Module):
    """All steps on the graph with forward edges, or with ``backward`` on its transpose."""

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

        def gather(n: int, d_key: int, places: int = 0) -> nn.ModuleList:
            return nn.ModuleList(Gather(d_model, d_key, heads, d_head, attention_dropout, places) for _ in range(n))

        self.to_nodes = gather(steps, 2 * d_model + d_place)
        self.to_edges = gather(steps - 1, d_model, d_place)
        self.nodes_to_relay, self.edges_to_relay = gather(steps, d_model), gather(steps, d_model)
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
        """The states of the nodes, before the first step and after each step."""
        begin, end = (graph.tail, graph.head) if self.backward else (graph.head, graph.tail)
        real_node = graph.node_mask.unsqueeze(-1)
        nodes = nodes * real_node
        relay = mean(nodes, graph.node_mask) + mean(edges, graph.edge_mask)
        states, node_sum, edge_sum, relay_sum = [nodes], nodes, edges, relay
        for step in range(self.steps):
            origin = nodes.take_along_dim(begin.unsqueeze(-1), 1)  # the state of the node where an edge begins
            origin = torch.cat([torch.zeros_like(origin[:, :1]), origin[:, 1:]], 1)
            arriving = torch.cat([edges, origin, lengths], -1)
            to_nodes = _gather(self.to_nodes, step).to_ends(nodes, arriving, end, graph.edge_mask)
            to_relay = torch.cat(
                [
                    _gather(self.nodes_to_relay, step).to_one(relay, nodes, graph.node_mask),
                    _gather(self.edges_to_relay, step).to_one(relay, edges, graph.edge_mask),
                ],
                -1,
            )
            state = self.node_cell([nodes, self._before(nodes)], to_nodes, to_relay) * real_node
            states.append(state)
            if step == self.steps - 1:
                break
            to_edges = self.to_edges[step](edges[:, 1:], nodes, graph.inside, self.places, graph.place)
            words = self.edge_cell([edges[:, 1:]], to_edges, to_relay)
            node_sum, relay_sum = node_sum + state, relay_sum + self.relay_cell([relay], to_relay)
            edge_sum = edge_sum + pad(words, (0, 0, 1, 0))
            nodes, relay = self.node_norm(node_sum) * real_node, self.relay_norm(relay_sum)
            edges = torch.cat([edges[:, :1], self.edge_norm(edge_sum[:, 1:])], 1)
        return states

    def _before(self, nodes: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """The neighbour that was read before, in this direction; zeros at the border."""
        return pad(nodes[:, 1:], (0, 0, 0, 1)) if self.backward else pad(nodes[:, :-1], (0, 0, 1, 0))


class LGN(Encoder):
    """LGN as the module describes it; the two directions are concatenated.

    Args:
        d_in: width of the character vectors.
        words: embeds the matched words.
        d_model: D, the width of nodes and edges in each direction.
        steps: at least one.
        heads, d_head: number and width of heads of all attention.
        d_place: width of the vectors of places and of lengths.
        attention_dropout: rate for attention weights.
        cell_dropout: rate for what a cell has gathered.

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
        self.lstm = BidirectionalLSTM(d_in, 2 * d_model)
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
        states_of = [
            torch.stack(direction(nodes, edges, graph, lengths))
            for direction, nodes in zip(self.directions, states, strict=True)
        ]
        steps = torch.cat(states_of, -1)  # [steps+1 B N 2D]
        return (self.step_weight(steps).sigmoid().softmax(0) * steps).sum(0)
