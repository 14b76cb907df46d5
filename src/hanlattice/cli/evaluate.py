"""``hanlattice evaluate``: the scores of a model on an annotated corpus."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial as partial_function
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli.options import (
    PACKAGED,
    BatchSizeOption,
    BlockOption,
    ConventionOption,
    DeviceOption,
    Engine,
    EngineOption,
    ForceOption,
    Int8Option,
    LexiconOption,
    MapOption,
    ModelOption,
    PatternsOption,
    QuietOption,
    SchemeOption,
    ThreadsOption,
    ThresholdOption,
    TodayOption,
    TrustOption,
    check_writable,
    chosen_patterns,
    following,
    load_model,
    model_path,
    opened_lexicons,
    renamed_labels,
    with_model,
    wrote,
)
from hanlattice.errors import ConfigError, DataError

if TYPE_CHECKING:
    from hanlattice.document import Document
    from hanlattice.evaluation.evaluate import Evaluation
    from hanlattice.evaluation.scores import Report, Score
    from hanlattice.evaluation.significance import Comparison
    from hanlattice.patterns import Patterns
    from hanlattice.pipeline import NER
    from hanlattice.spans import Span

NAMED = 3  # how many unreachable entities are printed; all of them are counted


class Format(StrEnum):
    """How scores are written."""

    table = "table"
    json = "json"
    markdown = "markdown"


@dataclass(frozen=True)
class Result:
    """What is printed for one model.

    Attributes:
        unreachable: the first entities that the model cannot predict, one line each, and why not.
        at: the score at each threshold of ``--thresholds``.
    """

    report: "Report"
    unreachable: Sequence[tuple[str, str]]
    calibration_error: float
    at: "Mapping[float, Score]"

    def to_dict(self) -> dict[str, Any]:
        row = self.report.to_dict()
        row |= {"unreachable": [entity for entity, _ in self.unreachable]}
        row |= {"calibration_error": self.calibration_error}
        steps = [{"threshold": step, **score.to_dict()} for step, score in self.at.items()]
        return row | ({"thresholds": steps} if steps else {})

    def lines(self, *, markdown: bool) -> list[str]:
        return [
            self.report.to_markdown() if markdown else str(self.report),
            "",
            *(f"{entity} cannot be predicted{reason}" for entity, reason in self.unreachable),
            f"expected calibration error of confidences: {self.calibration_error:.4f} (10 bins)",
            *(f"from {step:g} up: {score}" for step, score in self.at.items()),
            "",
        ]


def evaluate(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Corpus with gold entities; a brat folder; - is stdin. (Older form: MODEL FILE.)"
        ),
    ],
    model: ModelOption = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Count overlaps with the right label as correct.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict/--lenient", help="Leave out gold entities with ill-formed tags.")
    ] = False,
    compare: Annotated[
        str | None, typer.Option(help="Another model, compared on the same texts by a paired bootstrap.")
    ] = None,
    convention: ConventionOption = None,
    compare_convention: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Convention of the other model; that of the first by default."),
    ] = None,
    format: Annotated[Format, typer.Option(help="How scores are written.")] = Format.table,  # noqa: A002
    from_: Annotated[str | None, typer.Option("--from", help="Format of FILE; detected by default.")] = None,
    scheme: SchemeOption = None,
    rename: MapOption = "",
    lexicon: LexiconOption = None,
    threshold: ThresholdOption = 0.0,
    patterns: PatternsOption = None,
    today: TodayOption = None,
    force: ForceOption = None,
    block: BlockOption = None,
    engine: EngineOption = Engine.auto,
    int8: Int8Option = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    errors: Annotated[
        Path | None, typer.Option(help="Page (.html) to write, with scores and errors of the first model.")
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Training corpus: the page shows scores by frequency in it; may be repeated."
        ),
    ] = None,
    thresholds: Annotated[str, typer.Option(help="Also print scores at these thresholds, such as 0,0.5,0.9.")] = "",
    batch_size: BatchSizeOption = 32,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Score a model on a corpus: precision, recall and F1 over all entities, and for each label.

    A prediction is correct if its start, end and label equal those of a gold entity. No gold entity is left out
    because of its length, its label or a form that the model cannot predict: such entities are counted, and the
    first ones are printed.
    """
    model, (file,) = with_model(arguments, model, "FILE")
    model = model or PACKAGED
    names, steps, regular = renamed_labels(rename), _steps(thresholds), chosen_patterns(patterns, today)
    if compare is None and compare_convention is not None:
        raise ConfigError("--compare-convention needs --compare MODEL")
    if compare is not None and partial:
        raise ConfigError("--compare tests exact matches; leave out --partial")
    if errors is None and train:
        raise ConfigError("--train needs --errors PAGE")
    if steps and regular:
        raise ConfigError("--thresholds does not go with --patterns; give one --threshold at a time")
    if errors is not None and errors.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter(f"{errors}: name a page, such as report.html", param_hint="--errors")
    if errors is not None:
        check_writable(errors)
    documents = _documents(file, from_, scheme, strict, names)
    gold, seen = [document.spans for document in documents], _seen(train or [])
    models = [(model, convention)] if compare is None else [(model, convention), (compare, compare_convention)]
    load = partial_function(
        load_model,
        lexicons=opened_lexicons(lexicon or []),
        engine=engine,
        int8=int8,
        device=device,
        threads=threads,
        trust=trust,
    )
    ners = [_loaded(load, name, other or convention, gold, regular) for name, other in models]
    evaluations = []
    for ner in ners:
        # A threshold leaves room for patterns, so with patterns it applies before they are added, as in predict.
        with following(ner, force, block, threshold if regular else 0.0, regular):
            evaluations.append(
                _evaluation(ner, documents, gold, batch_size, keep_lattices=errors is not None, quiet=quiet)
            )
    titles = _titles([name for name, _ in models], ners)
    results = {
        title: _result(evaluation, ner.labels, documents, threshold, steps, partial)
        for title, ner, evaluation in zip(titles, ners, evaluations, strict=True)
    }
    mode = _mode(
        gold, strict=strict, partial=partial, convention=convention, threshold=threshold, patterns=patterns
    )
    if errors is not None:
        report = results[titles[0]].report
        _write_page(
            errors,
            documents,
            evaluations[0],
            report,
            model=model,
            mode=mode,
            threshold=threshold,
            seen=seen,
        )
        wrote(errors, quiet=quiet)
    _print(results, _comparison(gold, evaluations, threshold), mode, format)


def _documents(
    file: str,
    format: str | None,  # noqa: A002
    scheme: str | None,
    strict: bool,
    names: Mapping[str, str],
) -> "list[Document]":
    """The documents of a corpus with renamed labels, each with the file it came from in ``meta``."""
    from hanlattice import corpus
    from hanlattice.corpus.labels import relabelled

    documents = list(relabelled(corpus.read(file, format, scheme=scheme, strict=strict), names))
    if not documents:
        raise DataError("holds no document", file)
    return [replace(document, meta={"@file": file, **document.meta}) for document in documents]


def _seen(train: Sequence[str]) -> Mapping[str, int] | None:
    """How often each text is an entity of the training corpora; None without them."""
    if not train:
        return None
    from hanlattice import corpus
    from hanlattice.explain.analysis import entity_counts

    return entity_counts(document for name in train for document in corpus.read(name))


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


def _loaded(
    load: "Callable[..., NER]",
    model: str,
    convention: str | None,
    gold: "Sequence[Sequence[Span]]",
    patterns: "Patterns | None",
) -> "NER":
    """A model; warns about gold labels that neither the model nor the patterns have."""
    ner = load(model, convention=convention)
    known = {*ner.labels, *(() if patterns is None else patterns.labels)}
    unknown = sorted({span.label for spans in gold for span in spans} - known)
    if unknown:
        typer.echo(
            f"warning: {model} has the labels {', '.join(ner.labels)}, but the gold also has {', '.join(unknown)},"
            " which count as missed; rename gold labels with --map OLD=NEW",
            err=True,
        )
    return ner


def _titles(models: Sequence[str], ners: "Sequence[NER]") -> list[str]:
    """A different title for each model: its name, where needed with its convention or else with a number."""
    titles = list(models)
    if len(set(titles)) < len(titles):
        titles = [f"{model} ({ner.active_convention})" for model, ner in zip(models, ners, strict=True)]
    if len(set(titles)) < len(titles):
        titles = [f"{model} ({number})" for number, model in enumerate(models, 1)]
    return titles


def _evaluation(
    ner: "NER",
    documents: "Sequence[Document]",
    gold: "Sequence[Sequence[Span]]",
    batch_size: int,
    *,
    keep_lattices: bool,
    quiet: bool,
) -> "Evaluation":
    """The predictions of a model, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import track

    from hanlattice.evaluation.evaluate import Evaluation

    console = Console(stderr=True)
    n, silent = len(documents), quiet or not console.is_terminal
    return Evaluation.run(
        ner,
        documents,
        gold=gold,
        keep_lattices=keep_lattices,
        batch_size=batch_size,
        progress=lambda found: track(found, "reading", n, console=console, transient=True, disable=silent),
    )


def _result(
    evaluation: "Evaluation",
    labels: Collection[str],
    documents: "Sequence[Document]",
    threshold: float,
    steps: Sequence[float],
    partial: bool,
) -> Result:
    from hanlattice.evaluation.recall_bound import described

    reasons = (
        " together with the other gold entities" if known else f": the model has no label {span.label}"
        for spans in evaluation.unreachable
        for span in spans
        for known in (span.label in labels,)
    )
    return Result(
        evaluation.report(threshold=threshold, partial=partial),
        list(islice(zip(described(documents, evaluation.unreachable), reasons, strict=True), NAMED)),
        evaluation.confidences(threshold).error,
        {step: evaluation.report(threshold=step, partial=partial).micro for step in steps},
    )


def _mode(
    gold: "Sequence[Sequence[Span]]",
    *,
    strict: bool,
    partial: bool,
    convention: str | None,
    threshold: float,
    patterns: str | None,
) -> str:
    """How the scores were computed, in one line."""
    parts = [
        f"{len(gold):,} documents",
        f"{sum(map(len, gold)):,} gold entities read {'strictly' if strict else 'leniently'}",
        "partial matches" if partial else "exact matches",
        *([f"convention {convention}"] if convention else []),
        *([f"patterns {patterns}"] if patterns else []),
        *([f"entities of at least {threshold:g}"] if threshold else []),
    ]
    return ", ".join(parts)


def _comparison(
    gold: "Sequence[Sequence[Span]]", evaluations: "Sequence[Evaluation]", threshold: float
) -> "Comparison | None":
    from hanlattice.evaluation.significance import compare

    if len(evaluations) < 2:
        return None
    a, b = (evaluation.spans(threshold) for evaluation in evaluations)
    return compare(gold, a, b)


def _write_page(
    path: Path,
    documents: "Sequence[Document]",
    evaluation: "Evaluation",
    report: "Report",
    *,
    model: str,
    mode: str,
    threshold: float,
    seen: Mapping[str, int] | None,
) -> None:
    """Write the page of scores and errors of one model."""
    from hanlattice.atomic import atomic_write
    from hanlattice.explain.analysis import learning_curve
    from hanlattice.explain.report import Findings, page
    from hanlattice.model.folder import DEFAULT

    lattices = (document.lattice for document in evaluation.predicted)
    findings = Findings(
        model=f"{model} on {Path(documents[0].meta['@file']).name}",
        mode=mode,
        report=report,
        documents=documents,
        gold=[list(spans) for spans in evaluation.gold],
        predicted=evaluation.entities(threshold),
        words=[
            () if lattice is None else list(zip(lattice.starts, lattice.ends, strict=True)) for lattice in lattices
        ],
        seen=seen,
        epochs=learning_curve(model_path(model) or DEFAULT),
    )
    with atomic_write(path) as stream:
        stream.writelines(page(findings))


def _print(results: Mapping[str, Result], comparison: "Comparison | None", mode: str, format: Format) -> None:  # noqa: A002
    if format is Format.json:
        whole: dict[str, Any] = {"mode": mode, "models": {name: r.to_dict() for name, r in results.items()}}
        if comparison is not None:
            whole["comparison"] = comparison.to_dict()
        typer.echo(json.dumps(whole, ensure_ascii=False, indent=2))
        return
    for name, result in results.items():
        typer.echo(f"{name}: {mode}\n")
        typer.echo("\n".join(result.lines(markdown=format is Format.markdown)))
    if comparison is not None:
        typer.echo(str(comparison))
