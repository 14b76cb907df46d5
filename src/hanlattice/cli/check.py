"""``hanlattice check``: statistics and all defects of corpora."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli.options import EndsOption, SchemeOption, UnitsOption

if TYPE_CHECKING:
    from hanlattice.corpus.checking import Report, Statistics
    from hanlattice.corpus.defects import Defect


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Corpora; brat folders; - is stdin.")],
    format: Annotated[  # noqa: A002  # the option's name
        str | None, typer.Option("--from", "--format", help="Format of the files; detected by default.")
    ] = None,
    scheme: SchemeOption = None,
    ends: EndsOption = None,
    units: UnitsOption = None,
    limit: Annotated[int, typer.Option(min=0, help="Number of defects printed per kind; all are counted.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print statistics of corpora, and every defect with its file, line and suggested fix.

    An implausible file, such as one without entities or with all ends one too small, gets a warning that names the
    option to read it otherwise. Name all splits of a corpus to find texts that occur in more than one. The exit
    status is 1 if something could not be read, and 0 if there are only warnings.
    """
    from hanlattice.corpus.checking import check as check_corpora

    report = check_corpora(files, format=format, scheme=scheme, ends=ends, units=units)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        _print(report, limit)
    if not report.usable:
        raise typer.Exit(1)


def _print(report: "Report", limit: int) -> None:
    _table("files", _COLUMNS, [_row(statistics) for statistics in report.files])
    labels = sorted(set().union(*(statistics.labels for statistics in report.files)))
    rows = [[label or "(none)", *(statistics.labels[label] for statistics in report.files)] for label in labels]
    _table("entities", ["label", *(statistics.file for statistics in report.files)], rows)
    lossy = {defect.kind for defect in report.defects if defect.lossy}
    kinds = [[kind, "error" if kind in lossy else "warning", n] for kind, n in report.kinds.most_common()]
    _table("defects", ["kind", "level", "number"], kinds)
    for defect in _first_of_each_kind(report.defects, limit):
        typer.echo(
            f"{defect.file}{'' if defect.line is None else f':{defect.line}'}: {defect.kind}: "
            f"{defect.message}; {defect.fix}"
        )
    if not report.defects:
        typer.echo("no defects")


_COLUMNS = [
    "file", "format", "detected by", "documents", "characters", "longest text", "entities", "mean length",
    "longest entity", "overlapping", "discontinuous", "Latin", "digits", "spaces",
]  # fmt: skip


def _row(found: "Statistics") -> list[Any]:
    mean = sum(length * n for length, n in found.lengths.items()) / max(found.entities, 1)
    longest = f"{len(found.longest_entity)} {found.longest_entity[:20]!r}" if found.longest_entity else "-"
    return [
        found.file, found.format, found.reason or "-", found.documents, found.characters, found.longest_text,
        found.entities, f"{mean:.1f}", longest, found.overlapping, found.discontinuous, found.latin, found.digits,
        found.spaces,
    ]  # fmt: skip


def _first_of_each_kind(defects: "Iterable[Defect]", limit: int) -> "Iterable[Defect]":
    printed: Counter[str] = Counter()
    for defect in defects:
        printed[defect.kind] += 1
        if printed[defect.kind] <= limit:
            yield defect


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table on a terminal, tab-separated lines elsewhere; transposed if it has more than 8 columns."""
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    if len(columns) > 8:
        columns, rows = ["", *(row[0] for row in rows)], list(zip(columns, *rows, strict=True))[1:]
    console = Console()
    if not console.is_terminal:
        for row in [columns, *rows]:
            typer.echo("\t".join(map(str, row)))
        typer.echo()
        return
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else str(value) for value in row))
    console.print(table)
