"""Every setting of every part changes something in the tagger that is built: none is lost on the way."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from inspect import signature
from typing import Any, Literal, get_args, get_origin

import pytest
import torch
from torch import nn

import tiny
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, build
from hanlattice.build.settings import parameters_of, setting_types
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.encoders.positions import POSITIONS
from hanlattice.errors import ConfigError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.text.normalise import Normaliser
from hanlattice.training.examples import annotated_windows, labels_of
from hanlattice.training.vocabularies import vocabularies

PARTS: dict[str, Mapping[str, Any]] = {"embedding": EMBEDDINGS, "encoder": ENCODERS, "decoder": DECODERS}
# Parts that need files of another library, and settings that name files; other tests build them.
ELSEWHERE = {"pretrained", "queried", "stack", "linear", "ngrams"}
FILES = {"path", "vectors", "vector_words", "parts", "queries", "inner"}
OF_TORCH = {"parameters", "buffers", "modules", "training", "non_persistent_buffers_set"}
BASE: dict[str, dict[str, Any]] = {
    "own": {"path": "$OWN"},
    "augmented": {"inner": {"name": "bilstm", "d_hidden": 6}},
}
# What else has to be set for a setting to have an effect.
NEEDS: dict[Any, dict[str, Any]] = {
    "d_segmentation": {"segmentation": "softword"},
    "hidden_beyond": {"hidden": "distant"},
    "input_projection": {"d_model": 16, "heads": 2},
    ("idcnn", "share"): {"repeats": 2},
    **{
        (name, "positive_weight"): {"objective": "cross_entropy"}
        for name in ("global_pointer", "efficient_global_pointer")
    },
    **{
        ("transformer", key): {"position": position}
        for position, builder in POSITIONS.items()
        for key in parameters_of(builder)
    },
    ("transformer", "log_distance"): {"position": "deberta", "span": 4},
}
OTHER_PARTS = {"joint_mrc": {"encoder": Part("bilstm", {"d_hidden": 6})}}  # as wide as three labels need


@cache
def world() -> tuple[Vocabulary, Tables]:
    config, vectors = Config(), tiny.vectors()
    windows, _ = annotated_windows(tiny.documents()[:9], config.text, Normaliser())
    lexicon = Lexicon([(w, "LOC" if w in tiny.PLACES else None, None) for w in tiny.WORDS[::2]])
    vocabulary = vocabularies(windows, [], labels_of(windows), {}, lexicon, vectors, config).seen
    return vocabulary, Tables.from_vectors(vocabulary, vectors, normalise=True, seed=0)


def fingerprint(kind: str, name: str, settings: Mapping[str, Any]) -> list[Any]:
    """What a built tagger consists of: its modules with their attributes, and its first weights."""
    vocabulary, tables = world()
    torch.manual_seed(0)
    parts: dict[str, Any] = {kind: Part(name, settings), **OTHER_PARTS.get(name, {})}
    tagger = build(Config(**parts), deepcopy(tables), vocabulary.labels)
    found: list[Any] = [(name, p.requires_grad, shown(p)) for name, p in tagger.named_parameters()]
    found += [(name, shown(b)) for name, b in tagger.named_buffers()]
    for name, module in tagger.named_modules():
        values = {key: shown(value) for key, value in vars(module).items() if key.strip("_") not in OF_TORCH}
        found.append((name, type(module).__name__, values))
    return found


def shown(value: Any, depth: int = 2) -> Any:
    """A value, or an object by what it holds."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.double().nan_to_num(0, 1e3, -1e3).sum().item()
    if isinstance(value, list | tuple):
        return [shown(one, depth) for one in value]
    if isinstance(value, Mapping):
        return {key: shown(one, depth) for key, one in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, nn.Module) or not depth:
        return type(value).__name__
    inner = vars(value) if hasattr(value, "__dict__") else {}
    return type(value).__name__, getattr(value, "__name__", ""), {k: shown(v, depth - 1) for k, v in inner.items()}


def others(default: Any, hint: Any) -> list[Any]:
    """Other values of a setting, the nearest first."""
    if get_origin(hint) is Literal:
        return [choice for choice in get_args(hint) if choice != default]
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, int):
        return [default + 1, default * 2, default * 3, 2] if default else [9, 2]
    if isinstance(default, float):
        return [default + 0.1 if default < 0.8 else default / 2]
    if isinstance(default, tuple):
        return [(*default, 1), default[:1]]
    return []


def settings_of(kind: str, name: str) -> Iterator[tuple[str, Any, Any]]:
    builder = PARTS[kind][name]
    parameters = signature(builder).parameters
    for key, hint in setting_types(builder).items():
        default = parameters[key].default if key in parameters else None
        if key not in FILES:
            yield key, default, hint


SETTINGS = [
    pytest.param(kind, name, key, default, hint, id=f"{kind} {name}: {key}")
    for kind, parts in PARTS.items()
    for name in parts
    if name not in ELSEWHERE
    for key, default, hint in settings_of(kind, name)
]


@pytest.fixture(autouse=True)
def _body(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", str(tiny.body()))


@pytest.mark.parametrize(("kind", "name", "key", "default", "hint"), SETTINGS)
def test_a_setting_changes_the_tagger(kind: str, name: str, key: str, default: Any, hint: Any) -> None:
    base = {**BASE.get(name, {}), **NEEDS.get((name, key), NEEDS.get(key, {}))}
    before = fingerprint(kind, name, base)
    assert before == fingerprint(kind, name, base)
    values = others(default, hint)
    assert values, "a setting of a kind that this test does not know"
    refusals = []
    for value in values:
        try:
            assert fingerprint(kind, name, {**base, key: value}) != before
            return
        except ConfigError as error:
            refusals.append(str(error))
    raise AssertionError(refusals)


@pytest.mark.parametrize(
    ("kind", "name", "settings", "problem"),
    [
        (
            "encoder",
            "augmented",
            {"vectors": "x.txt"},
            "vectors are for neighbours that are words",
        ),
        (
            "encoder",
            "augmented",
            {"inner": {"name": "word_bilstm"}},
            "gives one vector per word, but",
        ),
        (
            "encoder",
            "lr_cnn",
            {"layers": 1},
            "layers must be at least 2, for layer 2",
        ),
        ("encoder", "lr_cnn", {"scales": "x"}, "scales must be one of 'sum', 'mlp', not 'x'"),
        ("encoder", "transformer", {"norm": "x"}, "norm must be one of 'post', 'pre', not 'x'"),
        ("encoder", "transformer", {"input_projection": False}, "without input_projection d_model .* must be the"),
        ("encoder", "transformer", {"clip": 3}, "the position 'sinusoidal' has no setting 'clip'"),
        ("decoder", "joint_mrc", {}, "its input needs one part for each of the 3 labels"),
        ("embedding", "own", {}, "set path to the folder of a pretrained body"),
    ],
)
def test_settings_that_do_not_fit_together(kind: str, name: str, settings: dict[str, Any], problem: str) -> None:
    vocabulary, tables = world()
    base = {} if name == "own" or "inner" in settings else BASE.get(name, {})
    with pytest.raises(ConfigError, match=problem):
        build(
            Config().with_settings({kind: {"name": name, **base, **settings}}), deepcopy(tables), vocabulary.labels
        )
