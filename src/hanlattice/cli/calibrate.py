"""``hanlattice calibrate``: a copy of a model with calibrated confidences."""

from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import ConventionOption, ModelArgument, QuietOption, TrustOption, model_path


def calibrate(
    model: ModelArgument,
    dev: Annotated[str, typer.Argument(help="Corpus with gold entities that the model was not trained on.")],
    output: Annotated[Path, typer.Argument(help="New folder for the calibrated model.")],
    convention: ConventionOption = None,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a copy of a model with calibrated confidences: scores are divided by one fitted temperature.

    The corpus is read about fifteen times. The decoder's own thresholds are adapted, so the entities stay the same.
    Values of --threshold have another meaning afterwards.
    """
    from hanlattice.api import need_torch
    from hanlattice.model.folder import ModelFolder

    folder = ModelFolder.open(model_path(model))
    need_torch("calibration")
    from hanlattice.evaluation.temperature import calibrate as write

    done = write(folder.path, dev, output, convention=convention or "", trust=trust)
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
    if done.exported:
        typer.echo(
            f"note: {model} is an exported model and {output} is not; export it with: hanlattice export", err=True
        )
