"""LR-CNN against its formulas, one character and one layer at a time."""

from typing import Any

import pytest
import torch
from torch import Tensor

from hanlattice.encoders.lr_cnn import LRCNN, VectorAttention
from oracles.lattices import BATCHES, Found, assert_same, batch_of, encoder_of

SMALL = {"d_model": 4, "layers": 4}


def merged(attention: VectorAttention, features: Tensor, word: Tensor, top: Tensor | None) -> Tensor:
    """Gates for input, forget and, in rethinking, the top layer: a softmax of sigmoids for each component."""
    parts = attention.features.weight.chunk(1 + attention.gates)
    biases = attention.features.bias.chunk(1 + attention.gates)
    of_word = attention.word.weight.chunk(1 + attention.gates)
    said = [w @ features + u @ word + b for w, u, b in zip(parts, of_word, biases, strict=True)]
    new, said = torch.tanh(said[0]), said[1:]
    if top is None:
        gates, candidates = said[:2], [new, features]
    else:
        assert attention.top is not None
        feedback = attention.top.weight.chunk(3)
        gates = [gate + v @ top for gate, v in zip(said, feedback, strict=True)]
        candidates = [new, features, top]
    exponents = [torch.exp(torch.sigmoid(gate)) for gate in gates]
    return sum((e * c for e, c in zip(exponents, candidates, strict=True)), torch.zeros(())) / sum(exponents)


def parts_of(direction: Any) -> tuple[Any, Any]:
    return direction.windows, direction.attention


def lr_cnn(encoder: LRCNN, x: Tensor, words: Found) -> Tensor:
    n = len(x)
    first = [torch.tanh(encoder.first.weight @ x[m] + encoder.first.bias) for m in range(n)]
    top: list[Tensor] | None = None
    for _ in range(1 + encoder.rethinking):
        layers = [first] + [[torch.zeros_like(first[0])] * n for _ in range(encoder.layers - 1)]
        for direction, step in zip(encoder.directions, (1, -1), strict=False):
            below, windows, attention = first, *parts_of(direction)
            for length in range(2, encoder.layers + 1):
                window, here = windows[length - 2], []
                for m in range(n):
                    neighbour = below[m + step] if 0 <= m + step < n else torch.zeros_like(below[m])
                    pair = [below[m], neighbour][::step]
                    features = torch.tanh(window.weight @ torch.cat(pair) + window.bias)
                    last = m + step * (length - 1)
                    word = words.get((min(m, last), max(m, last)), encoder.no_word[0])
                    here.append(merged(attention, features, word, None if top is None else top[m]))
                layers[length - 1] = [a + b for a, b in zip(layers[length - 1], here, strict=True)]
                below = here
        top = layers[-1]
    rows = []
    for m in range(n):
        scores = torch.stack([layer[m].sum() for layer in layers])
        weights = torch.softmax(encoder.scales(scores), 0)
        rows.append(sum((w * layer[m] for w, layer in zip(weights, layers, strict=True)), torch.zeros(())))
    return torch.stack(rows)


@pytest.mark.parametrize("rethinking", [0, 1, 2])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_formulas_of_the_paper(name: str, backward: bool, rethinking: int) -> None:
    assert_same(lr_cnn, encoder_of(LRCNN, **SMALL, backward=backward, rethinking=rethinking), BATCHES[name])


@pytest.mark.parametrize("settings", [{"scales": "mlp"}, {"layers": 2}, {"layers": 6}], ids=str)
def test_equals_the_formulas_in_every_setting(settings: dict[str, object]) -> None:
    assert_same(lr_cnn, encoder_of(LRCNN, **{**SMALL, **settings}), BATCHES["words of all lengths"])


def test_a_word_longer_than_the_last_layer_is_not_read() -> None:
    encoder = encoder_of(LRCNN, **SMALL)
    x, without = batch_of([(6, [])])
    long, short = batch_of([(6, [(0, 4)])])[1], batch_of([(6, [(0, 3)])])[1]
    assert torch.equal(encoder(x, long), encoder(x, without))
    assert not torch.allclose(encoder(x, short), encoder(x, without))


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"layers": 1}, "layers"), ({"rethinking": -1}, "rethinking")],
)
def test_settings_that_do_not_fit_are_an_error(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoder_of(LRCNN, **settings)
