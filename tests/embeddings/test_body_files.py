"""Files of a pretrained body: its sizes have limits on both sides, and its vocabulary is what was written."""

from pathlib import Path

import pytest

from hanlattice.embeddings.body_files import LIMITS, Characters, Shape, save_config, stored_shape
from hanlattice.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("layers", 1, 1_000), ("width", 2, 65_536), ("heads", 1, 65_536), ("window", 4, 65_536)],
)
def test_limits_of_sizes(name: str, least: int, most: int) -> None:
    fitting = {"width": {"heads": 1}, "heads": {"width": 65_536}}.get(name, {})
    assert getattr(Shape(**{**fitting, name: least}), name) == least
    if name == "heads":
        assert Shape(heads=32_768, width=65_536).heads == 32_768  # the width is at least twice the heads
    else:
        assert getattr(Shape(**{**fitting, name: most}), name) == most
    with pytest.raises(ConfigError, match=f"^{name} must be at least {least}, not {least - 1}$"):
        Shape(**{**fitting, name: least - 1})
    with pytest.raises(ConfigError, match=f"^{name} must be at most {most:,}, not {most + 1}$"):
        Shape(**{**fitting, name: most + 1})
    assert LIMITS.keys() == {"layers", "width", "heads", "window"}


def test_the_width_is_a_multiple_of_twice_the_heads() -> None:
    assert Shape(width=24, heads=6).width == 24
    for width in (18, 23):
        with pytest.raises(ConfigError, match=rf"^width \({width}\) must be a multiple of twice the heads \(6\)$"):
            Shape(width=width, heads=6)


def test_sizes_are_written_and_read(tmp_path: Path) -> None:
    shape = Shape(layers=2, width=16, heads=4, window=32)
    save_config(tmp_path, shape, {"run": {"a": 1}})
    assert stored_shape(tmp_path) == shape


@pytest.mark.parametrize(
    "table",
    [
        "",
        "body = 3",
        "[body]\nlayers = 2\nwidth = 16\nheads = 4",
        "[body]\nlayers = 2\nwidth = 16\nheads = 4\nwindow = 32\nmore = 1",
        "[body]\nlayers = 2\nwidth = 16\nheads = 4\nwindow = 32.0",
        "[body]\nlayers = true\nwidth = 16\nheads = 4\nwindow = 32",
    ],
)
def test_other_tables_are_refused(table: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(table, "utf-8")
    with pytest.raises(ConfigError, match=r"the table 'body' must hold the numbers heads, layers, width, window$"):
        stored_shape(tmp_path)


def test_characters_are_written_and_read(tmp_path: Path) -> None:
    Characters("的一𠮷").save(tmp_path / "characters.json")
    found = Characters.load(tmp_path / "characters.json")
    assert found.names == "的一𠮷"
    assert found.text(found.ids("一𠮷的天")) == "一𠮷的\ufffd"


def test_capitals_have_the_ids_of_small_letters() -> None:
    found = Characters("aбΩé")
    ids = found.ids("aAбБΩωéÉＡ")
    assert ids.tolist() == [3, 3, 4, 4, 5, 1, 6, 6, 1]  # not of small letters those of capitals
    assert Characters("ａ").ids("Ａ").tolist() == [3]


def test_more_characters_than_ids_are_refused(tmp_path: Path) -> None:
    names = "".join(map(chr, range(0x10000, 0x10000 + 65_534)))
    Characters(names[:-1]).save(tmp_path / "characters.json")
    assert Characters.load(tmp_path / "characters.json").ids(names[-2]).tolist() == [65_535]
    Characters(names).save(tmp_path / "characters.json")
    with pytest.raises(ConfigError, match=r"\(65,534 characters, more than 65,533\)$"):
        Characters.load(tmp_path / "characters.json")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"characters": ["a"]}', '{"characters": "aba"}'])
def test_other_vocabularies_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "characters.json").write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=r"characters\.json: not the vocabulary of a pretrained body"):
        Characters.load(tmp_path / "characters.json")
    with pytest.raises(ConfigError, match=r"other\.json: missing; is this a folder of `hanlattice pretrain`\?"):
        Characters.load(tmp_path / "other.json")
