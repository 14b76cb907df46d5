"""From names in the settings to builders: tables, paths of this library, settings that are passed on."""

import pytest

from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, own_parts
from hanlattice.build.embeddings import characters
from hanlattice.build.encoders import transformer
from hanlattice.build.settings import choose, parameters_of, select, settings_of, trusting, with_settings_of
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.decoders.tagging import CRF
from hanlattice.encoders.positions import POSITIONS
from hanlattice.encoders.transformer import build_transformer
from hanlattice.errors import ConfigError


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
    tables = {"decoder": DECODERS, "embedding": EMBEDDINGS, "encoder": ENCODERS}
    with trusting(False):
        assert choose(kind, Part(path), tables[kind])[0] is builder
    assert own_parts(Config().with_settings({kind: {"name": path}})) == set()


def test_other_paths_need_trust() -> None:
    with trusting(False), pytest.raises(ConfigError, match="code from outside this library"):
        choose("encoder", Part("collections:OrderedDict"), ENCODERS)
    assert own_parts(Config().with_settings({"encoder": {"name": "mine:Encoder"}})) == {"mine:Encoder"}


def test_settings_that_are_passed_on_are_listed() -> None:
    def inner(*, width: int = 3, rate: float = 0.5) -> None: ...

    def outer(d_in: int, *, width: int = 4, **settings: object) -> None: ...

    listed = with_settings_of(outer, inner)
    assert settings_of(listed) == {"width": int, "rate": float}
    assert parameters_of(listed)["width"].default == 4  # its own comes first
    assert select(inner, {"rate": 0.1, "depth": 2}) == {"rate": 0.1}


def test_a_transformer_has_the_settings_of_every_position() -> None:
    known = parameters_of(ENCODERS["transformer"]).keys()
    assert known >= parameters_of(build_transformer).keys() | {"position"}
    for position in POSITIONS.values():
        assert known >= parameters_of(position).keys()
