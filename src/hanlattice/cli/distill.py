"""``hanlattice distill``: teachers annotate raw text, and a student learns from it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.config_options import DottedOptionsCommand, load_preset, refuse_twice, without_unset
from hanlattice.cli.options import (
    ConventionOption,
    MapOption,
    QuietOption,
    TestOption,
    TrainOption,
    TrustOption,
    renamed_labels,
)

app = typer.Typer(add_completion=False)


@app.command(cls=DottedOptionsCommand)
def distill(
    ctx: typer.Context,
    texts: Annotated[
        list[Path],
        typer.Argument(metavar="FILE…", help="Raw text: files with one paragraph per line, plain or compressed."),
    ],
    output: Annotated[Path, typer.Option(help="Folder of the student.", show_default=False)],
    teacher: Annotated[
        list[str],
        typer.Option(
            metavar="MODEL",
            help="Folder of a teacher, or default for the packaged model; may be repeated, then teachers vote.",
        ),
    ] = ["default"],  # noqa: B006  # typer copies it
    paper: Annotated[str, typer.Option(help="Settings file of the package for the student.")] = "linear/msra",
    config: Annotated[
        Path | None, typer.Option(help="Settings of the student in TOML, instead of --paper.")
    ] = None,
    corpora: TrainOption = None,
    dev: Annotated[str | None, typer.Option(help="Corpus on which the best epoch is chosen.")] = None,
    test: TestOption = None,
    rename: MapOption = "",
    lexicon: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Word list or compiled lexicon of the student; may be repeated."),
    ] = None,
    characters: Annotated[int, typer.Option(min=1, help="Characters of each file that are read.")] = 1_000_000,
    held_out: Annotated[
        Path | None,
        typer.Option(
            help="Python file with a class HeldOut: texts for which an instance returns True are left out."
        ),
    ] = None,
    min_score: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out sentences with an entity below this score.")
    ] = 0.5,
    max_contested: Annotated[
        int,
        typer.Option(min=0, help="Leave out sentences with more entities that some teachers predict but not all."),
    ] = 1,
    annotated: Annotated[
        Path | None,
        typer.Option(
            help="File for the teacher's sentences; by default OUTPUT.teacher.jsonl. If it exists, it is used."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the training of the student, which was stopped.")
    ] = False,
    convention: ConventionOption = None,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a small, fast model from the output of one or more accurate ones.

    The teacher annotates raw text. Of several teachers, more than half must predict an entity. The student learns
    from these sentences and from the corpora of --train. The sentences are written to a file when all are
    annotated; if the training after that stops, the same command uses this file again, and --resume continues the
    training. A linear tagger cannot be resumed. Any setting of the student can be given as a dotted option, such as
    --training.epochs 10.
    """
    source = ctx.get_parameter_source("paper")
    if config is not None and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("give --config or --paper, not both")
    from hanlattice.api import check_training, load, run_training
    from hanlattice.cli.train import print_scores, progress
    from hanlattice.config.files import load_config, overridden
    from hanlattice.training import distillation
    from hanlattice.training.corpora import refuse_repeated
    from hanlattice.training.held_out import load_held_out

    file = annotated or output.with_name(f"{output.name}.teacher.jsonl")
    base = load_preset(paper, corpora) if config is None else load_config(config)
    base = overridden(base, ctx.meta["settings"])
    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test, "labels": renamed_labels(rename) or None},
        "lexicon": {"files": lexicon},
    }
    refuse_twice(ctx.meta["settings"], named)
    refuse_repeated("--teacher", teacher)
    settings = distillation.with_annotated(base.with_settings(without_unset(named)), file)
    check_training(settings, output, resume=resume)
    if not (quiet or config or corpora or "data.train" in ctx.meta["settings"]):
        files = ", ".join(settings.data.train)
        typer.echo(f"note: the student also learns from {files} of {paper}; name others with --train", err=True)
    try:
        if file.exists():
            typer.echo(f"note: the sentences in {file} are used as they are", err=True)
        else:
            is_held_out = load_held_out(held_out) if held_out else None
            corpora_of_student = distillation.corpora_of_student(settings)
            is_left_out = distillation.held_out_of(corpora_of_student, is_held_out)
            unused = distillation.Unused()
            found = distillation.annotate(
                [load(name, convention=convention or "", trust=trust) for name in teacher],
                distillation.raw_sentences(texts, characters, is_left_out, unused),
                file,
                min_score=min_score,
                max_contested=max_contested,
                is_learnt=distillation.labels_of_student(settings, corpora_of_student),
            )
            if not quiet:
                typer.echo(
                    f"{found.n_sentences:,} sentences with {found.n_characters:,} characters and"
                    f" {found.n_entities:,} entities; left out: {unused.n_sentences:,} shorter or longer than"
                    f" {distillation.USUAL}, {found.n_uncertain:,} with an uncertain entity,"
                    f" {found.n_contested:,} on which the teachers disagree",
                    err=True,
                )
            for path in unused.files:
                typer.echo(f"note: {path} has no sentence of {distillation.USUAL}", err=True)
        with progress(settings, quiet) as watcher:
            run = run_training(settings, output, resume=resume, watcher=watcher)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_continue(file, output)) from None
    print_scores(run, settings, quiet)


def _how_to_continue(file: Path, output: Path) -> str:
    from hanlattice.model.digests import CHECKPOINT

    if not file.exists():
        return "stopped before all sentences were annotated, so nothing was written; start again"
    if (output / CHECKPOINT).exists():
        return "stopped; to resume, add --resume to the same command"
    return f"stopped; the same command uses the sentences in {file} again"
