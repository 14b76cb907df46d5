"""``hanlattice train``: train a model on a corpus, and write it to a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.config_options import DottedOptionsCommand, load_preset, refuse_twice, without_unset
from hanlattice.cli.options import MapOption, QuietOption, TestOption, TrainOption, TrustOption, renamed_labels
from hanlattice.errors import WriteError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hanlattice.config.settings import Config
    from hanlattice.training import Run, Watcher


app = typer.Typer(add_completion=False)

LINEAR_STOPPED = "stopped; a linear tagger cannot be resumed, and nothing was written: start again"


@app.command(cls=DottedOptionsCommand)
def train(
    ctx: typer.Context,
    config: Annotated[
        Path | None, typer.Argument(metavar="[SETTINGS]", help="Settings in TOML.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the model.", show_default=False)] = ...,  # type: ignore[assignment]
    paper: Annotated[str | None, typer.Option(help="Settings file of the package, such as flat/weibo.")] = None,
    corpora: TrainOption = None,
    dev: Annotated[
        str | None,
        typer.Option(help="Corpus on which the best epoch is chosen; by default a tenth of the training corpus."),
    ] = None,
    test: TestOption = None,
    rename: MapOption = "",
    lexicon: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Word list or compiled lexicon; may be repeated. By default the words of the vectors.",
        ),
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(help="File of vectors; by default the vectors of the package.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="Fine-tune this model (a folder, or default): take its settings, lexicon and initial weights."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a run that was stopped.")] = False,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Train a model on a corpus.

    Any setting can be given as a dotted option, such as --encoder.layers 2 or --training.epochs 20. If a run was
    stopped, even by a crash, --resume continues it to the same result. Under torchrun, several processes train one
    model. A linear tagger (--paper linear/...) is trained without torch and cannot be resumed.
    """
    from hanlattice.api import need_torch, run_training
    from hanlattice.config.files import load_config, overridden
    from hanlattice.config.linear import linear_settings

    if config is not None and paper is not None:
        raise typer.BadParameter("give a settings file or --paper, not both")
    data = {"train": corpora, "dev": dev, "test": test, "labels": renamed_labels(rename) or None}
    refuse_twice(
        ctx.meta["settings"],
        {
            "data": data,
            "lexicon": {"files": lexicon},
            "vectors": {"path": vectors},
            "training": {"seed": seed, "start": start},
        },
    )
    file = config or (_settings_of_run(output) if resume and paper is None else None)
    if start is not None and file is None and paper is None:
        need_torch("fine-tuning")
        from hanlattice.training.fine_tuning import settings_for_fine_tuning

        base = overridden(settings_for_fine_tuning(start, trust=trust), ctx.meta["settings"])
        lexicon = [*base.lexicon.files, *(lexicon or [])]
    else:
        base = load_config(file) if paper is None else load_preset(paper, corpora)
        base = overridden(base, ctx.meta["settings"])
        if resume and start is not None:  # the run has the lexicon of the start model too
            lexicon = None if lexicon == [*base.lexicon.files[-len(lexicon or ()) :]] else lexicon
    named: dict[str, dict[str, Any]] = {
        "data": data,
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
        "training": {"seed": seed, "start": start},
    }
    settings = base.with_settings(without_unset(named))
    try:
        with progress(settings, quiet) as watcher:
            run = run_training(settings, output, resume=resume, watcher=watcher)
    except KeyboardInterrupt:
        is_linear = linear_settings(settings) is not None
        raise Interrupted(LINEAR_STOPPED if is_linear else _how_to_resume(output)) from None
    except WriteError as error:
        if not (remedy := _remedy(output)):
            raise
        raise WriteError(f"{error}; {remedy}") from error
    if linear_settings(settings) is not None:
        print_scores(run, settings, quiet)
        return
    from hanlattice.training.distributed import exit_process, is_first_process

    if is_first_process():
        print_scores(run, settings, quiet)
    exit_process()


def _settings_of_run(output: Path) -> Path | None:
    """The settings file of the run in this folder, if there is one."""
    from hanlattice.model.folder import CONFIG

    return output / CONFIG if (output / CONFIG).is_file() else None


def progress(config: "Config", quiet: bool) -> "AbstractContextManager[Watcher]":
    from hanlattice.cli.progress import TrainingBar, TrainingLines, watched
    from hanlattice.training import Silent

    epochs = config.training.epochs
    return watched(quiet, Silent, lambda console: TrainingBar(epochs, console), lambda: TrainingLines(epochs))


def _how_to_resume(output: Path) -> str:
    from hanlattice.model.digests import CHECKPOINT

    if not (output / CHECKPOINT).exists():
        return "stopped before the end of the first epoch, so there is nothing to resume; start again"
    return f"stopped; to resume: hanlattice train --output {output} --resume"


def _remedy(output: Path) -> str:
    """How to continue a run whose files cannot be written, such as on a full disk; empty without a checkpoint."""
    from hanlattice.model.digests import CHECKPOINT

    if not (output / CHECKPOINT).exists():
        return ""
    return f"free space, or permit writing, and continue with: hanlattice train --output {output} --resume"


def print_scores(run: "Run", settings: "Config", quiet: bool) -> None:
    for name, report in (("dev", run.dev), ("test", run.test)):
        if report is not None:
            typer.echo(f"{name} (best epoch {run.progress.best_epoch} by {run.criterion})\n{report}\n")
    if not quiet:
        trust = _trust_option(settings)
        typer.echo(f"to use the model: hanlattice predict --model {run.folder}{trust} TEXT", err=True)


def _trust_option(settings: "Config") -> str:
    """The option without which a model with parts of the user's own is not loaded."""
    from hanlattice.config.linear import linear_settings

    if linear_settings(settings) is not None:  # it has no such parts, and torch may be missing
        return ""
    from hanlattice.build import own_parts

    return " --trust" if own_parts(settings) else ""
