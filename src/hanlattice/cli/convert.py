"""``hanlattice convert``: convert a corpus to another format, without losing labels or text silently."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.cli.options import EndsOption, SchemeOption, UnitsOption, refuse_own_input, wrote
from hanlattice.errors import HanlatticeError

if TYPE_CHECKING:
    from hanlattice.corpus import Carries, Defect
    from hanlattice.document import Document

_BY_SUFFIX = {
    ".jsonl": "jsonl", ".bmes": "bmes", ".bioes": "bioes", ".bieos": "bioes", ".bio": "bio", ".iob2": "bio",
    ".bilou": "bilou", ".conll": "bmes", ".cmeee": "cmeee",
}  # fmt: skip

_DEFECT = "× "
"""Prefix of the kind of a defect in `_Losses.grave`; the other names there are those of features that are lost."""


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="File, brat folder, or - for stdin.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File, new folder (brat), or - for stdout.")],
    from_: Annotated[str | None, typer.Option("--from", help="Format of IN; detected by default.")] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="jsonl, bmes, bioes, bio, bilou, brat, doccano, label-studio, cluener, cmeee or spacy; "
            "by default from the ending of OUT."
        ),
    ] = None,
    scheme: SchemeOption = None,
    ends: EndsOption = None,
    units: UnitsOption = None,
    strict: Annotated[bool, typer.Option(help="Leave out entities with ill-formed tags.")] = False,
    drop: Annotated[
        bool, typer.Option(help="Leave out labels and text that are defective or that OUT cannot hold.")
    ] = False,
) -> None:
    """Convert a corpus.

    Labels and text that OUT cannot hold are an error, unless --drop leaves them out; their number is printed. Ids,
    scores and other columns that OUT cannot hold are left out with a note.
    """
    from hanlattice import corpus

    format = to or _format_of(target)  # noqa: A001
    refuse_own_input(Path(target), [source])
    losses = _Losses(source, drop)
    documents = corpus.read(
        source, from_, scheme=scheme, strict=strict, ends=ends, units=units, on_defect=losses.take
    )
    corpus.write(losses.without(documents, corpus.carries(format), format), target, format)
    if target != "-":
        wrote(target)
    for what, n in losses.grave.items():
        typer.echo(f"dropped: {n} {what}, first at {losses.first[what]}", err=True)
    for what, n in losses.minor.items():
        typer.echo(f"note: {format} holds no {what}: {n} left out, first at {losses.first[what]}", err=True)
    for kind, n in losses.warnings.items():
        typer.echo(f"warning: {n} × {kind}; see hanlattice check {source}", err=True)


def _format_of(target: str) -> str:
    if Path(target).is_dir():
        return "brat"
    try:
        return _BY_SUFFIX[Path(target).suffix.lower()]
    except KeyError:
        raise HanlatticeError(
            f"the ending of {target!r} names no format; name one with --to, such as --to jsonl"
        ) from None


class _Losses:
    """Counts what a conversion loses.

    Attributes:
        grave: number of losses of labels and text, by name.
        minor: number of losses of ids, scores and other columns, by name.
        warnings: number of defects of the source that lose nothing, by kind.
        first: place of the first loss of each name.
    """

    def __init__(self, source: str, drop: bool):
        self.source, self.drop = source, drop
        self.grave: Counter[str] = Counter()
        self.minor: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def take(self, defect: "Defect") -> None:
        """Count a defect of the source.

        Raises:
            HanlatticeError: it loses labels or text, and nothing may be dropped.
        """
        from hanlattice.corpus.defects import report

        if not defect.lossy:
            self.warnings[defect.kind] += 1
            return
        if not self.drop:
            report(defect, None)  # raises
        where = defect.file if defect.line is None else f"{defect.file}:{defect.line}"
        self._count(Counter({f"{_DEFECT}{defect.kind}": 1}), where)

    def without(
        self, documents: "Iterable[Document]", carries: "Carries", format_name: str
    ) -> "Iterator[Document]":
        """The documents without the parts that the format cannot hold.

        Raises:
            HanlatticeError: after the last document, if labels or text were lost and nothing may be dropped.
        """
        from hanlattice.corpus.losses import carried

        for document in documents:
            kept, lost = carried(document, carries)
            if lost:
                file, line = document.meta.get("@file", self.source), document.meta.get("@line")
                self._count(lost, file if line is None else f"{file}:{line}")
            if kept is not None:
                yield kept
        if self.grave and not self.drop:
            losses = ", ".join(f"{n} {what} (first at {self.first[what]})" for what, n in self.grave.items())
            raise HanlatticeError(
                f"{format_name} cannot carry {losses}; --drop leaves them out, or choose --to jsonl"
            )

    def _count(self, lost: Counter[str], place: str) -> None:
        from hanlattice.corpus.losses import is_grave

        for what, n in lost.items():
            self.first.setdefault(what, place)
            if is_grave(what) or what.startswith(_DEFECT):
                self.grave[what] += n
            else:
                self.minor[what] += n
