"""Old module paths lead to modules that exist, and to the same module as the new path."""

import importlib
import subprocess
import sys
from functools import cache
from importlib.util import find_spec

import pytest

from hanlattice.moved import MOVED, SPLIT


@pytest.mark.parametrize("old", MOVED)
def test_every_old_path_leads_to_a_module(old: str) -> None:
    assert find_spec(f"hanlattice.{MOVED[old]}") is not None


@pytest.mark.parametrize("old", ["corpus.conll", "corpus.jsonl", "annotation.output"])
def test_an_old_path_gives_the_present_module(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"hanlattice.{old} is hanlattice.{MOVED[old]} now"):
        module = importlib.import_module(f"hanlattice.{old}")
    assert module is importlib.import_module(f"hanlattice.{MOVED[old]}")


# In a process of its own: an import also sets an attribute of the package, such as ``hanlattice.corpus.conll``.
ALL = """
import importlib, warnings
warnings.simplefilter("ignore")
from hanlattice.moved import MOVED, SPLIT
for old, new in MOVED.items():
    module = importlib.import_module(f"hanlattice.{old}")
    if module is not importlib.import_module(f"hanlattice.{new}"):
        print(f"{old} is a copy of {new}")
    if module.__spec__ is None or module.__spec__.name != f"hanlattice.{new}":
        print(f"{old} has the spec {module.__spec__}")
for old, parts in SPLIT.items():
    module = importlib.import_module(f"hanlattice.{old}")
    for part in parts:
        for name in vars(importlib.import_module(f"hanlattice.{part}")):
            if not name.startswith("__") and not hasattr(module, name):
                print(f"{old} lacks {name} of {part}")
"""


@cache
def problems() -> list[tuple[str, str]]:
    """Old paths, and what is wrong with the modules that they lead to."""
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(line.partition(" ")[0], line) for line in done.stdout.splitlines()]


def test_no_old_path_gives_a_copy() -> None:
    """Also the modules of old packages: a copy would have classes of its own."""
    assert [line for old, line in problems() if old in MOVED] == []


@pytest.mark.parametrize("old", SPLIT)
def test_a_split_module_has_the_names_of_all_its_parts(old: str) -> None:
    assert [line for name, line in problems() if name == old] == []


def test_a_split_module_says_which_name_it_lacks() -> None:
    with pytest.warns(
        DeprecationWarning, match="is hanlattice.training.corpora and hanlattice.training.examples and"
    ):
        module = importlib.import_module("hanlattice.training.data")
    with pytest.raises(AttributeError, match=r"'hanlattice.training.data' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    ("package", "names"),
    [
        (
            "config",
            ("Config", "DataConfig", "Part", "TextConfig", "load_config", "located", "read_toml", "to_dict"),
        ),
        ("evaluation", ("Mistake", "Recall", "Report", "calibration_error", "compare", "counts", "errors")),
        ("model", ("load_model", "load_weights", "save_model", "save_weights")),
        ("text", ("Normaliser", "Window", "sentences", "windows")),
    ],
)
def test_modules_that_became_packages_keep_their_names(package: str, names: tuple[str, ...]) -> None:
    module = importlib.import_module(f"hanlattice.{package}")
    assert all(callable(getattr(module, name)) for name in names)
    with pytest.raises(AttributeError):
        module.nothing  # noqa: B018
