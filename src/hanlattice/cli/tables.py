"""Tables on stdout, where Chinese characters are two columns wide."""

import unicodedata
from collections.abc import Sequence
from typing import IO, NamedTuple


class Column(NamedTuple):
    """The title of a column, and whether it holds numbers, which are aligned to the right."""

    title: str
    numbers: bool = False


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], stream: IO[str]) -> None:
    """Print with colours on a terminal, and with columns aligned by spaces elsewhere."""
    if stream.isatty():
        _print_rich(columns, rows, stream)
    else:
        _print_plain(columns, rows, stream)


def visible(text: str) -> str:
    """The text in one line, with line breaks, tabs and other control characters escaped."""
    return "".join(c if c.isprintable() or c == "\u3000" else ascii(c)[1:-1] for c in text)


def _print_plain(columns: Sequence[Column], rows: Sequence[Sequence[str]], stream: IO[str]) -> None:
    lines = [[column.title for column in columns], *rows]
    widths = [max(map(_width, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = [
            " " * (width - _width(cell)) + cell if column.numbers else cell + " " * (width - _width(cell))
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        stream.write("  ".join(cells).rstrip() + "\n")


def _print_rich(columns: Sequence[Column], rows: Sequence[Sequence[str]], stream: IO[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        style = "bold" if i == 0 else "cyan" if not column.numbers else None
        table.add_column(column.title, justify="right" if column.numbers else "left", overflow="fold", style=style)
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=stream).print(table)


def _width(text: str) -> int:
    """The number of terminal columns of a text; combining marks take none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
