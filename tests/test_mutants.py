"""The tests notice faults: three of those in mutants.py here, all of them by ``python tests/mutants.py``."""

import pytest

from mutants import FAULTS, PACKAGE, noticed_by


@pytest.mark.parametrize(
    "name",
    ["a word ends one character late", "two of the four distances swapped", "transitions transposed in Viterbi"],
)
def test_a_planted_fault_is_noticed(name: str) -> None:
    assert noticed_by(FAULTS[name])


def test_every_fault_can_be_planted() -> None:
    places = {
        name: (PACKAGE / fault.file).read_text(encoding="utf-8").count(fault.right)
        for name, fault in FAULTS.items()
    }
    assert {name: n for name, n in places.items() if n != 1} == {}
