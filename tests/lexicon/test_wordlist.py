"""Which words fit into a line of a word list."""

import pytest

from hanlattice.lexicon import Word
from hanlattice.lexicon.wordlist import LONGEST_LINE, fits_a_line

ROOM = LONGEST_LINE - 17  # a tab and the longest weight


@pytest.mark.parametrize(("label", "of_label"), [(None, 0), ("ORG", 4)])
def test_a_line_has_room_for_label_and_weight(label: str | None, of_label: int) -> None:
    assert fits_a_line(Word("长" * (ROOM - of_label), label))
    assert not fits_a_line(Word("长" * (ROOM - of_label + 1), label))


@pytest.mark.parametrize(("text", "label"), [("a\tb", None), (" a", None), ("a", "1.5"), ("a", "O\tR")])
def test_a_field_that_would_be_read_otherwise(text: str, label: str | None) -> None:
    assert not fits_a_line(Word(text, label))
