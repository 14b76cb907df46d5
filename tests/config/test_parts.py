"""The settings of a part, laid over others: a part with another name drops the old ones, tables are merged."""

from typing import Any

import pytest

from hanlattice.config.parts import Part, part_setting, settings_of
from hanlattice.errors import ConfigError


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # the same part: merged
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"name": "old", "a": 2}, {"a": 2}),
        # another part: the old settings are dropped
        ({"a": 1}, {"name": "new", "b": 2}, {"b": 2}),
        # a part within: the same rules
        ({"inner": {"name": "x", "a": 1}}, {"inner": {"b": 2}}, {"inner": {"name": "x", "a": 1, "b": 2}}),
        ({"inner": {"name": "x", "a": 1}}, {"inner": {"name": "y"}}, {"inner": {"name": "y"}}),
        (
            {"parts": {"p": {"name": "x", "a": 1}, "q": {"name": "x", "a": 1}}},
            {"parts": {"p": {"name": "y"}}},
            {"parts": {"p": {"name": "y"}, "q": {"name": "x", "a": 1}}},
        ),
        # a table of anything else may have the key "name"
        ({"queries": {"name": "x", "a": 1}}, {"queries": {"name": "y"}}, {"queries": {"name": "y", "a": 1}}),
        ({"parts": {"name": "x", "a": 1}}, {"parts": {"name": "y"}}, {"parts": {"name": "y", "a": 1}}),
        # a value in place of a table, and the reverse
        ({"queries": {"a": 1}}, {"queries": 3}, {"queries": 3}),
        ({"queries": 3}, {"queries": {"a": 1}}, {"queries": {"a": 1}}),
    ],
)
def test_settings_on_top_of_others(old: dict[str, Any], new: dict[str, Any], expected: dict[str, Any]) -> None:
    found = Part("old", old).with_settings(new)
    assert found == Part(new.get("name", "old"), expected)


def test_ranges_hold_for_the_parts_of_this_package_only() -> None:
    with pytest.raises(ConfigError, match=r"encoder\.layers must be at least 1"):
        part_setting(Part("flat"), "layers", 0, int, "encoder.layers")
    assert part_setting(Part("my.module:Encoder"), "layers", 0, int, "encoder.layers") == 0
    with pytest.raises(ConfigError, match=r"encoder\.layers must be of type int"):
        part_setting(Part("my.module:Encoder"), "layers", "x", int, "encoder.layers")


def test_settings_with_defaults() -> None:
    kinds = {"flat": {"layers": (int, 2), "scale": (float, 1.0)}}
    assert settings_of("encoder", Part("flat", {"scale": 3}), kinds) == {"layers": 2, "scale": 3.0}
    with pytest.raises(ConfigError, match=r"^encoder 'flat' has no setting 'layer'; did you mean 'layers'\?$"):
        settings_of("encoder", Part("flat", {"layer": 3}), kinds)
    with pytest.raises(ConfigError, match=r"^encoder\.layers must be at least 1"):
        settings_of("encoder", Part("flat", {"layers": 0}), kinds)
