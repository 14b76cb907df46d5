"""``hanlattice tune``: search for the values of settings with the highest dev F1."""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.compare import Format, print_markdown, seeds_of
from hanlattice.cli.config_options import DottedOptionsCommand, load_preset, refuse_twice, without_unset
from hanlattice.cli.options import MapOption, QuietOption, TrainOption, TrustOption, renamed_labels, wrote
from hanlattice.cli.tables import Column, print_table
from hanlattice.errors import ConfigError, HanlatticeError, WriteError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hanlattice.config.settings import Config
    from hanlattice.tuning import TunedTrial, Tuning, Watcher


class Pruner(StrEnum):
    """How trials are compared during training."""

    median = "median"
    halving = "halving"


app = typer.Typer(add_completion=False)


@app.command(cls=DottedOptionsCommand)
def tune(
    ctx: typer.Context,
    settings: Annotated[
        str | None,
        typer.Argument(
            metavar="[SETTINGS]",
            help="Settings of all trials: a TOML file, or a settings file of the package, such as flat/weibo.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the search.", show_default=False)] = ...,  # type: ignore[assignment]
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW..HIGH[:log|:STEP]|NAME=A,B|FILE.toml",
            help="A setting to search with its range or its values, or a file of these; may be repeated.",
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Number of trials; 20 if --hours is not given either.")
    ] = None,
    hours: Annotated[float | None, typer.Option(help="Stop after this time.")] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Random seeds; a trial is trained once per seed. 1 by default.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Parallel runs; with more than 1, each has one thread.")] = 1,
    pruner: Annotated[
        Pruner | None,
        typer.Option(help="Stop trials below the median, or all but the best third. median by default."),
    ] = None,
    pruning: Annotated[
        bool, typer.Option("--pruning/--no-pruning", help="Stop trials with a low F1 early.")
    ] = True,
    prune_from: Annotated[
        int | None, typer.Option(min=1, help="First epoch after which a trial may be stopped. 3 by default.")
    ] = None,
    search_seed: Annotated[
        int | None, typer.Option(min=0, help="Random seed of the proposals. 1 by default.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume a search, also with more trials.")] = False,
    corpora: TrainOption = None,
    dev: Annotated[
        str | None, typer.Option(help="Corpus of the F1; by default a tenth of the training corpus.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(help="Corpus that best.toml names; a search does not read it.")
    ] = None,
    rename: MapOption = "",
    lexicon: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Word list or compiled lexicon; may be repeated.")
    ] = None,
    vectors: Annotated[str | None, typer.Option(help="File of vectors.")] = None,
    start: Annotated[
        str | None, typer.Option(help="Fine-tune this model (a folder, or default), as in hanlattice train.")
    ] = None,
    trust: TrustOption = False,
    format: Annotated[Format, typer.Option(help="How the table is written.")] = Format.table,  # noqa: A002
    quiet: QuietOption = False,
) -> None:
    """Search for the values of settings with the highest dev F1.

    Each trial trains a model with proposed values. Any other setting can be given as a dotted option, such as
    --training.epochs 20. A search that was stopped, even by a crash, continues with --resume. The best settings are
    written to best.toml in the folder, for hanlattice train.
    """
    from hanlattice.api import need_torch

    need_torch("searching settings")
    from hanlattice.tuning import tune as run_search

    if pruner and not pruning:
        raise typer.BadParameter(f"with --pruner {pruner}, leave out --no-pruning")
    if prune_from and not pruning:
        raise typer.BadParameter("with --no-pruning, leave out --prune-from")
    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test, "labels": renamed_labels(rename) or None},
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
    }
    refuse_twice(ctx.meta["settings"], {**named, "training": {"start": start}})
    resumed = output if resume else None
    config = _settings(settings, start, ctx.meta["settings"], without_unset(named), resumed, trust=trust)
    _refuse_searched(search or [], ctx.meta["settings"], named)
    resuming = _command_to_resume(
        output, {"--trials": trials, "--hours": hours, "--jobs": jobs if jobs > 1 else None}
    )
    try:
        with _progress(quiet) as watcher:
            found = run_search(
                config,
                output=output,
                search=search,
                trials=trials,
                hours=hours,
                seeds=None if seeds is None else seeds_of(seeds),
                jobs=jobs,
                pruner=(pruner and str(pruner)) if pruning else "none",
                prune_from=prune_from,
                search_seed=search_seed,
                resume=resume,
                watcher=watcher,
            )
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; to resume: {resuming}") from None
    except WriteError as error:
        raise WriteError(f"{error}; free space, or permit writing, and continue with: {resuming}") from error
    _print(found, format)
    if found.best_settings is None:
        failures = [trial.failure for trial in found.trials if trial.failure]
        reason = failures[0] if failures else "give it more time with --resume"
        raise HanlatticeError(f"no trial is finished; {reason}")
    wrote(found.best_settings, quiet=quiet)


def _settings(
    name: str | None,
    start: str | None,
    dotted: Mapping[str, str],
    named: Mapping[str, Any],
    resumed: Path | None,
    *,
    trust: bool,
) -> "Config | None":
    """The settings of all trials; None if the command line has none, so that a resumed search has its own.

    Args:
        name: a file, or a settings file of the package; by default the settings of the resumed search.
        start: the model that is fine-tuned. Without ``name``, its settings are those of the trials.
        dotted: dotted options.
        named: the settings of other options.
        resumed: the folder of the resumed search.
    """
    from hanlattice.config.files import load_config, overridden
    from hanlattice.tuning.folder import StudyFolder

    if name is None and start is None and not dotted and not named:
        return None
    saved = None if resumed is None else StudyFolder(resumed).load()
    words = named.get("lexicon", {}).get("files", [])
    if name is not None or (start is None and saved is None):
        if name is None or Path(name).is_file():
            config = load_config(name)
        else:
            config = load_preset(name, named.get("data", {}).get("train"))
    elif saved is not None:
        config = saved.config
        if words and start is not None:  # the search has the lexicon of the start model too
            n = len(config.lexicon.files) - len(words)
            words = [*config.lexicon.files[:n], *words]
    else:
        from hanlattice.training.fine_tuning import settings_for_fine_tuning

        config = settings_for_fine_tuning(str(start), trust=trust)
        words = words and [*config.lexicon.files, *words]
    config = overridden(config, dotted).with_settings(named)
    further = {"lexicon": {"files": words}, "training": {"start": start}}
    return config.with_settings(without_unset(further))


def _command_to_resume(output: Path, limits: Mapping[str, float | None]) -> str:
    """The command that resumes a search with the same limits."""
    given = [part for name, value in limits.items() if value is not None for part in (name, str(value))]
    return shlex.join(["hanlattice", "tune", "--output", str(output), "--resume", *given])


def _refuse_searched(search: Sequence[str], dotted: Mapping[str, str], named: Mapping[str, Any]) -> None:
    """
    Raises:
        ConfigError: a setting is searched, and set for all trials too.
    """
    from hanlattice.config.files import dotted_settings
    from hanlattice.tuning.space import read_options

    fixed = {name for name, value in dotted_settings(named) if value} | dotted.keys()
    if twice := [name for name in read_options(search) if name in fixed]:
        raise ConfigError(f"{twice[0]} is set for all trials and searched too; do one of them")


def _progress(quiet: bool) -> "AbstractContextManager[Watcher]":
    from hanlattice.cli.progress import TuningBars, TuningLines, watched
    from hanlattice.tuning import Silent

    return watched(quiet, Silent, TuningBars, TuningLines)


def _print(found: "Tuning", format: Format) -> None:  # noqa: A002
    if format is Format.jsonl:
        for trial in found.trials:
            typer.echo(json.dumps(trial.to_dict(), ensure_ascii=False))
        return
    names = list(found.trials[0].settings) if found.trials else []
    titles = ("trial", "dev F1", "epochs", "seconds")
    columns = [*(Column(title, True) for title in titles), *(Column(name, True) for name in names), Column("state")]
    cells = [_cells(trial) for trial in found.trials]
    if format is Format.table:
        print_table(columns, cells, sys.stdout)
    else:
        print_markdown(columns, cells)
    if found.importance:
        shares = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found.importance.items())
        typer.echo(f"\nimportance for dev F1 (PED-ANOVA): {shares}")


def _cells(trial: "TunedTrial") -> list[str]:
    from hanlattice.cli.progress import short

    f1 = "" if trial.f1 is None else str(trial.f1)
    values = [short(value) for value in trial.settings.values()]
    return [str(trial.number), f1, str(trial.epochs), f"{trial.seconds:.1f}", *values, str(trial.state)]
