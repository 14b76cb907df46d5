"""Every settings file in the package can be read, describes parts that exist, and says how it is run."""

import re
from itertools import islice
from pathlib import Path

import pytest

import hanlattice
from hanlattice import corpus
from hanlattice.build import check
from hanlattice.config.files import SOURCES, load_config

FOLDER = Path(hanlattice.__file__).parent / "papers"
NAMES = sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_those_of_parts_that_exist(name: str) -> None:
    check(load_config(FOLDER / f"{name}.toml"))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_is_in_the_file(name: str) -> None:
    assert f"hanlattice train --paper {name} " in (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def test_every_variable_has_a_source() -> None:
    """An error names it if the variable is not set."""
    used = {v for name in NAMES for v in re.findall(r"\"\$(\w+)", (FOLDER / f"{name}.toml").read_text("utf-8"))}
    assert used == SOURCES.keys()


# The labels of MSRA in train, and what test calls them.
MSRA = {"NR": "PER", "NS": "LOC", "NT": "ORG"}


@pytest.mark.parametrize("name", [name for name in NAMES if name.split("/")[1].startswith("msra")])
def test_labels_of_msra_are_the_same_in_train_and_test(name: str) -> None:
    """Otherwise every entity of test would be wrong. hanlattice/msra has no test."""
    config = load_config(FOLDER / f"{name}.toml")
    assert config.data.labels == (MSRA if config.data.test else {})
    queries = config.embedding.settings.get("queries", {}) or config.decoder.settings.get("queries", {})
    assert not queries or set(queries) == set(MSRA.values())


def test_files_of_msra_have_these_labels(data: Path) -> None:
    found = [
        {e.label for d in islice(corpus.read(data / "labelled" / "msra" / part), 500) for e in d.entities}
        for part in ("train_data", "test4365.char.bmes")
    ]
    assert found == [set(MSRA.values()), set(MSRA)]
