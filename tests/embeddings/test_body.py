"""The character Transformer equals its definition, starts with small weights, and says which files do not fit."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

import tiny
from hanlattice.embeddings.body import Body, Linear, angles, multiply_in_bfloat16, turned
from hanlattice.embeddings.body_files import (
    BOUNDARY,
    FIRST,
    MASK,
    UNKNOWN,
    VOCABULARY,
    Characters,
    Shape,
    save_files,
)
from hanlattice.embeddings.body_folder import WEIGHTS, finished_steps, load_weights, open_body, save_body
from hanlattice.embeddings.own import Own
from hanlattice.errors import ConfigError
from hanlattice.inputs.batch import Batch, Words

Array = NDArray[np.float64]
SHAPE = Shape(layers=2, width=8, heads=2, window=10)


def small(seed: int = 0, size: int = 9) -> Body:
    """A body whose weights are large enough to matter."""
    torch.manual_seed(seed)
    body = Body(SHAPE, size)
    for parameter in body.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return body.eval()


def defined(body: Body, ids: list[int]) -> Array:
    """The vectors of one text, character by character and head by head, in 64 bits."""
    weight = {name: tensor.double().numpy() for name, tensor in body.state_dict().items()}

    def normed(x: Array, name: str) -> Array:
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-5) * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    def linear(x: Array, name: str) -> Array:
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    d = SHAPE.width // SHAPE.heads

    def rotated(vector: Array, position: int) -> Array:
        result = np.empty(d)
        for i in range(d // 2):
            angle = position * 10000 ** (-2 * i / d)
            a, b = vector[i], vector[i + d // 2]
            result[i] = a * math.cos(angle) - b * math.sin(angle)
            result[i + d // 2] = b * math.cos(angle) + a * math.sin(angle)
        return result

    x = weight["embedding.weight"][ids]
    for layer in range(SHAPE.layers):
        at = f"layers.{layer}"
        q, k, v = np.split(linear(normed(x, f"{at}.attention_norm"), f"{at}.query_key_value"), 3, 1)
        read = np.zeros_like(x)
        for start in range(0, SHAPE.width, d):
            head = slice(start, start + d)
            queries, keys = ([rotated(row, p) for p, row in enumerate(one[:, head])] for one in (q, k))
            scores = np.array([[a @ b / d**0.5 for b in keys] for a in queries])
            share = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            read[:, head] = share @ v[:, head]
        x = x + linear(read, f"{at}.output")
        x = x + linear(np.maximum(linear(normed(x, f"{at}.feed_forward_norm"), f"{at}.inner"), 0), f"{at}.outer")
    return normed(x, "norm")


def test_it_is_the_transformer_of_the_papers() -> None:
    body, ids = small(), [3, 1, 4, 1, 5, 8, 2]
    with torch.inference_mode():
        alone = body(torch.tensor([ids]))[0]
        padded = body(torch.tensor([[*ids, 7, 7]]), torch.tensor([[True] * 7 + [False] * 2]))[0, :7]
    np.testing.assert_allclose(alone, defined(body, ids), atol=1e-4)
    np.testing.assert_allclose(padded, alone, atol=1e-5)


def test_angles_and_turns() -> None:
    cos, sin = angles(40, 6, torch.device("cpu"))
    expected = np.outer(np.arange(40), 10000.0 ** (-np.arange(0, 6, 2) / 6))
    np.testing.assert_allclose(cos, np.cos(expected), atol=1e-5)
    np.testing.assert_allclose(sin, np.sin(expected), atol=1e-5)
    turn = turned(torch.tensor([[[[1.0, 0.0]], [[0.0, 1.0]]]]), torch.tensor([[0.6]]), torch.tensor([[0.8]]))
    torch.testing.assert_close(turn, torch.tensor([[[[0.6, 0.8]], [[-0.8, 0.6]]]]))


def test_first_weights_are_small_and_smaller_before_a_residual_connection() -> None:
    torch.manual_seed(0)
    body = Body(Shape(layers=8, width=128, heads=2), 500)
    for name, parameter in body.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any()
        elif "norm" in name:
            assert bool((parameter == 1).all())
        else:
            last = name.endswith(("output.weight", "outer.weight"))
            assert float(parameter.detach().std()) == pytest.approx(0.02 / (4 if last else 1), rel=0.03), name
    assert [p.shape[0] for n, p in body.named_parameters() if n.endswith("0.inner.weight")] == [4 * 128]


def test_depths_count_the_layers_above() -> None:
    body = small()
    depth = {id(p): n for p, n in body.depths()}
    found = {name: depth[id(p)] for name, p in body.named_parameters()}
    assert len(depth) == len(found)
    assert all(
        n == (2 if name.startswith("embedding") else 1 if name.startswith("layers.0") else 0)
        for name, n in found.items()
    )


def test_bfloat16_is_for_training_alone() -> None:
    body, ids = small(), torch.tensor([[3, 4, 5]])
    before = body(ids)
    assert torch.equal(body.train()(ids), before)
    multiply_in_bfloat16(body)
    assert body.layers[0].inner.in_bfloat16  # type: ignore[union-attr]
    assert torch.equal(body.eval()(ids), before)
    trained = body.train()(ids)
    assert trained.dtype == torch.float32
    assert not torch.equal(trained, before)
    torch.testing.assert_close(trained, before, atol=0.1, rtol=0.1)
    layer = Linear(2, 3, bias=False).train()
    layer.in_bfloat16 = True
    assert layer(torch.ones(1, 2)).dtype == torch.bfloat16


def test_ids_of_characters() -> None:
    known = Characters("的aɓḁa\u0561"[:4] + "\u0561A")
    assert (BOUNDARY, UNKNOWN, MASK, FIRST, len(known)) == (0, 1, 2, 3, 9)
    for text, expected in (
        ("的a", [3, 4]),
        ("A", [8]),  # known itself
        ("Ɓ", [5]),  # by its lower case
        ("Ḁ", [6]),  # the first of a further range
        ("\u0531", [7]),
        ("İ天\U0010ffff", [1, 1, 1]),  # its lower case has two characters; unknown
    ):
        assert known.ids(text).tolist() == expected
    assert len(known.table) == 0x110000
    assert known.text(np.array([0, 1, 2, 3, 8])) == "\n\ufffd\ufffd的A"


def test_files_are_written_and_read(tmp_path: Path) -> None:
    body, known = small(), Characters("的一天是李明")
    save_files(tmp_path / "new" / "folder", SHAPE, known)
    path = tmp_path / "new" / "folder" / WEIGHTS
    for half, kind in ((False, torch.float32), (True, torch.float16)):
        save_body(path, body, half=half, steps=17)
        assert {tensor.dtype for tensor in load_file(path).values()} == {kind}
        assert finished_steps(path) == 17
        again, characters = open_body(path.parent)
        assert characters == known
        for name, tensor in again.state_dict().items():
            assert tensor.dtype == torch.float32
            torch.testing.assert_close(tensor, body.state_dict()[name], atol=2e-3 if half else 0, rtol=0)
    text = json.loads((path.parent / VOCABULARY).read_text("utf-8"))
    assert text == {"characters": "的一天是李明"}
    path.unlink()
    assert open_body(path.parent, weights=False)[0].shape == SHAPE
    assert finished_steps(path) == -1
    save_file({"a": torch.ones(2)}, path)
    assert finished_steps(path) == -1
    save_file({"a": torch.ones(2)}, path, {"steps": "many"})
    assert finished_steps(path) == -1


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda path: path.unlink(),
            r"missing; finish the run with: hanlattice pretrain --output \S+ --finish 0.1",
        ),
        (lambda path: path.write_bytes(b"x" * 99), "does not fit config.toml and vocabulary.json, or is broken"),
        (lambda path: save_file({"a": torch.ones(2)}, path), "does not fit config.toml"),
    ],
)
def test_weights_that_cannot_be_read(tmp_path: Path, spoil: Any, message: str) -> None:
    path = tmp_path / WEIGHTS
    save_body(path, small(), half=False, steps=1)
    load_weights(small(1), path)
    spoil(path)
    with pytest.raises(ConfigError, match=message) as error:
        load_weights(small(1), path)
    assert "\n" not in str(error.value)
    with pytest.raises(ConfigError, match=r"no such folder; make one with: hanlattice pretrain --output \S+ TEXT"):
        open_body(tmp_path / "nowhere")


def batch(*texts: str) -> Batch:
    lengths = torch.tensor([len(text) for text in texts])
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    none = torch.zeros(len(texts), 0, dtype=torch.long)
    return Batch(mask.long(), mask.long(), mask, Words(none, none, none, none, none.bool()), texts)


class TestOwn:
    def own(self, **settings: Any) -> Own:
        body, known = open_body(tiny.body())
        return Own(body, known, body_dropout=0.0, **settings)

    def test_short_texts_stand_between_boundaries_and_padding_is_zero(self) -> None:
        own = self.own().eval()
        found = own(batch("李明在北京", "李"))
        assert found.shape == (2, 5, own.d_out)
        for row, text in zip(found, ("李明在北京", "李"), strict=True):
            ids = [BOUNDARY, *own.known.ids(text).tolist(), BOUNDARY]
            alone = own.language_model(torch.tensor([ids]))[0, 1:-1]
            torch.testing.assert_close(row[: len(text)], alone, atol=1e-6, rtol=1e-5)
            assert not row[len(text) :].any()

    def test_a_text_that_fills_the_window_is_read_whole(self) -> None:
        """Two of its ten characters are boundaries."""
        own = self.own().eval()
        text = "李明在北京工作李"
        alone = own.language_model(torch.tensor([[BOUNDARY, *own.known.ids(text).tolist(), BOUNDARY]]))[0, 1:-1]
        torch.testing.assert_close(own(batch(text))[0], alone)
        assert not torch.allclose(own(batch(text + "明"))[0, :8], alone)

    @pytest.mark.parametrize(
        ("mode", "held", "learns"), [("frozen", False, False), ("tuned", False, True), ("tuned", True, False)]
    )
    def test_what_learns(self, mode: Any, held: bool, learns: bool) -> None:
        own = self.own(mode=mode)
        own.held = held
        assert own(batch("李明")).requires_grad == learns
        assert bool(own.depths()) == (mode == "tuned")

    def test_settings_that_are_not_given(self) -> None:
        body, known = open_body(tiny.body())
        own = Own(body, known)
        assert own.dropout.rate == 0.1
        assert own.d_out == 8
        assert not any(p.requires_grad for p in own.parameters())
        assert not own.language_model.layers[0].inner.in_bfloat16  # type: ignore[union-attr]
        assert Own(body, known, precision="bfloat16").language_model.layers[0].inner.in_bfloat16  # type: ignore[union-attr]
        with pytest.raises(ValueError, match=r"a pretrained body reads batch\.texts"):
            own(replace(batch("李明"), texts=()))
