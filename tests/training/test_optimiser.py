"""Settings of the optimiser change the parameters that they are for, and no others."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

import tiny
from hanlattice.config.settings import TrainingConfig
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.own import Own
from hanlattice.embeddings.table import Table
from hanlattice.encoders.identity import Identity
from hanlattice.tagger import Head, Tagger
from hanlattice.training import Silent
from hanlattice.training.optimiser import MovingAverage, clip_gradients, initialise, optimisers, set_learning_rate
from hanlattice.training.prepare import prepare

PLAIN, CRF_SCORE, TABLE = "decoder.emission.weight", "decoder.transitions", "embedding.chars.weight"


def tagger_of_ones(*, sparse: bool = False) -> Tagger:
    tagger = Tagger(
        Characters(Table(torch.ones(3, 4), sparse=sparse), None, None, dropout=0.0), Identity(4), CRF(4, ("PER",))
    )
    with torch.no_grad():
        for parameter in tagger.parameters():
            parameter.fill_(1.0)
    return tagger


def emission(tagger: Tagger) -> torch.Tensor:
    assert isinstance(tagger.decoder, CRF)
    return tagger.decoder.emission.weight


def changes(steps: int = 1, **settings: Any) -> dict[str, float]:
    """By how much ``steps`` steps of plain SGD with gradients of 1 lower the parameters, which start as 1."""
    config = TrainingConfig(**{"optimiser": "sgd", "momentum": 0.0, "learning_rate": 0.1, **settings})
    tagger = tagger_of_ones()
    chosen = optimisers(tagger, config)
    set_learning_rate(chosen, 1.0)
    for _ in range(steps):
        for parameter in tagger.parameters():
            parameter.grad = torch.ones_like(parameter)
        for optimiser in chosen:
            optimiser.step()
    return {name: 1 - parameter.detach().flatten()[-1].item() for name, parameter in tagger.named_parameters()}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (0.1, 0.1, 0.1)),
        ({"crf_rate": 3.0}, (0.1, 0.3, 0.1)),
        ({"table_rate": 0.5}, (0.1, 0.1, 0.05)),
        ({"weight_decay": 0.2}, (0.12, 0.1, 0.1)),
        ({"learning_rate": 0.2, "crf_rate": 2.0, "table_rate": 0.1}, (0.2, 0.4, 0.02)),
    ],
    ids=str,
)
def test_rates_and_weight_decay(settings: dict[str, Any], expected: tuple[float, float, float]) -> None:
    changed = changes(**settings)
    assert [changed[name] for name in (PLAIN, CRF_SCORE, TABLE)] == pytest.approx(expected)
    assert changed["decoder.start"] == pytest.approx(changed[CRF_SCORE])


def test_a_sparse_table_has_the_rate_of_tables() -> None:
    tagger = tagger_of_ones(sparse=True)
    config = TrainingConfig(optimiser="adamw", learning_rate=0.2, table_rate=0.25)
    _, sparse = optimisers(tagger, config)
    (group,) = sparse.param_groups
    assert (group["params"], group["rate"]) == ([tagger.get_parameter(TABLE)], pytest.approx(0.05))


def test_rates_and_weight_decay_of_a_language_model() -> None:
    """The rate falls with the number of layers above; vectors, such as biases and norms, do not decay."""
    given = {"embedding": {"name": "own", "path": str(tiny.body()), "mode": "tuned"}}
    tagger = prepare(tiny.config().with_settings(given), "cpu", Silent()).ner.tagger
    settings = {"learning_rate": 0.1, "pretrained_rate": 0.5, "layer_decay": 0.25, "weight_decay": 0.2}
    dense, *_ = optimisers(tagger, TrainingConfig(optimiser="adamw", **settings))  # type: ignore[arg-type]
    found = {id(p): (g["rate"], g["weight_decay"]) for g in dense.param_groups for p in g["params"]}
    assert isinstance(tagger.embedding, Own)
    depths = tagger.embedding.depths()
    assert {depth for _, depth in depths} >= {0, 1}
    assert {p.dim() > 1 for p, _ in depths} == {True, False}
    for parameter, depth in depths:
        assert found[id(parameter)] == (
            pytest.approx(0.1 * 0.5 * 0.25**depth),
            0.2 if parameter.dim() > 1 else 0.0,
        )


def test_momentum_makes_the_second_step_longer() -> None:
    assert changes(2)[PLAIN] == pytest.approx(0.1 + 0.1)
    assert changes(2, momentum=0.5)[PLAIN] == pytest.approx(0.1 + 0.15)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"clip_value": 0.0, "clip_norm": 0.0}, (3.0, 4.0)),
        ({"clip_value": 0.0, "clip_norm": 1.0}, (0.6, 0.8)),
        ({"clip_value": 0.0, "clip_norm": 10.0}, (3.0, 4.0)),
        ({"clip_value": 3.5, "clip_norm": 0.0}, (3.0, 3.5)),
        ({"clip_value": 3.0, "clip_norm": 1.0}, (0.5**0.5, 0.5**0.5)),
    ],
    ids=str,
)
def test_gradients_are_clipped(settings: dict[str, Any], expected: tuple[float, float]) -> None:
    """The gradient of two parameters together has the norm 5, one of them is sparse."""
    dense, sparse = (torch.nn.Parameter(torch.zeros(2, 1)) for _ in range(2))
    dense.grad = torch.tensor([[3.0], [0.0]])
    rows, values = torch.tensor([[1, 1]]), torch.tensor([[1.0], [3.0]])
    sparse.grad = torch.sparse_coo_tensor(rows, values, (2, 1), check_invariants=True)
    clip_gradients([dense, sparse], TrainingConfig(**settings))
    assert_close((float(dense.grad[0]), float(sparse.grad.to_dense()[1])), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["msra", "label_studio", "timetable"])
def test_the_name_of_a_convention_does_not_decide_its_initial_weights(name: str) -> None:
    """Names of parameters do: tables and the vectors of labels, for example, keep their initial weights."""
    decoder = CRF(4, ("PER",))
    tagger = Tagger(
        Characters(Table(torch.ones(3, 4))), Identity(4), CRF(4, ("PER",)), conventions={name: Head(4, decoder)}
    )
    before = decoder.emission.weight.clone()
    initialise(tagger, "xavier")
    assert not torch.equal(decoder.emission.weight, before)
    assert not decoder.transitions.any()


class TestMovingAverage:
    @pytest.mark.parametrize(
        ("decay", "decays"), [(0.998, [2 / 11, 3 / 12, 4 / 13]), (0.2, [2 / 11, 0.2, 0.2]), (0.1, [0.1] * 3)]
    )
    def test_early_weights_fade(self, decay: float, decays: list[float]) -> None:
        """Before step 1 all weights are 1, after step n they are n + 1."""
        tagger, average = tagger_of_ones(), 1.0
        moving = MovingAverage(tagger, decay)
        for step, decay_of_step in enumerate(decays, 1):
            with torch.no_grad():
                emission(tagger).fill_(step + 1)
            moving.update(tagger)
            average += (1 - decay_of_step) * (step + 1 - average)
            assert moving.weights[PLAIN][0, 0].item() == pytest.approx(average)

    def test_a_restored_average_is_on_the_device_of_the_weights(self) -> None:
        tagger = tagger_of_ones()
        state = MovingAverage(tagger, 0.5).state()
        tagger.to("meta")
        moving = MovingAverage(tagger, 0.5)
        moving.load(state)
        assert {weight.device.type for weight in moving.weights.values()} == {"meta"}
        moving.update(tagger)

    def test_swap_exchanges_the_weights_and_back(self) -> None:
        tagger = tagger_of_ones()
        moving = MovingAverage(tagger, 0.5)
        with torch.no_grad():
            emission(tagger).fill_(3.0)
        seen = [emission(tagger)[0, 0].item()]
        for _ in range(2):
            moving.swap(tagger)
            seen.append(emission(tagger)[0, 0].item())
        assert seen == [3.0, 1.0, 3.0]

    def test_sparse_tables_are_left_out(self) -> None:
        assert TABLE in MovingAverage(tagger_of_ones(), 0.5).weights
        assert TABLE not in MovingAverage(tagger_of_ones(sparse=True), 0.5).weights
