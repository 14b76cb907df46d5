"""Every settings file in the package can be read, describes parts that exist, and says how it is run."""

from pathlib import Path

import pytest

import hanlattice
from hanlattice.build import check
from hanlattice.config.files import load_config

FOLDER = Path(hanlattice.__file__).parent / "papers"
NAMES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_those_of_parts_that_exist(name: str) -> None:
    check(load_config(FOLDER / f"{name}.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_is_in_the_file(name: str) -> None:
    assert f"hanlattice train --paper {name} " in (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
