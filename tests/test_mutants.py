"""The tests notice faults: three of those in mutants.py here, all of them by ``python tests/mutants.py``."""

import pytest

from mutants import FAULTS, noticed_by


@pytest.mark.parametrize(
    "name",
    ["a word ends one character late", "two of the four distances swapped", "transitions transposed in Viterbi"],
)
def test_a_planted_fault_is_noticed(name: str) -> None:
    assert noticed_by(FAULTS[name])
