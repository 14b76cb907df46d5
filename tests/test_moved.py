"""Old module paths lead to modules that exist, and to the same module as the new path."""

import importlib
from importlib.util import find_spec

import pytest

from hanlattice.moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_every_old_path_leads_to_a_module(old: str) -> None:
    assert find_spec(f"hanlattice.{MOVED[old]}") is not None


@pytest.mark.parametrize("old", ["corpus.conll", "corpus.jsonl", "annotation.output"])
def test_an_old_path_gives_the_present_module(old: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"hanlattice.{old} is hanlattice.{MOVED[old]} now"):
        module = importlib.import_module(f"hanlattice.{old}")
    assert module is importlib.import_module(f"hanlattice.{MOVED[old]}")
