"""TENER against tensors that the authors' code wrote.

The fixtures hold a randomly initialised model of the original: weights, inputs, attention, output of the encoder.
Faults that only these tests see: u and v exchanged, the key's term with the distance of the query's, a projection
or an activation that the authors do not have, norms in another place.
"""

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.encoders.positions import sinusoid
from hanlattice.encoders.tener import build_tener
from hanlattice.encoders.transformer import Transformer
from parity.fixtures import DATA, FULL

IN_REPOSITORY = ("scaled_prenorm",)


class Fixture:
    def __init__(self, name: str):
        folder = DATA if name in IN_REPOSITORY else FULL
        assert folder is not None
        arrays = np.load(folder / "tener.npz")
        self.arrays = {k: torch.from_numpy(arrays[k]) for k in arrays.files if k.startswith(f"{name}:")}
        self.name = name
        self.meta: dict[str, Any] = json.loads((folder / "tener_meta.json").read_text(encoding="utf-8"))[name]

    def __getitem__(self, key: str) -> Tensor:
        return self.arrays[f"{self.name}:{key}"]

    def encoder(self) -> Transformer:
        """Ours with the authors' weights. They count distances from the key: the sines have the other sign."""
        meta = self.meta
        width = meta["d_model"] // meta["n_head"]
        sign = torch.cat([-torch.ones(width // 2), torch.ones(width // 2)])
        encoder: Any = build_tener(
            meta["d_model"],
            d_model=meta["d_model"],
            heads=meta["n_head"],
            d_feed_forward=meta["feedforward_dim"],
            layers=meta["num_layers"],
            norm="post" if meta["after_norm"] else "pre",
            scaled=meta["scale"],
            key_projection=True,
            key_term=True,
            input_projection=False,
        )
        for i, layer in enumerate(encoder.layers):
            theirs = f"param:layers.{i}"
            q, k, v = self[f"{theirs}.self_attn.qkv_linear.weight"].chunk(3)
            signs = sign.repeat(meta["n_head"])[:, None]
            layer.attention.query.weight.data, layer.attention.key.weight.data = q * signs, k * signs
            layer.attention.value.weight.data = v
            encoder.position.biases.u[i].data = self[f"{theirs}.self_attn.r_r_bias"] * sign
            encoder.position.biases.v[i].data = self[f"{theirs}.self_attn.r_w_bias"] * sign
            copies = {
                "norm1": layer.attention_norm,
                "norm2": layer.feed_forward_norm,
                "ffn.0": layer.feed_forward.inner,
                "ffn.3": layer.feed_forward.outer,
            }
            for name, module in copies.items():
                for part in ("weight", "bias"):
                    getattr(module, part).data = self[f"{theirs}.{name}.{part}"]
        return encoder.eval()


@pytest.fixture(params=[*IN_REPOSITORY, "weibo"] if FULL else IN_REPOSITORY)
def fixture(request: pytest.FixtureRequest) -> Fixture:
    return Fixture(request.param)


def test_every_weight_is_copied(fixture: Fixture) -> None:
    """Ours has as many numbers as theirs, whose sinusoids alone are no weights."""
    theirs = sum(v.numel() for k, v in fixture.arrays.items() if ":param:" in k and "pos_embed" not in k)
    assert sum(p.numel() for p in fixture.encoder().parameters()) == theirs


def test_sinusoids(fixture: Fixture) -> None:
    expected = fixture["out:pos_embed"]
    assert_close(sinusoid(torch.arange(-9, 9), expected.shape[1]), expected, atol=2e-6, rtol=1e-5)


def test_attention_and_output(fixture: Fixture) -> None:
    encoder: Any = fixture.encoder()
    mask = fixture["in:mask"]
    attended: list[Tensor] = []
    for layer in encoder.layers:
        layer.attention.register_forward_hook(lambda module, given, out: attended.append(out))
    h = encoder.encode(fixture["in:x"], mask)
    for i, found in enumerate(attended):
        assert_close(found[mask], fixture[f"out:attn_output_layer{i}"][mask], atol=1e-5, rtol=1e-5)
    assert len(attended) == fixture.meta["num_layers"]
    assert_close(h[mask], fixture["out:encoder_output"][mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "expected"), [({}, 5670), ({"key_projection": True}, 6570), ({"output_projection": True}, 6570)]
)
def test_number_of_weights_is_the_papers(settings: dict[str, Any], expected: int) -> None:
    """For its encoder of letters 6,600, with 930 of the linear layer after it, of which u and v make 60."""
    encoder = build_tener(30, d_model=30, heads=3, d_feed_forward=60, input_projection=False, **settings)
    assert sum(p.numel() for p in encoder.parameters()) == expected
