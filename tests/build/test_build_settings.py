"""From names in the settings to builders: tables, paths of this library, settings that are passed on."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, own_parts
from hanlattice.build.embeddings import characters
from hanlattice.build.encoders import transformer
from hanlattice.build.settings import choose, parameters_of, select, setting_types, trusting, with_settings_of
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.decoders.tagging import CRF
from hanlattice.encoders.positions import POSITIONS
from hanlattice.encoders.transformer import build_transformer
from hanlattice.errors import ConfigError

TABLES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "decoder": DECODERS,
    "embedding": EMBEDDINGS,
    "encoder": ENCODERS,
}


@pytest.mark.parametrize(
    ("kind", "path", "builder"),
    [
        ("decoder", "hanlattice.decoders.tagging:CRF", CRF),
        ("embedding", "hanlattice.build.embeddings:characters", characters),
        ("embedding", "hanlattice.build:characters", characters),  # of version 0.1
        ("encoder", "hanlattice.build:transformer", transformer),  # of version 0.1
    ],
)
def test_paths_of_this_library_need_no_trust(kind: str, path: str, builder: object) -> None:
    with trusting(False):
        assert choose(kind, Part(path), TABLES[kind])[0] is builder
    assert own_parts(Config().with_settings({kind: {"name": path}})) == set()


# The parts that a settings file of version 0.1 could name, and the paths that it could write in place of the names.
PARTS_OF_0_1: dict[str, dict[str, str | None]] = {
    "embedding": {
        "characters": "hanlattice.build:characters",
        "pretrained": "hanlattice.build:pretrained",
        "own": "hanlattice.build:own",
        "stack": "hanlattice.build:stack",
        "latin": "hanlattice.build:latin",
        "soft_lexicon": "hanlattice.build:soft_lexicon",
    },
    "encoder": {
        "none": None,
        "bilstm": None,
        "flat": None,
        "lattice_lstm": None,
        "lr_cnn": None,
        "cgn": None,
        "lgn": None,
        "idcnn": None,
        "word_bilstm": None,
        "transformer": "hanlattice.build:transformer",
        "tener": None,
        "augmented": "hanlattice.build:augmented",
    },
    "decoder": {
        "crf": "hanlattice.decoders.tagging:CRF",
        "softmax": "hanlattice.decoders.tagging:Softmax",
        "multilabel": "hanlattice.decoders.multilabel:MultiLabel",
        "cascade_pointer": "hanlattice.decoders.pointer:CascadePointer",
        "softmax_pointer": "hanlattice.decoders.pointer:SoftmaxPointer",
        "mrc": "hanlattice.decoders.mrc:MRC",
        "enumeration": "hanlattice.decoders.enumeration:Enumeration",
        "token_pairs": "hanlattice.decoders.table.token_pairs:TokenPairs",
        "biaffine": "hanlattice.decoders.table.biaffine:Biaffine",
        "global_pointer": "hanlattice.decoders.table.global_pointer:GlobalPointer",
        "efficient_global_pointer": "hanlattice.decoders.table.global_pointer:EfficientGlobalPointer",
        "word_pairs": "hanlattice.decoders.word_pairs:WordPairGrid",
    },
}


@pytest.mark.parametrize(
    ("kind", "name", "path"),
    [(kind, name, path) for kind, parts in PARTS_OF_0_1.items() for name, path in parts.items()],
)
def test_names_and_paths_of_0_1_build_the_same_parts(kind: str, name: str, path: str | None) -> None:
    table = TABLES[kind]
    with trusting(False):
        for each in (name, path or name):
            assert choose(kind, Part(each), table)[0] is table[name]
            assert own_parts(Config().with_settings({kind: {"name": each}})) == set()


def test_other_paths_need_trust() -> None:
    with trusting(False), pytest.raises(ConfigError, match="code from outside this library"):
        choose("encoder", Part("collections:OrderedDict"), ENCODERS)
    assert own_parts(Config().with_settings({"encoder": {"name": "mine:Encoder"}})) == {"mine:Encoder"}


def test_settings_that_are_passed_on_are_listed() -> None:
    def inner(*, width: int = 3, rate: float = 0.5) -> None: ...

    def outer(d_in: int, *, width: int = 4, **settings: object) -> None: ...

    listed = with_settings_of(outer, inner)
    assert setting_types(listed) == {"width": int, "rate": float}
    assert parameters_of(listed)["width"].default == 4  # its own comes first
    assert select(inner, {"rate": 0.1, "depth": 2}) == {"rate": 0.1}


def test_a_transformer_has_the_settings_of_every_position() -> None:
    known = parameters_of(ENCODERS["transformer"]).keys()
    assert known >= parameters_of(build_transformer).keys() | {"position"}
    for position in POSITIONS.values():
        assert known >= parameters_of(position).keys()
