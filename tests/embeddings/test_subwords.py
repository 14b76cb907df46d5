"""Subwords and their windows, and a language model's files, on made-up tokenizers and models."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hanlattice.embeddings.language_model import _encoder, _quiet
from hanlattice.embeddings.pretrained import _layers, _marks
from hanlattice.embeddings.subwords import SubwordReader, _aligned, rows_of, windows
from hanlattice.errors import ModelError


class Tokenizer:
    """One token for each character, its code point; 中 and 文 together are one token, and x is unknown."""

    is_fast, unk_token_id, pad_token_id = True, 1, 2

    def __init__(self) -> None:
        self.alone: list[str] = []

    def __call__(self, texts: Sequence[str], **settings: Any) -> dict[str, list[Any]]:
        assert settings == {
            "add_special_tokens": False,
            "split_special_tokens": True,
            "return_offsets_mapping": True,
            "verbose": False,
        }
        found: dict[str, list[Any]] = {"input_ids": [], "offset_mapping": []}
        for text in texts:
            ids, offsets, at = [], [], 0
            while at < len(text):
                n = next((k for k in (2, 3) if text[at : at + k] in ("中文", "xxx")), 1)
                if text[at] != " ":
                    ids.append(1 if text[at] == "x" else ord(text[at]))
                    offsets.append((at, at + n))
                at += n
            found["input_ids"].append(ids)
            found["offset_mapping"].append(offsets)
        return found

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        self.alone.append(text)
        return [101, 102, ord(text), 103] if add_special_tokens else [ord(text)]


def test_subwords_and_their_characters() -> None:
    tokenizer = Tokenizer()
    found = SubwordReader(tokenizer)(["a中文 b", "", "  ", "\ud800", "xxxa", "x"])
    assert [list(map(int, one.ids)) for one in found] == [
        [97, 0x4E2D, 98],
        [1],
        [1],
        [0xFFFD],
        [120, 120, 120, 97],
        [1],
    ]
    assert [one.first.tolist() for one in found] == [[0, 1, 1, 1, 2], [], [0, 0], [0], [0, 1, 2, 3], [0]]
    assert [one.last.tolist() for one in found] == [[0, 1, 1, 2, 2], [], [0, 0], [0], [0, 1, 2, 3], [0]]
    assert tokenizer.alone == ["x"], "each character once"


def test_by_character() -> None:
    slow = Tokenizer()
    slow.is_fast = False
    for reader in (SubwordReader(Tokenizer(), by_character=True), SubwordReader(slow)):
        (found,) = reader(["中文x"])
        assert found.ids.tolist() == [0x4E2D, 0x6587, 120]
        assert found.first.tolist() == found.last.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("unknown", "padding", "expected"), [(7, 5, 7), (0, 5, 0), (None, 5, 5), (None, 0, 0), (None, None, 0)]
)
def test_the_token_of_a_text_without_any(unknown: int | None, padding: int | None, expected: int) -> None:
    tokenizer: Any = Tokenizer()
    tokenizer.unk_token_id, tokenizer.pad_token_id = unknown, padding
    assert SubwordReader(tokenizer)([""])[0].ids.tolist() == [expected]


@pytest.mark.parametrize("offsets", [[(2, 3), (1, 2)], [(0, 4)], [(2, 1)]])
def test_offsets_that_cannot_be(offsets: list[tuple[int, int]]) -> None:
    reader = SubwordReader(Tokenizer())
    with pytest.raises(ModelError, match="it puts a token at"):
        list(reader._without_long_unknowns("abc", [5] * len(offsets), offsets))
    good = [(0, 0), (0, 3), (0, 1), (3, 3)]
    assert len(list(reader._without_long_unknowns("abc", [5] * 4, good))) == 4


@pytest.mark.parametrize(
    ("tokens", "first", "last"),
    [
        ([(5, 0, 1), (6, 1, 3)], [0, 1, 1], [0, 1, 1]),
        ([(5, 0, 1), (6, 0, 1), (7, 2, 3)], [0, 1, 2], [1, 2, 2]),  # the second character has the ones beside it
        ([(5, 1, 2)], [0, 0, 0], [0, 0, 0]),  # at both ends there is one only
        ([(5, 0, 2), (6, 1, 3)], [0, 0, 1], [0, 1, 1]),
    ],
)
def test_characters_of_subwords(tokens: list[tuple[int, int, int]], first: list[int], last: list[int]) -> None:
    found = _aligned(tokens, 3)
    assert (found.first.tolist(), found.last.tolist()) == (first, last)


@pytest.mark.parametrize("size", [2, 4, 5, 7])
@pytest.mark.parametrize("n", [0, 1, 6, 7, 8, 13, 30])
def test_windows_overlap_by_half(n: int, size: int) -> None:
    """Each place belongs to the window in which the nearer edge is farthest; edges of the text are none."""
    starts, window = windows(n, size)
    assert len(window) == n
    assert starts[0] == 0
    assert all(0 < b - a <= size // 2 for a, b in pairwise(starts))
    if n > size:
        assert starts[-1] + size == n
        assert all(b - a == size // 2 for a, b in pairwise(starts[:-1]))
    else:
        assert starts == [0]

    def room(place: int, start: int) -> float:
        ahead = place - start if start else np.inf
        behind = start + size - 1 - place if start + size < n else np.inf
        return min(ahead, behind)

    for place, own in enumerate(window.tolist()):
        inside = [w for w, start in enumerate(starts) if start <= place < start + size]
        assert own in inside
        assert room(place, starts[own]) == max(room(place, starts[w]) for w in inside)


def test_rows_of_windows() -> None:
    text = _aligned([(10 + i, i, i + 1) for i in range(5)], 5)
    short = _aligned([(7, 0, 1), (8, 0, 1)], 2)
    rows = rows_of([text, short], 6, 4, [1], [2, 3], 0)
    starts, _ = windows(5, 4)
    expected = [[1, *range(10 + start, min(14 + start, 15)), 2, 3] for start in starts] + [[1, 7, 8, 2, 3]]
    assert [row[:n].tolist() for row, n in zip(rows.ids, rows.lengths, strict=True)] == expected
    assert not any(row[n:].any() for row, n in zip(rows.ids, rows.lengths, strict=True))
    at = rows.ids.flatten()[rows.index]
    assert at[0, :5, 0].tolist() == [10, 11, 12, 13, 14]
    assert at[1, :2].tolist() == [[7, 8], [8, 8]]
    assert rows.weight[0, :, 0].tolist() == [1, 1, 1, 1, 1, 0]
    assert rows.weight[1].tolist() == [[0.5, 0.5], [1, 0], *[[0, 0]] * 4]
    empty = rows_of([_aligned([(7, 0, 0)], 0)], 1, 4, [1], [2], 0)
    assert empty.index.shape == (1, 1, 1)


def test_special_tokens_around_a_text() -> None:
    assert _marks(Tokenizer()) == ([101, 102], [103])


def test_layers_of_an_encoder() -> None:
    linear = torch.nn.Linear
    layers = torch.nn.ModuleList([linear(2, 2), linear(2, 2)])
    others = torch.nn.ModuleList([linear(2, 2)])
    for parts, expected in ((([others, layers]), layers), ([others], others)):
        model = torch.nn.Sequential()
        for i, part in enumerate(parts):
            model.add_module(str(i), part)
        model.config = SimpleNamespace(num_hidden_layers=2)  # type: ignore[assignment]
        assert _layers(model) is expected
    plain = torch.nn.Sequential(linear(2, 2))
    plain.config = SimpleNamespace(num_hidden_layers=2)  # type: ignore[assignment]
    assert len(_layers(plain)) == 0


@pytest.mark.parametrize("bars", [True, False])
def test_transformers_is_quiet_only_meanwhile(bars: bool) -> None:
    state: dict[str, Any] = {"level": 30, "bars": bars}
    logging = SimpleNamespace(
        get_verbosity=lambda: state["level"],
        set_verbosity=lambda level: state.update(level=level),
        set_verbosity_error=lambda: state.update(level=40),
        is_progress_bar_enabled=lambda: state["bars"],
        disable_progress_bar=lambda: state.update(bars=False),
        enable_progress_bar=lambda: state.update(bars=True),
    )
    with suppress(KeyError), _quiet(SimpleNamespace(utils=SimpleNamespace(logging=logging))):
        assert state == {"level": 40, "bars": False}
        raise KeyError
    assert state == {"level": 30, "bars": bars}


def test_how_a_model_is_read(tmp_path: Any) -> None:
    """In float32, from the folder alone, without pickles; the pooler may be missing."""
    calls: list[Any] = []

    class AutoModel:
        @staticmethod
        def from_config(config: object, **settings: Any) -> str:
            calls.append((config, settings))
            return "random"

        @staticmethod
        def from_pretrained(folder: object, **settings: Any) -> tuple[str, dict[str, list[str]]]:
            calls.append((folder, settings))
            return "read", {"missing_keys": ["pooler.dense.weight", "layer.0.weight"]}

    transformers = SimpleNamespace(AutoModel=AutoModel)
    config: Any = object()
    assert _encoder(transformers, tmp_path, config, False) == ("random", [])
    assert _encoder(transformers, tmp_path, config, True) == ("read", ["layer.0.weight"])
    assert calls == [
        (config, {"dtype": torch.float32}),
        (
            tmp_path,
            {
                "config": config,
                "local_files_only": True,
                "use_safetensors": True,
                "dtype": torch.float32,
                "output_loading_info": True,
            },
        ),
    ]
