"""``hanlattice lexicon``: compile word lists, inspect a lexicon, find its words in a text."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.cli.options import QuietOption, refuse_own_input

if TYPE_CHECKING:
    pass

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Compile, inspect and match lexicons.")


@app.command()
def build(
    lists: Annotated[
        list[Path],
        typer.Argument(
            metavar="LIST…",
            help="One word per line, optionally with label and weight after tabs; or compiled lexicons.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", show_default=False)],
    quiet: QuietOption = False,
) -> None:
    """Compile word lists into one file that opens immediately. The last entry of a word counts."""
    from hanlattice.lexicon import Lexicon
    from hanlattice.lexicon.compiled import is_compiled

    refuse_own_input(output, (file for file in lists if file.is_file() and not is_compiled(file)))
    lexicon = Lexicon.open(*lists)
    lexicon.save(output)
    if not quiet:
        typer.echo(f"{output}: {len(lexicon):,} words, {output.stat().st_size / 1e6:.1f} MB", err=True)


@app.command()
def info(file: Annotated[Path, typer.Argument(metavar="FILE", help="A word list, or a compiled lexicon.")]) -> None:
    """Count the words of a lexicon by length and by label."""
    from collections import Counter

    from hanlattice.lexicon import Lexicon

    lexicon = Lexicon.open(file)
    words = list(lexicon.entries())
    typer.echo(f"words     {len(words):,}")
    typer.echo(f"weighted  {sum(word.weight is not None for word in words):,}")
    for length, n in sorted(Counter(len(word.text) for word in words).items()):
        typer.echo(f"length {length:<2} {n:,}")
    for label, n in Counter(word.label for word in words if word.label is not None).most_common():
        typer.echo(f"label {label}  {n:,}")


@app.command()
def match(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A word list, or a compiled lexicon.")],
    text: Annotated[
        str, typer.Argument(metavar="TEXT|-", help="The text to search; - is stdin, one text per line.")
    ],
    min_length: Annotated[int, typer.Option(min=1, help="Leave out shorter words.")] = 1,
) -> None:
    """Print every word of a lexicon that occurs in a text, including overlapping words.

    Each text of standard input is printed before its words.
    """
    from hanlattice.cli.tables import Column, print_table, visible
    from hanlattice.files import STDIN, read_lines
    from hanlattice.lexicon import Lexicon

    lexicon = Lexicon.open(file)
    columns = [Column("word"), Column("label"), Column("start", True), Column("end", True)]
    for line in read_lines(STDIN) if text == "-" else [text]:
        found = lexicon.match(line, min_length)
        rows = [
            (visible(line[start:end]), lexicon.label(word) or "", str(start), str(end))
            for start, end, word in zip(*map(list, found), strict=True)
        ]
        if text == "-":
            typer.echo(f"# {visible(line)}")
        if rows:
            print_table(columns, rows, sys.stdout)
        else:
            typer.echo("(no words)")
