"""``hanlattice export``: a copy of a model that runs without torch."""

from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import ModelOption, QuietOption, TrustOption, model_path, with_model, wrote
from hanlattice.errors import ConfigError


def export(
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="FOLDER", help="New folder for the exported model. (Older form: MODEL FOLDER.)"),
    ],
    model: ModelOption = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="For ONNX Runtime, the only target so far.")] = True,
    int8: Annotated[bool, typer.Option("--int8", help="Multiply with int8 weights; needs --dev.")] = False,
    dev: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Corpus on which the loss of F1 by int8 is measured; may be repeated."),
    ] = None,
    most_lost: Annotated[
        float,
        typer.Option(min=0.0, help="Largest loss of F1 on dev by int8, in points; beyond it, nothing is written."),
    ] = 0.3,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a copy of a model for ONNX Runtime, after checking that its predictions are the same."""
    from hanlattice import corpus
    from hanlattice.api import need_torch
    from hanlattice.model.folder import ModelFolder

    if dev and not int8:
        raise ConfigError("--dev measures what int8 loses; add --int8, or leave out --dev")
    model, (output,) = with_model(arguments, model, "FOLDER")
    folder = ModelFolder.open(model_path(model))
    need_torch("export")
    from hanlattice.engines.export import export as write

    documents = [document for path in dev or [] for document in corpus.read(path)]
    done = write(folder.path, Path(output), int8=int8, dev=documents, most_lost=most_lost / 100, trust=trust)
    wrote(done.folder, quiet=quiet)
    if quiet:
        return
    typer.echo(f"{done.folder}: emissions within {done.difference:.0e} of the model's")
    if done.float_f1 is not None and done.int8_f1 is not None:
        typer.echo(f"F1 on dev {100 * done.int8_f1:.2f} with int8, {100 * done.float_f1:.2f} without")
