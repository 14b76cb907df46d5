"""``hanlattice calibrate``: a model whose confidences mean what they say."""

from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import ConventionOption
from hanlattice.cli.settings import Trust


def calibrate(
    model: Annotated[str, typer.Argument(help="Folder of a model, or default for the packaged one.")],
    dev: Annotated[str, typer.Argument(help="Corpus with gold entities that the model has not learnt from.")],
    output: Annotated[Path, typer.Argument(help="New folder for the calibrated model.")],
    convention: ConventionOption = None,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Write a copy of a model whose confidences are nearest to how often it is right, by one temperature.

    The corpus is read about fifteen times. Thresholds of the decoder are moved with the scores, so that what is
    found stays as it is; thresholds of your own (--threshold) mean something else afterwards.
    """
    from hanlattice.api import need_torch
    from hanlattice.model.folder import ModelFolder

    folder = ModelFolder.open(None if model == "default" else model)
    need_torch("calibration")
    from hanlattice.evaluation.calibration import calibrate as write

    done = write(folder.path, dev, output, convention=convention or "", trust=trust)
    if quiet:
        return
    before, after = done.before, done.after
    typer.echo(f"temperature: {done.temperature:.3f}")
    typer.echo(f"expected calibration error of confidences: {before.error:.4f} before, {after.error:.4f} after")
    typer.echo(f"negative log-likelihood of an entity: {before.loss:.4f} before, {after.loss:.4f} after")
    typer.echo(
        f"entities found: {len(before.p):,} before, {sum(before.right):,} of them right;"
        f" {len(after.p):,} after, {sum(after.right):,} of them right"
    )
    if done.exported:
        typer.echo(f"note: {output} is not exported, as {model} is; do so with: hanlattice export", err=True)
