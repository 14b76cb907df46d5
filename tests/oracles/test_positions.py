"""Every position encoding against its paper's definition, one pair of characters at a time.

The definitions below know no shift, no table of distances and no batch: they take a query, a key and their places.
Faults that only these tests see: a distance with the other sign, a shift by one, a table of keys read for values, a
matrix transposed, the scale forgotten or of other terms, the queries of the last passes without their places.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.encoders.positions import POSITIONS, Buckets, Disentangled, Flow, Learned, Rotary, Shaw
from hanlattice.encoders.positions.absolute import interleaved_sinusoid
from hanlattice.encoders.positions.base import by_distance, by_pair
from hanlattice.encoders.positions.relative import clauses, log_bucket
from hanlattice.encoders.transformer import Transformer, build_transformer
from hanlattice.errors import ModelError
from hanlattice.inputs.batch import Batch, Words

D, A, LAYERS, N = 12, 3, 2, 7
WIDTH = D // A
TOLERANCE: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-5}  # sines are taken in float32

KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "none": ("none", {}),
    "learned": ("learned", {"max_length": 9}),
    "sinusoidal": ("sinusoidal", {}),
    "sinusoidal, halves": ("sinusoidal", {"layout": "halves"}),
    "recurrence": ("recurrence", {}),
    "flow": ("flow", {"interval": 0.3}),
    "flow, three steps of the solver": ("flow", {"interval": 0.3, "solver_steps": 3}),
    "recurrent front": ("recurrent_front", {}),
    "shaw": ("shaw", {"clip": 2}),
    "shaw, farther than all": ("shaw", {"clip": 16}),
    "transformer_xl": ("transformer_xl", {}),
    "xlnet": ("xlnet", {}),
    "tener": ("tener", {}),
    "tener, with the key's term": ("tener", {"key_term": True}),
    "t5": ("t5", {"buckets": 8, "max_distance": 5}),
    "deberta": ("deberta", {"span": 3}),
    "deberta, farther than all": ("deberta", {"span": 20}),
    "deberta, content to position": ("deberta", {"span": 3, "position_to_content": False}),
    "deberta, position to content": ("deberta", {"span": 3, "content_to_position": False}),
    "deberta, logarithmic buckets": ("deberta", {"span": 4, "log_distance": 6}),
    "rotary": ("rotary", {}),
}
EACH = pytest.mark.parametrize("name", KINDS)


def randomised(module: torch.nn.Module) -> Any:
    torch.manual_seed(3)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.double().eval()


def position_of(name: str) -> Any:
    kind, settings = KINDS[name]
    return randomised(POSITIONS[kind](D, A, LAYERS, **settings))


def wave(place: int, d: int, layout: str) -> Tensor:
    """Sines and cosines of a position, one number at a time."""
    half = d // 2
    vaswani = [10000.0 ** (-2 * i / d) for i in range(half)]
    tensor2tensor = [10000.0 ** (-i / (half - 1)) for i in range(half)]
    if layout == "interleaved":
        numbers = [f(place * rate) for rate in vaswani for f in (math.sin, math.cos)]
    else:
        numbers = [f(place * rate) for f in (math.sin, math.cos) for rate in tensor2tensor]
    return torch.tensor(numbers, dtype=torch.float64)


# What is added to the input at place k.


def encoded(p: Any, name: str, x: Tensor) -> Tensor:
    """The input of one sentence without padding, [N D]."""
    kind, settings = KINDS[name]
    match kind:
        case "learned":
            return torch.stack([x[k] + p.table[k] for k in range(len(x))])
        case "sinusoidal":
            return torch.stack([x[k] + wave(k, D, settings.get("layout", "interleaved")) for k in range(len(x))])
        case "recurrence":
            return x + torch.stack(recurrence(p, len(x)))
        case "flow":
            return x + torch.stack(flow(p, len(x), runge_kutta))
        case "recurrent_front":
            ahead, back = lstm(p.lstm.forwards, x), lstm(p.lstm.backwards, x.flip(0)).flip(0)
            return torch.cat([ahead, back], -1)
    return x


def recurrence(p: Any, n: int) -> list[Tensor]:
    places = [p.first]
    for _ in range(n - 1):
        h = places[-1]
        of_input = p.step.weight_ih_l0[:, 0] + p.step.bias_ih_l0
        r_in, z_in, n_in = of_input.chunk(3)
        r_h, z_h, n_h = (p.step.weight_hh_l0 @ h + p.step.bias_hh_l0).chunk(3)
        update = torch.sigmoid(z_in + z_h)
        places.append((1 - update) * torch.tanh(n_in + torch.sigmoid(r_in + r_h) * n_h) + update * h)
    return places


def slope(p: Any, t: float, x: Tensor) -> Tensor:
    inner = torch.relu(p.inner.weight[:, :-1] @ x + p.inner.weight[:, -1] * t + p.inner.bias)
    return p.outer.weight[:, :-1] @ inner + p.outer.weight[:, -1] * t + p.outer.bias


def runge_kutta(f: Callable[[float, Tensor], Tensor], t: float, x: Tensor, h: float) -> Tensor:
    k1 = f(t, x)
    k2 = f(t + h / 2, x + h * k1 / 2)
    k3 = f(t + h / 2, x + h * k2 / 2)
    k4 = f(t + h, x + h * k3)
    return x + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def flow(p: Any, n: int, solve: Callable[..., Tensor]) -> list[Tensor]:
    places = [p.first]
    for k in range(1, n):
        x = places[-1]
        for s in range(p.solver_steps):
            x = solve(partial(slope, p), p.interval * (k - 1 + s / p.solver_steps), x, p.interval / p.solver_steps)
        places.append(x)
    return places


def lstm(module: Any, x: Tensor) -> Tensor:
    h = c = torch.zeros(D // 2, dtype=x.dtype)
    states = []
    for x_t in x:
        gates = module.weight_ih_l0 @ x_t + module.bias_ih_l0 + module.weight_hh_l0 @ h + module.bias_hh_l0
        i, f, g, o = gates.chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return torch.stack(states)


# The score of one query at place i and one key at place j, in head a.


def score(p: Any, name: str, q: Tensor, k: Tensor, i: int, j: int, a: int, layer: int) -> Tensor:
    kind, settings = KINDS[name]
    match kind:
        case "shaw":
            return q @ (k + p.key_tables[layer][clipped(j - i, settings["clip"])])
        case "xlnet":
            segment = (q + p.segment_biases[layer][a]) @ p.segment_tables[layer][0, a]
            return score(p, "transformer_xl", q, k, i, j, a, layer) + segment
        case "transformer_xl":
            r = (p.projections[layer].weight @ wave(i - j, D, "interleaved")).view(A, WIDTH)[a]
            return q @ k + q @ r + p.biases.u[layer][a] @ k + p.biases.v[layer][a] @ r
        case "tener":
            r = wave(i - j, WIDTH, "halves")
            back = k @ wave(j - i, WIDTH, "halves") if settings else 0.0
            return q @ k + q @ r + p.biases.u[layer][a] @ k + p.biases.v[layer][a] @ r + back
        case "t5":
            return q @ k + p.table[bucket(j - i, settings["buckets"], settings["max_distance"]), a]
        case "deberta":
            total = q @ k
            if settings.get("content_to_position", True):
                total = total + q @ (p.keys[layer].weight @ p.table[place(i - j, settings)]).view(A, WIDTH)[a]
            if settings.get("position_to_content", True):
                total = total + k @ (p.queries[layer].weight @ p.table[place(j - i, settings)]).view(A, WIDTH)[a]
            return total
        case "rotary":
            return turned(q, i) @ turned(k, j)
    return q @ k


def clipped(distance: int, clip: int) -> int:
    return max(-clip, min(clip, distance)) + clip


def bucket(distance: int, buckets: int = 32, max_distance: int = 128) -> int:
    """Half of the buckets are for keys after the query; of each half, one half is exact and one logarithmic."""
    start, half = (buckets // 2 if distance > 0 else 0), buckets // 2
    exact, apart = half // 2, abs(distance)
    if apart < exact:
        return start + apart
    return start + min(
        half - 1, exact + int(math.log(apart / exact) / math.log(max_distance / exact) * (half - exact))
    )


def place(distance: int, settings: dict[str, Any]) -> int:
    """The row of a distance in DeBERTa's table."""
    span, longest = settings["span"], settings.get("log_distance", 0)
    half = span // 2
    if longest and abs(distance) > half:
        far = math.log(abs(distance) / half) / math.log((longest - 1) / half) * (half - 1)
        distance = int(math.copysign(math.ceil(far - 1e-9) + half, distance))
    if distance <= -span:
        return 0
    return 2 * span - 1 if distance >= span else distance + span


def turned(x: Tensor, place: int) -> Tensor:
    """Each pair of components as a complex number, multiplied by one of length 1."""
    pairs = torch.complex(x[0::2], x[1::2])
    angles = torch.tensor([place * 10000.0 ** (-2 * c / len(x)) for c in range(len(x) // 2)], dtype=x.dtype)
    after = pairs * torch.complex(angles.cos(), angles.sin())
    return torch.stack([after.real, after.imag], -1).flatten()


def value(p: Any, name: str, v: Tensor, i: int, j: int, layer: int) -> Tensor:
    kind, settings = KINDS[name]
    return v + p.value_tables[layer][clipped(j - i, settings["clip"])] if kind == "shaw" else v


TERMS = {
    "deberta": 3,
    "deberta, farther than all": 3,
    "deberta, logarithmic buckets": 3,
    "deberta, content to position": 2,
    "deberta, position to content": 2,
}


def attended(t: Any, name: str, i_layer: int, asking: Tensor, x: Tensor) -> Tensor:
    """Attention of one sentence without padding, [N D]."""
    m, n = t.layers[i_layer].attention, len(x)
    q, k, v = (y.view(n, A, WIDTH) for y in (m.query(asking), m.key(x), m.value(x)))
    scale = 1 / math.sqrt(WIDTH * TERMS.get(name, 1)) if m.scaled else 1.0
    out = []
    for i in range(n):
        for a in range(A):
            scores = [scale * score(t.position, name, q[i, a], k[j, a], i, j, a, i_layer) for j in range(n)]
            weights = torch.stack(scores).softmax(0)
            values = [weights[j] * value(t.position, name, v[j, a], i, j, i_layer) for j in range(n)]
            out.append(torch.stack(values).sum(0))
    return m.output(torch.stack(out).view(n, D))


def layer_of(t: Any, name: str, i_layer: int, asking: Tensor, x: Tensor) -> Tensor:
    f = t.layers[i_layer]
    if f.norm == "post":
        h = f.attention_norm(asking + attended(t, name, i_layer, asking, x))
        return f.feed_forward_norm(h + f.feed_forward.outer(torch.relu(f.feed_forward.inner(h))))
    h = asking + attended(t, name, i_layer, f.attention_norm(asking), f.attention_norm(x))
    return h + f.feed_forward.outer(torch.relu(f.feed_forward.inner(f.feed_forward_norm(h))))


def transformer(t: Any, name: str, x: Tensor) -> Tensor:
    h = encoded(t.position, name, t.char_projection(x))
    for i in range(len(t.layers) - 1):
        h = layer_of(t, name, i, h, h)
    last = len(t.layers) - 1
    if not t.decoder_passes:
        return layer_of(t, name, last, h, h)
    asking = h + t.decoder_position.table[: len(h)]
    for _ in range(t.decoder_passes):
        asking = layer_of(t, name, last, asking, h)
    return asking


def transformer_of(name: str, **settings: Any) -> Transformer:
    kind, of_position = KINDS[name]
    sizes = {"d_model": D, "heads": A, "d_feed_forward": 10, "layers": LAYERS, **settings}
    return randomised(build_transformer(5, partial(POSITIONS[kind], **of_position), **sizes))


def assert_same(t: Transformer, name: str, lengths: list[int]) -> None:
    """Values and gradients of a batch equal those of the definition for each sentence alone."""
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    x = torch.randn(len(lengths), max(lengths), 5, dtype=torch.float64, requires_grad=True)
    ours = t.encode(x, mask)[mask]
    theirs = torch.cat([transformer(t, name, x[b, :n]) for b, n in enumerate(lengths)])
    assert_close(ours, theirs, **TOLERANCE)
    weights = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).view(ours.shape)
    inputs = {"x": x, **dict(t.named_parameters())}
    found, expected = (
        torch.autograd.grad((h * weights).sum(), list(inputs.values()), materialize_grads=True)
        for h in (ours, theirs)
    )
    for which, ours_of, theirs_of in zip(inputs, found, expected, strict=True):
        assert_close(ours_of, theirs_of, atol=5e-4, rtol=2e-4, msg=partial("{}: {}".format, which))


@EACH
def test_encoder_equals_the_formulas_of_the_paper(name: str) -> None:
    assert_same(transformer_of(name), name, [N, 1, 4])


@pytest.mark.parametrize(
    "settings",
    [
        {"scaled": False},
        {"key_projection": False},
        {"output_projection": False, "attention_bias": False},
        {"norm": "pre"},
        {"decoder_passes": 2},
        {"decoder_passes": 1, "norm": "pre", "layers": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["none", "shaw", "deberta"])
def test_in_every_setting(name: str, settings: dict[str, Any]) -> None:
    assert_same(transformer_of(name, **settings), name, [4, 2])


@EACH
@pytest.mark.parametrize("n", [1, 2, N])
def test_scores_and_values_read(name: str, n: int) -> None:
    """The position encoding alone, in its second layer."""
    p = position_of(name)
    q, k, v = torch.randn(3, 2, A, n, WIDTH, dtype=torch.float64)
    weights = torch.rand(2, A, n, n, dtype=torch.float64)
    scores, read = p.score(q, k, 1), p.read(weights, v, 1)
    for b in range(2):
        for a in range(A):
            for i in range(n):
                expected = [score(p, name, q[b, a, i], k[b, a, j], i, j, a, 1) for j in range(n)]
                assert_close(scores[b, a, i], torch.stack(expected), **TOLERANCE)
                brought = sum(weights[b, a, i, j] * value(p, name, v[b, a, j], i, j, 1) for j in range(n))
                assert_close(read[b, a, i], brought, **TOLERANCE)


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"recurrent front"}))  # which reads from both ends
def test_first_positions_do_not_depend_on_the_length(name: str) -> None:
    p = position_of(name)
    x = torch.randn(1, N, D, dtype=torch.float64)
    for n in range(1, N):
        whole, part = (p.encode(x[:, :m], torch.ones(1, m, dtype=torch.bool)) for m in (N, n))
        assert_close(part, whole[:, :n])


def test_every_encoding_is_tested() -> None:
    assert {kind for kind, _ in KINDS.values()} == set(POSITIONS)


def test_logarithmic_buckets_by_numbers() -> None:
    """Of 256 buckets for distances up to 511, as in DeBERTa's second version; both directions are alike."""
    known = {0: 0, 5: 5, 128: 128, 129: 129, 200: 169, 300: 207, 511: 255}
    distance = torch.tensor([*known, *(-d for d in known)])
    assert log_bucket(distance, 256, 512).tolist() == [*known.values(), *(-b for b in known.values())]


def test_keys_of_other_segments_have_another_term() -> None:
    p = position_of("xlnet")
    q, k = torch.randn(2, 2, A, N, WIDTH, dtype=torch.float64)
    segments = torch.tensor([[0, 0, 1, 1, 1, 2, 2], [0] * N])
    found = p.score_segments(q, k, 1, segments)
    for b in range(2):
        for a in range(A):
            for i in range(N):
                other = (q[b, a, i] + p.segment_biases[1][a]) @ (
                    p.segment_tables[1][1, a] - p.segment_tables[1][0, a]
                )
                same = [score(p, "xlnet", q[b, a, i], k[b, a, j], i, j, a, 1) for j in range(N)]
                apart = (segments[b] != segments[b, i]).double()
                assert_close(found[b, a, i], torch.stack(same) + apart * other, **TOLERANCE)


def test_segments_are_the_clauses_of_a_text() -> None:
    mask = torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    assert clauses(("你好,我来。是", "是。是"), mask).tolist() == [[0, 0, 0, 1, 1, 1, 2], [0, 0, 1, 0, 0, 0, 0]]
    t = transformer_of("xlnet")
    none = torch.zeros(1, 0, dtype=torch.long)
    x, mask = torch.randn(1, 7, 5, dtype=torch.float64), torch.ones(1, 7, dtype=torch.bool)
    one, two = (
        t(x, Batch(mask.long(), mask.long(), mask, Words(none, none, none, none, none.bool()), (text,)))
        for text in ("你好我来是是是", "你好,我来。是")
    )
    assert_close(one, t.encode(x, mask))
    assert not torch.allclose(one, two)


def test_flow_is_solved_once_for_prediction(monkeypatch: pytest.MonkeyPatch) -> None:
    p = position_of("flow")
    solved: list[int] = []
    positions = p.positions

    def counted(n: int) -> Any:
        solved.append(n)
        return positions(n)

    monkeypatch.setattr(p, "positions", counted)
    x = torch.randn(2, 70, D, dtype=torch.float64)
    mask = torch.ones(2, 70, dtype=torch.bool)
    expected = p.encode(x, mask)
    with torch.no_grad():
        for n in (5, 40, 5):
            assert_close(p.encode(x[:, :n], mask[:, :n]), expected[:, :n])
        assert solved == [70, 64]
        assert_close(p.encode(x, mask), expected)
        assert solved == [70, 64, 128]
        p.first.add_(1.0)  # other weights
        assert not torch.allclose(p.encode(x, mask), expected)
    assert p.train().encode(x, mask).requires_grad


def test_relative_shift() -> None:
    """Of three positions, row i of the columns for distances -3 to 2 begins at column 3 - i."""
    raw = 10 * torch.arange(3)[:, None] + torch.arange(6).float()
    assert by_pair(raw).tolist() == [[3, 4, 5], [12, 13, 14], [21, 22, 23]]
    weights = torch.rand(2, 4, 4)
    assert torch.equal(by_pair(by_distance(weights)), weights)
    assert by_distance(torch.ones(2, 2)).tolist() == [[0, 0, 1, 1], [0, 1, 1, 0]]


def test_untied_attention_by_numbers() -> None:
    """Two characters of width 2, with separate terms for content and position."""
    p: Any = POSITIONS["tener"](2, 1, 1)
    p.biases.u[0].data, p.biases.v[0].data = torch.tensor([[0.5, 0.0]]), torch.tensor([[0.0, 1.0]])
    q, k = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[1.0, 1.0], [2.0, 0.0]])
    found = p.score(q[None, None], k[None, None], 0)
    assert_close(found[0, 0], torch.tensor([[2.5, 2.698831], [4.120907, 4.0]]), atol=1e-5, rtol=0)


def test_interleaved_sinusoids_by_numbers() -> None:
    expected = torch.tensor([[0.841471, 0.540302, 0.01, 0.99995], [-0.841471, 0.540302, -0.01, 0.99995]])
    assert_close(interleaved_sinusoid(torch.tensor([1, -1]), 4), expected, atol=1e-6, rtol=0)


def test_values_of_shaw_by_numbers() -> None:
    p = Shaw(2, 1, 1, clip=1)
    p.value_tables[0].data = torch.tensor([[9.0, 9.0], [0.1, 0.2], [0.3, -0.1]])
    weights = torch.tensor([[0.25, 0.75], [0.0, 1.0]])
    read = p.read(weights[None, None], torch.eye(2)[None, None], 0)
    assert_close(read[0, 0], torch.tensor([[0.5, 0.725], [0.1, 1.2]]))


def test_buckets_of_t5_by_numbers() -> None:
    before = {
        0: 0,
        -1: 1,
        -7: 7,
        -8: 8,
        -11: 8,
        -12: 9,
        -15: 9,
        -16: 10,
        -22: 10,
        -23: 11,
        -31: 11,
        -32: 12,
        -45: 12,
    }
    far = {-46: 13, -63: 13, -64: 14, -90: 14, -91: 15, -500: 15}
    after = {1: 17, 7: 23, 8: 24, 12: 25, 16: 26, 64: 30, 128: 31}
    known = {**before, **far, **after}
    assert dict(zip(known, Buckets(8, 2, 1).bucket(torch.tensor(list(known))).tolist(), strict=True)) == known
    every = torch.arange(-300, 301)
    assert Buckets(8, 2, 1).bucket(every).tolist() == [bucket(d) for d in every.tolist()]


def test_rotary_by_numbers() -> None:
    p = Rotary(4, 1, 1)

    def at(q: list[float], i: int, k: list[float], j: int) -> float:
        rows = torch.zeros(2, 1, 1, 9, 4)
        rows[0, 0, 0, i], rows[1, 0, 0, j] = torch.tensor(q), torch.tensor(k)
        return float(p.score(rows[0], rows[1], 0)[0, 0, i, j])

    x = [1.0, 0.0, 1.0, 0.0]
    assert at(x, 2, x, 5) == pytest.approx(0.0095575, abs=1e-6)
    assert at(x, 5, x, 8) == pytest.approx(0.0095575, abs=1e-6)
    q, k = [1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 0.0, 2.0]
    assert at(q, 2, k, 5) == pytest.approx(9.583656, abs=1e-5)
    assert at(q, 0, k, 3) == pytest.approx(9.583656, abs=1e-5)
    assert at(q, 5, k, 2) == pytest.approx(9.379122, abs=1e-5)


def test_flow_solves_its_differential_equation() -> None:
    """Two thousand straight steps end where the solver ends."""
    p = position_of("flow, three steps of the solver")
    found = p.encode(torch.zeros(1, 3, D, dtype=torch.float64), torch.ones(1, 3, dtype=torch.bool))[0]
    x, h = p.first, p.interval / 1000
    for step in range(2000):
        x = x + h * slope(p, step * h, x)
    assert_close(found[2], x, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build_transformer(5, d_model=10, heads=3), "multiple of heads"),
        (
            lambda: build_transformer(5, d_model=4, heads=2, input_projection=False),
            "must be the embedding's width, 5",
        ),
        (lambda: build_transformer(5, d_model=4, heads=2, layers=0), "layers must be at least 1"),
        (lambda: POSITIONS["tener"](6, 2, 1), "width of a head .3. must be even"),
        (lambda: POSITIONS["recurrent_front"](9, 3, 1), "even"),
        (lambda: Shaw(4, 2, 1, clip=0), "clip must be at least 1"),
        (lambda: Buckets(4, 2, 1, buckets=6), "multiple of 4"),
        (lambda: Buckets(4, 2, 1, max_distance=8), "max_distance"),
        (lambda: Disentangled(4, 2, 1, span=0), "span must be at least 1"),
        (lambda: Disentangled(4, 2, 1, content_to_position=False, position_to_content=False), "take 'none'"),
        (lambda: Flow(4, 2, 1, interval=0.0), "interval"),
    ],
)
def test_settings_that_do_not_fit_are_an_error(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_text_longer_than_its_learned_positions() -> None:
    with pytest.raises(ModelError, match=r"up to 4 characters, and this one has 5: set text\.window to at most 4"):
        Learned(6, 2, 1, max_length=4).encode(torch.zeros(1, 5, 6), torch.ones(1, 5, dtype=torch.bool))
