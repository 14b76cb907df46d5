"""``hanlattice evaluate``: the scores of a model on a corpus."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hanlattice.cli.options import ConventionOption, loaded
from hanlattice.cli.settings import Trust
from hanlattice.errors import DataError

if TYPE_CHECKING:
    from hanlattice.document import Document, Entity
    from hanlattice.evaluation.scores import Report, Score
    from hanlattice.evaluation.significance import Comparison
    from hanlattice.pipeline import NER
    from hanlattice.spans import Span

NAMED = 3  # of the entities out of reach; all of them are counted


class Confidence(NamedTuple):
    """What a model's confidences are worth: their calibration error, and scores at thresholds."""

    error: float
    at: "Mapping[float, Score]"

    def to_dict(self) -> dict[str, Any]:
        steps = [{"threshold": step, **score.to_dict()} for step, score in self.at.items()]
        return {"calibration_error": self.error} | ({"thresholds": steps} if steps else {})

    def __str__(self) -> str:
        rows = [f"expected calibration error of confidences: {self.error:.4f} (10 bins)"]
        return "\n".join([*rows, *(f"from {step:g} up: {score}" for step, score in self.at.items())])


class Format(StrEnum):
    """How scores are written."""

    table = "table"
    json = "json"
    markdown = "markdown"


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder of a model, or default for the packaged one.")],
    file: Annotated[str, typer.Argument(help="Corpus with gold entities; a folder in brat's form; - is stdin.")],
    partial: Annotated[bool, typer.Option("--partial", help="Count overlaps of one label as correct too.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--lenient", help="Leave out gold entities of ill-formed tags.")
    ] = False,
    compare: Annotated[
        str | None, typer.Option(help="Another model, compared on the same texts by a paired bootstrap.")
    ] = None,
    convention: ConventionOption = None,
    compare_convention: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Convention of the other model, where it is not that of the first."),
    ] = None,
    format: Annotated[Format, typer.Option(help="How scores are written.")] = Format.table,  # noqa: A002
    from_: Annotated[str | None, typer.Option("--from", help="Format of FILE; detected by default.")] = None,
    scheme: Annotated[str | None, typer.Option(help="Tag scheme of CoNLL columns; guessed by default.")] = None,
    rename: Annotated[
        str, typer.Option("--map", help="Gold labels under the model's names, such as NR=PER,NS=LOC.")
    ] = "",
    lexicon: Annotated[
        list[Path] | None, typer.Option(help="Words to add to the models' lexicons; may be repeated.")
    ] = None,
    threshold: Annotated[float, typer.Option(min=0.0, max=1.0, help="Leave out less certain entities.")] = 0.0,
    errors: Annotated[
        Path | None, typer.Option(help="Page of scores and errors to write (.html), of the first model.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            help="Training corpus: the page has scores by how often entities occur in it; may be repeated."
        ),
    ] = None,
    thresholds: Annotated[
        str, typer.Option(help="Scores at several thresholds too, such as 0,0.5,0.9: precision against recall.")
    ] = "",
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that are read together.")] = 32,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the scores and errors.")] = False,
) -> None:
    """Score a model on a corpus: precision, recall and F1 over all entities, and label by label.

    A prediction is correct where start, end and label are those of a gold entity. No entity is left out for
    its length, its label, or a form that the model cannot express: such ones are counted, and the first named.
    """
    from hanlattice import corpus
    from hanlattice.evaluation.reach import named, out_of_reach, with_ceiling
    from hanlattice.evaluation.scores import evaluate_spans
    from hanlattice.evaluation.significance import compare as compare_spans

    names, steps = _renaming(rename), _steps(thresholds)
    if errors is not None and errors.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{errors}: name a page, such as report.html", param_hint="--errors")
    documents = list(corpus.read(file, from_, scheme=scheme, strict=strict))
    if not documents:
        raise DataError("holds no document", file)
    texts = [document.text for document in documents]
    gold = [[span._replace(label=names.get(span.label, span.label)) for span in d.spans] for d in documents]
    models = [model] if compare is None else [model, compare]
    conventions = [convention, compare_convention or convention]
    added = lexicon or []
    ners = [_loaded(*named, gold, added, trust) for named in zip(models, conventions, strict=False)]
    lost = [list(out_of_reach(ner, texts, gold)) for ner in ners]
    answers = [_predictions(ner, documents, batch_size, quiet, lattices=errors is not None) for ner in ners]
    read = [[document.entities for document in answer] for answer in answers]
    found = [_above(threshold, entities) for entities in read]
    reports = {
        name: with_ceiling(evaluate_spans(gold, spans, partial=partial), sum(map(len, missed)))
        for name, spans, missed in zip(models, found, lost, strict=True)
    }
    placed = [replace(document, meta={"@file": file, **document.meta}) for document in documents]
    examples = {name: list(islice(named(placed, missed), NAMED)) for name, missed in zip(models, lost, strict=True)}
    confidence = {
        name: Confidence(
            _calibration(gold, entities),
            {step: evaluate_spans(gold, _above(step, entities), partial=partial).micro for step in steps},
        )
        for name, entities in zip(models, read, strict=True)
    }
    comparison = None if compare is None else compare_spans(gold, *found)
    mode = ", ".join(
        [
            f"{len(documents):,} documents",
            f"{sum(map(len, gold)):,} gold entities read {'strictly' if strict else 'leniently'}",
            "partial matches" if partial else "exact matches",
            *([f"convention {convention}"] if convention else []),
            *([f"entities of at least {threshold:g}"] if threshold else []),
        ]
    )
    if errors is not None:
        _write_errors(errors, model, mode, reports[model], placed, gold, found[0], answers[0], train or [])
    _print(reports, examples, confidence, comparison, mode, format)


def _steps(text: str) -> list[float]:
    try:
        steps = [float(step) for step in filter(None, text.split(","))]
    except ValueError:
        steps = [-1.0]
    if not all(0 <= step <= 1 for step in steps):
        raise typer.BadParameter(
            f"{text!r}: write numbers from 0 to 1, such as 0,0.5,0.9", param_hint="--thresholds"
        )
    return steps


def _above(threshold: float, documents: "Sequence[Sequence[Entity]]") -> "list[list[Span]]":
    """The spans of entities that are sure enough."""
    return [[e.span for e in entities if (e.score or 0.0) >= threshold] for entities in documents]


def _calibration(gold: "Sequence[Sequence[Span]]", documents: "Sequence[Sequence[Entity]]") -> float:
    from hanlattice.evaluation.calibration import calibration_error

    pairs = [(e, spans) for entities, spans in zip(documents, gold, strict=True) for e in entities]
    return calibration_error([e.score or 0.0 for e, _ in pairs], [e.span in spans for e, spans in pairs])


def _renaming(text: str) -> dict[str, str]:
    names = {}
    for pair in filter(None, text.split(",")):
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not (old and equals and new):
            raise typer.BadParameter(f"{pair!r} is no pair; write OLD=NEW,OLD=NEW", param_hint="--map")
        names[old] = new
    return names


def _loaded(
    model: str, convention: str | None, gold: "Sequence[Sequence[Span]]", lexicons: Sequence[Path], trust: bool
) -> "NER":
    ner = loaded(None if model == "default" else model, lexicons, convention=convention or "", trust=trust)
    strange = sorted({span.label for spans in gold for span in spans} - set(ner.labels))
    if strange:
        typer.echo(
            f"warning: {model} knows {', '.join(ner.labels)}, but not {', '.join(strange)} of the gold, which"
            " count as missed; rename gold labels with --map OLD=NEW",
            err=True,
        )
    return ner


def _predictions(
    ner: "NER", documents: "Sequence[Document]", batch_size: int, quiet: bool, *, lattices: bool
) -> "list[Document]":
    """What the model finds; ``lattices`` are kept only where they are wanted, as they take memory."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    read: Iterable[Document] = ner.pipe((d.text for d in documents), batch_size=batch_size)
    silent = quiet or not console.is_terminal
    shown = track(read, "reading", len(documents), console=console, transient=True, disable=silent)
    return [document if lattices else replace(document, read_lattice=None) for document in shown]


def _write_errors(
    path: Path,
    model: str,
    mode: str,
    report: "Report",
    documents: "Sequence[Document]",
    gold: "Sequence[Sequence[Span]]",
    found: "Sequence[Sequence[Span]]",
    answers: "Sequence[Document]",
    train: Sequence[str],
) -> None:
    """The page of scores and errors; ``found`` are the spans of the answers that count."""
    from hanlattice import corpus
    from hanlattice.explain.analysis import entity_counts, learning_curve
    from hanlattice.explain.report import Findings, page
    from hanlattice.files import atomic_write
    from hanlattice.model.folder import DEFAULT

    lattices = (document.lattice for document in answers)
    findings = Findings(
        model=f"{model} on {Path(documents[0].meta['@file']).name}",
        mode=mode,
        report=report,
        documents=documents,
        gold=gold,
        found=[[e for e in d.entities if e.span in kept] for d, kept in zip(answers, map(set, found), strict=True)],
        words=[
            () if lattice is None else list(zip(lattice.starts, lattice.ends, strict=True)) for lattice in lattices
        ],
        seen=entity_counts(document for name in train for document in corpus.read(name)) if train else None,
        course=learning_curve(DEFAULT if model == "default" else model),
    )
    with atomic_write(path) as stream:
        stream.writelines(page(findings))


def _print(
    reports: "Mapping[str, Report]",
    out_of_reach: Mapping[str, Sequence[str]],
    confidence: "Mapping[str, Confidence]",
    comparison: "Comparison | None",
    mode: str,
    format: Format,  # noqa: A002
) -> None:
    if format is Format.json:
        rows = {
            name: report.to_dict() | {"out_of_reach": out_of_reach[name]} | confidence[name].to_dict()
            for name, report in reports.items()
        }
        whole = {"mode": mode, "models": rows}
        if comparison is not None:
            whole["comparison"] = comparison.to_dict()
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    for name, report in reports.items():
        typer.echo(f"{name}: {mode}\n")
        typer.echo(report.to_markdown() if format is Format.markdown else str(report))
        typer.echo()
        for entity in out_of_reach[name]:
            typer.echo(f"{entity} is out of reach of this model")
        typer.echo(f"{confidence[name]}\n")
    if comparison is not None:
        typer.echo(str(comparison))
