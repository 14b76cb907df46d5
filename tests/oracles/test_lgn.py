"""LGN against its formulas: one node, one edge and one head at a time."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hanlattice.encoders.lgn import LGN, Cell
from oracles.lattices import BATCHES, Found, assert_same, encoder_of

SMALL = {"d_model": 4, "heads": 2, "d_head": 3, "d_place": 2, "steps": 3}


def gathered(g: Any, query: Tensor, keys: list[Tensor]) -> Tensor:
    """Attention of one state to some keys; the place of a key, if it has one, is concatenated to it."""
    of_key, of_value = g.key.weight, g.value.weight
    if hasattr(g, "place_key"):
        of_key = torch.cat([of_key, g.place_key.weight], 1)
        of_value = torch.cat([of_value, g.place_value.weight], 1)
    heads = []
    for a in range(g.heads):
        rows = slice(a * g.d_head, (a + 1) * g.d_head)
        q = g.query.weight[rows] @ query + g.query.bias[rows]
        scores = [q @ (of_key[rows] @ key + g.key.bias[rows]) / math.sqrt(g.d_head) for key in keys]
        values = [of_value[rows] @ key + g.value.bias[rows] for key in keys]
        weights = torch.softmax(torch.stack(scores), 0)
        heads.append(sum((w * v for w, v in zip(weights, values, strict=True)), torch.zeros(())))
    out = g.output.weight @ torch.cat(heads) + g.output.bias
    return normalised(g.norm, torch.where(out > 0, out, 0.01 * out) + query)


def normalised(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    return (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + norm.eps) * norm.weight + norm.bias


def updated(cell: Cell, kept: list[Tensor], *told: Tensor) -> Tensor:
    known = torch.cat([*kept, *told])
    u, *gates = (cell.gates.weight @ known + cell.gates.bias).chunk(2 + len(kept))
    exponents = [torch.exp(torch.sigmoid(gate)) for gate in gates]
    candidates = [torch.tanh(u), *kept]
    return sum((e * c for e, c in zip(exponents, candidates, strict=True)), torch.zeros(())) / sum(exponents)


def steps_of(direction: Any, encoder: LGN, nodes: list[Tensor], words: Found) -> list[Tensor]:
    """The nodes before the first step and after each step, each ``[N D]``."""
    n, nowhere, zeros = len(nodes), encoder.no_word[0], torch.zeros_like(nodes[0])
    edges = {span: encoder.word_projection(vector) for span, vector in words.items()}
    relay = torch.stack(nodes).mean(0) + torch.stack([nowhere, *edges.values()]).mean(0)
    node_sums, edge_sums, relay_sum = list(nodes), dict(edges), relay
    found = [torch.stack(nodes)]
    for step in range(direction.steps):
        relay_told = [
            gathered(direction.nodes_to_relay[step], relay, nodes),
            gathered(direction.edges_to_relay[step], relay, [nowhere, *edges.values()]),
        ]
        new_nodes = []
        for i in range(n):
            keys = [torch.cat([nowhere, zeros, encoder.lengths.weight[0]])]
            for (head, tail), edge in edges.items():
                begin, end = (tail, head) if direction.backward else (head, tail)
                if end == i:
                    length = encoder.lengths.weight[min(tail - head + 1, 5)]
                    keys.append(torch.cat([edge, nodes[begin], length]))
            beside = i + 1 if direction.backward else i - 1
            before = nodes[beside] if 0 <= beside < n else zeros
            hears = gathered(direction.to_nodes[step], nodes[i], keys)
            new_nodes.append(updated(direction.node_cell, [nodes[i], before], hears, *relay_told))
        found.append(torch.stack(new_nodes))
        if step == direction.steps - 1:
            break
        new_edges = {}
        for (head, tail), edge in edges.items():
            keys = []
            for k in range(head, tail + 1):
                place = 3 if head == tail else 0 if k == head else 2 if k == tail else 1
                keys.append(torch.cat([nodes[k], direction.places[place]]))
            hears = gathered(direction.to_edges[step], edge, keys)
            new_edges[head, tail] = updated(direction.edge_cell, [edge], hears, *relay_told)
        new_relay = updated(direction.relay_cell, [relay], *relay_told)
        node_sums = [total + new for total, new in zip(node_sums, new_nodes, strict=True)]
        edge_sums = {span: total + new_edges[span] for span, total in edge_sums.items()}
        relay_sum = relay_sum + new_relay
        nodes = [normalised(direction.node_norm, total) for total in node_sums]
        edges = {span: normalised(direction.edge_norm, total) for span, total in edge_sums.items()}
        relay = normalised(direction.relay_norm, relay_sum)
    return found


def lgn(encoder: LGN, x: Tensor, words: Found) -> Tensor:
    ahead = encoder.lstm.forwards(x[None])[0][0]
    back = encoder.lstm.backwards(x.flip(0)[None])[0][0].flip(0)
    forwards, backwards = (
        steps_of(direction, encoder, list(states), words)
        for direction, states in zip(encoder.directions, (ahead, back), strict=True)
    )
    steps = [torch.cat(pair, -1) for pair in zip(forwards, backwards, strict=True)]
    exponents = [torch.exp(torch.sigmoid(encoder.step_weight(step))) for step in steps]
    return sum((e * step for e, step in zip(exponents, steps, strict=True)), torch.zeros(())) / sum(exponents)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_formulas_of_the_paper(name: str, steps: int) -> None:
    assert_same(lgn, encoder_of(LGN, **{**SMALL, "steps": steps}), BATCHES[name])


@pytest.mark.parametrize("settings", [{"d_model": 6}, {"heads": 1}, {"d_place": 5}], ids=str)
def test_equals_the_formulas_in_every_setting(settings: dict[str, object]) -> None:
    """With width 6, the width of the words, words are not projected."""
    assert_same(lgn, encoder_of(LGN, **{**SMALL, **settings}), BATCHES["words of all lengths"])


def test_no_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="steps"):
        encoder_of(LGN, steps=0)
