"""``hanlattice export``: a model that runs without torch."""

from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.settings import Trust


def export(
    model: Annotated[str, typer.Argument(help="Folder of a model, or default for the packaged one.")],
    output: Annotated[Path, typer.Argument(metavar="FOLDER", help="New folder for the exported model.")],
    onnx: Annotated[bool, typer.Option("--onnx", help="For ONNX Runtime, which is what there is so far.")] = True,
    int8: Annotated[bool, typer.Option("--int8", help="Products with weights in 8 bits; needs --dev.")] = False,
    dev: Annotated[
        list[str] | None, typer.Option(help="Corpus that decides whether 8 bits are good enough; may be repeated.")
    ] = None,
    most_lost: Annotated[
        float, typer.Option(min=0.0, help="Points of F1 on dev that 8 bits may cost; more, and nothing is written.")
    ] = 0.3,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Write a copy of a model that ONNX Runtime reads, without torch; what it finds is checked first."""
    from hanlattice import corpus
    from hanlattice.api import need_torch
    from hanlattice.model.folder import ModelFolder

    folder = ModelFolder.open(None if model == "default" else model)
    need_torch("export")
    from hanlattice.engines.export import export as write

    documents = [document for path in dev or [] for document in corpus.read(path)]
    done = write(folder.path, output, int8=int8, dev=documents, most_lost=most_lost / 100, trust=trust)
    if quiet:
        return
    typer.echo(f"{done.folder}: emissions within {done.difference:.0e} of the model's")
    if done.float_f1 is not None and done.int8_f1 is not None:
        typer.echo(f"F1 on dev {100 * done.int8_f1:.2f} with int8, {100 * done.float_f1:.2f} without")
