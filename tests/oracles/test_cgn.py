"""CGN against its formulas: neighbours by their definition, attention one node and one head at a time."""

from typing import Any

import pytest
import torch
from torch import Tensor

from hanlattice.encoders.cgn import CGN, GRAPHS, GraphAttention, build_cgn, graphs
from oracles.lattices import BATCHES, Found, assert_same, batch_of, encoder_of

SMALL = {"d_model": 6, "d_head": 3, "heads": 2, "d_graph": 4}


def neighbours(graph: str, n: int, words: list[tuple[int, int]]) -> list[set[int]]:
    """The neighbours of every node, itself included; characters come before words."""
    met = [{i} for i in range(n + len(words))]

    def join(i: int, j: int) -> None:
        met[i].add(j)
        met[j].add(i)

    for w, (head, tail) in enumerate(words, n):
        if graph == "containing":
            for c in range(head, tail + 1):
                join(w, c)
        elif graph == "lattice":
            join(w, head)
            join(w, tail)
        else:
            if head > 0:
                join(w, head - 1)
            if tail + 1 < n:
                join(w, tail + 1)
            for other, (other_head, _) in enumerate(words, n):
                if other_head == tail + 1:
                    join(w, other)
    if graph != "containing":
        for c in range(n - 1):
            join(c, c + 1)
    return met


def attended(layer: GraphAttention, nodes: list[Tensor], met: list[set[int]]) -> list[Tensor]:
    """Every node attends to its neighbours."""
    weights = layer.project.weight.chunk(layer.heads)
    rows = []
    for i, others in enumerate(met):
        heads = []
        for w, a1, a2 in zip(weights, layer.query, layer.key, strict=True):
            scores = {j: a1 @ (w @ nodes[i]) + a2 @ (w @ nodes[j]) for j in others}
            exponents = {j: torch.exp(s if s > 0 else 0.1 * s) for j, s in scores.items()}
            total = sum(exponents.values(), torch.zeros(()))
            heads.append(sum((e / total * (w @ nodes[j]) for j, e in exponents.items()), torch.zeros(())))
        row = sum(heads, torch.zeros(())) / len(heads) if layer.average else torch.cat(heads)
        rows.append(torch.where(row > 0, row, torch.exp(row) - 1))
    return rows


def cgn(encoder: CGN, x: Tensor, words: Found) -> Tensor:
    n = len(x)
    ahead = encoder.lstm.forwards(x[None])[0][0]
    back = encoder.lstm.backwards(x.flip(0)[None])[0][0].flip(0)
    states = torch.cat([ahead, back], -1)
    seen = []
    for name, network in zip(GRAPHS, encoder.graphs, strict=True):
        nodes = [*states, *(encoder.word_projection(vector) for vector in words.values())]
        below: Any = network.below
        for layer in [*below, network.last]:
            nodes = attended(layer, nodes, neighbours(name, n, list(words)))
        seen.append(torch.stack(nodes[:n]))
    fusion = encoder.fusion
    projected = states @ fusion.states.weight.T + fusion.states.bias
    if fusion.matrix is None:
        return sum((w * part for w, part in zip(fusion.weights, [projected, *seen], strict=True)), torch.zeros(()))
    weights = fusion.matrix.weight.chunk(3, 1)
    return projected + sum((q @ w.T for q, w in zip(seen, weights, strict=True)), torch.zeros(()))


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_formulas_of_the_paper(name: str, layers: int) -> None:
    assert_same(cgn, encoder_of(build_cgn, **SMALL, graph_layers=layers), BATCHES[name])


@pytest.mark.parametrize(
    "settings",
    [{"fusion": "vector"}, {"fusion": "scalar"}, {"last_heads": 3}, {"d_model": 10}],
    ids=str,
)
def test_equals_the_formulas_in_every_setting(settings: dict[str, object]) -> None:
    assert_same(cgn, encoder_of(build_cgn, **{**SMALL, **settings}), BATCHES["words of all lengths"])


def test_graphs_of_the_drugstore() -> None:
    """重庆人和药店, in which 重庆 (node 6), 人和药店 (7) and 药店 (8) are words."""
    batch = batch_of(BATCHES["重庆人和药店"])[1]
    containing, transition, lattice = graphs(batch.words, batch.words.mask, batch.mask)[:, 0]

    def of(graph: Tensor, node: int) -> list[int]:
        return torch.nonzero(graph[node]).flatten().tolist()

    assert of(containing, 7) == [2, 3, 4, 5, 7]
    assert of(transition, 6) == [2, 6, 7]
    assert of(transition, 7) == [1, 6, 7]
    assert of(transition, 8) == [3, 8]
    assert of(lattice, 7) == [2, 5, 7]
    assert of(lattice, 2) == [1, 2, 3, 7]
    assert all(torch.equal(graph, graph.T) for graph in (containing, transition, lattice))


def test_no_layer_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        encoder_of(build_cgn, **{**SMALL, "graph_layers": 0})
