"""Tables: aligned by spaces in files and pipes, drawn by rich on a terminal."""

from io import StringIO

import pytest

from hanlattice.cli.tables import Column, print_table, visible

COLUMNS = (Column("text"), Column("label"), Column("score", numbers=True))
ROWS = (("重庆", "LOC", "0.5"), ("a\u0301b", "ORGANISATION", "12.25"))


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_plain() -> None:
    stream = StringIO()
    print_table(COLUMNS, ROWS, stream)
    assert stream.getvalue().splitlines() == [
        "text  label         score",
        "重庆  LOC             0.5",
        "a\u0301b    ORGANISATION  12.25",
    ]


def test_the_last_column_has_no_spaces_after_it() -> None:
    stream = StringIO()
    print_table((Column("n", numbers=True), Column("text")), (("1", "ab"), ("22", "abcdef")), stream)
    assert stream.getvalue() == " n  text\n 1  ab\n22  abcdef\n"


def test_on_a_terminal() -> None:
    pytest.importorskip("rich")
    stream = Terminal()
    print_table(COLUMNS, ROWS, stream)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert [word in line for word, line in zip(("score", "重庆", "12.25"), lines, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b\u3000重", "a b\u3000重"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u2028\u200b", "\\u2028\\u200b"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
