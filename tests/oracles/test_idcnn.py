"""Dilated convolutions against loops over positions.

Faults that go red here: taps in the wrong order, dilations in the wrong order, padding that is seen by the second
convolution, a repeat with other weights, losses on the wrong repeats.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hanlattice.decoders.tagging import CRF
from hanlattice.encoders.idcnn import IDCNN, build_idcnn
from hanlattice.inputs.batch import Batch, Words
from hanlattice.spans import Span
from hanlattice.tagger import Tagger
from hanlattice.training.optimiser import initialise

D_IN, D = 4, 5
LENGTHS = (9, 4, 1)


def batch_of() -> tuple[Tensor, Batch]:
    """Character vectors, of padding too."""
    torch.manual_seed(0)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    ids, none = torch.zeros_like(mask, dtype=torch.long), torch.zeros(len(LENGTHS), 0, dtype=torch.long)
    x = torch.randn(*mask.shape, D_IN, dtype=torch.float64)
    return x, Batch(ids, ids, mask, Words(none, none, none, none, none.bool()))


def encoder_of(**settings: Any) -> IDCNN:
    torch.manual_seed(1)
    encoder = build_idcnn(D_IN, d_hidden=D, **settings).double().eval()
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return encoder


def convolve(layer: nn.Conv1d, xs: Sequence[Tensor], dilation: int) -> list[Tensor]:
    """The output of each position from its left neighbour, itself and its right neighbour, where they exist."""
    out = []
    for t in range(len(xs)):
        total = torch.zeros(D, dtype=torch.float64) if layer.bias is None else layer.bias
        for tap, at in enumerate((t - dilation, t, t + dilation)):
            if 0 <= at < len(xs):
                total = total + layer.weight[:, :, tap] @ xs[at]
        out.append(total)
    return out


def naive(encoder: IDCNN, xs: Sequence[Tensor], settings: dict[str, Any]) -> list[Tensor]:
    """The result of each repeat."""
    h = convolve(encoder.entry.inner, xs, 1)
    h = [v.relu() for v in h] if settings.get("first", "relu") == "relu" else h
    results = []
    for repeat in range(settings.get("repeats", 1)):
        block: Any = encoder.blocks[0 if settings.get("share", True) else repeat]
        for layer, dilation in zip(block.layers, settings.get("dilations", (1, 2, 1)), strict=True):
            h = [v.relu() for v in convolve(layer.inner, h, dilation)]
        results.append(torch.stack(h))
    return results


VARIANTS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "iterated": {"repeats": 3, "loss": "sum"},
    "iterated, mean": {"repeats": 3, "loss": "mean"},
    "own weights": {"repeats": 2, "share": False},
    "Chinese port": {"dilations": (1, 1, 2), "repeats": 4, "output": "concat", "first": "linear", "init": "xavier"},
}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_equals_convolution_position_by_position(settings: dict[str, Any]) -> None:
    x, batch = batch_of()
    encoder = encoder_of(**settings)
    h, outputs = encoder(x, batch), encoder.outputs(x, batch)
    assert h.shape[-1] == encoder.d_out
    for b, n in enumerate(LENGTHS):
        results = naive(encoder, list(x[b, :n]), settings)
        assert_close(h[b, :n], torch.cat(results, -1) if settings.get("output") == "concat" else results[-1])
        if settings.get("loss", "last") != "last":
            assert len(outputs) == len(results)
            for (weight, output), expected in zip(outputs, results, strict=True):
                assert weight == (1.0 if settings["loss"] == "sum" else 1 / len(results))
                assert_close(output[b, :n], expected)


@pytest.mark.parametrize(("repeats", "reach"), [(1, 11), (2, 19), (3, 27), (4, 35)])
def test_receptive_field(repeats: int, reach: int) -> None:
    encoder = build_idcnn(D_IN, d_hidden=D, repeats=repeats, first="linear").double().eval()
    for parameter in encoder.parameters():
        nn.init.constant_(parameter, 0.1)
    n = 41
    ones = torch.ones(1, n, dtype=torch.bool)
    none = torch.zeros(1, 0, dtype=torch.long)
    batch = Batch(ones.long(), ones.long(), ones, Words(none, none, none, none, none.bool()))
    x = torch.ones(1, n, D_IN, dtype=torch.float64, requires_grad=True)
    encoder(x, batch)[0, n // 2].sum().backward()
    assert x.grad is not None
    assert int(x.grad[0].any(-1).sum()) == reach


class Given(nn.Module):
    def forward(self, batch: Batch) -> Tensor:
        return batch_of()[0]


def test_the_loss_is_that_of_every_repeat() -> None:
    gold = [[Span(1, 3, "A")], [], [Span(0, 1, "A")]]
    batch = batch_of()[1]
    losses = {}
    for how in ("last", "sum", "mean"):
        encoder = encoder_of(repeats=3, loss=how)
        torch.manual_seed(2)
        tagger = Tagger(Given(), encoder, CRF(D, ("A",))).double().eval()
        losses[how] = tagger.loss(batch, gold)
        x = batch_of()[0]
        each = [
            tagger.decoder.loss(tagger.decoder.scores(h), batch.mask, gold)
            for h in encoder_of(repeats=3, loss="sum")._repeat(x, batch.mask)
        ]
    assert_close(losses["last"], each[-1])
    assert_close(losses["sum"], sum(each))
    assert_close(losses["mean"], sum(each) / 3)


def test_initial_blocks_are_the_identity_and_training_keeps_them() -> None:
    x, batch = batch_of()
    encoder = build_idcnn(D_IN, d_hidden=D, repeats=2)
    initialise(Tagger(Given(), encoder, CRF(D, ("A",))), "xavier")
    encoder = encoder.double().eval()
    assert_close(encoder(x, batch)[batch.mask], encoder.entry(x, batch.mask).relu()[batch.mask])
    assert encoder.entry.inner.bias is not None
    assert encoder.entry.inner.bias.tolist() == pytest.approx([0.01] * D)
    assert build_idcnn(D_IN, d_hidden=D, first="linear").entry.inner.bias is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeats": 0}, "at least 1"),
        ({"dilations": ()}, "at least 1"),
        ({"loss": "sum", "output": "concat"}, 'needs output = "last"'),
    ],
)
def test_settings_that_do_not_fit_are_an_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_idcnn(D_IN, **settings)
