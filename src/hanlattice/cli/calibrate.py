"""``hanlattice calibrate``: a copy of a model with calibrated confidences."""

from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import (
    PACKAGED,
    ConventionOption,
    MapOption,
    ModelOption,
    QuietOption,
    TrustOption,
    model_path,
    renamed_labels,
    with_model,
    wrote,
)
from hanlattice.errors import ConfigError


def calibrate(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="DEV OUTPUT",
            help="Corpus with gold entities that the model was not trained on, and a new folder for the calibrated"
            " model. (Older form: MODEL DEV OUTPUT.)",
        ),
    ],
    model: ModelOption = None,
    convention: ConventionOption = None,
    rename: MapOption = "",
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a copy of a model with calibrated confidences: scores are divided by one fitted temperature.

    The corpus is read about fifteen times. The decoder's own thresholds are adapted, so the entities stay the same.
    Values of --threshold have another meaning afterwards.
    """
    from hanlattice.api import need_torch
    from hanlattice.config.linear import linear_settings
    from hanlattice.model.folder import CASCADE, ModelFolder

    model, (dev, output) = with_model(arguments, model, "DEV", "OUTPUT")
    model, labels = model or PACKAGED, renamed_labels(rename)
    if model == "cascade":
        raise ConfigError("a cascade has no temperature of its own; calibrate its model: --model default")
    folder = ModelFolder.open(model_path(model))
    if linear_settings(folder.config) is None:
        need_torch("calibration")
    from hanlattice.evaluation.temperature import calibrate as write

    done = write(folder.path, dev, Path(output), convention=convention or "", labels=labels, trust=trust)
    wrote(output, quiet=quiet)
    if quiet:
        return
    before, after = done.before, done.after
    typer.echo(f"temperature: {done.temperature:.3f}")
    typer.echo(f"expected calibration error of confidences: {before.error:.4f} before, {after.error:.4f} after")
    typer.echo(f"negative log-likelihood of an entity: {before.loss:.4f} before, {after.loss:.4f} after")
    typer.echo(
        f"entities found: {len(before.p):,} before, {sum(before.correct):,} of them correct;"
        f" {len(after.p):,} after, {sum(after.correct):,} of them correct"
    )
    if (Path(output) / CASCADE).is_file():
        typer.echo(
            f"note: with --engine cascade the confidences of the fast model stay as they were; choose the threshold"
            f" of {output} again with: hanlattice combine cascade --model {output}",
            err=True,
        )
    if done.exported:
        typer.echo(
            f"note: {model} is an exported model and {output} is not; export it with: hanlattice export", err=True
        )
