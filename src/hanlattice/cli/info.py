"""``hanlattice info``: versions, and the contents of a model."""

import platform
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.cli.options import PACKAGED, ModelArgument, ModelOption, TrustOption, one_model

if TYPE_CHECKING:
    from hanlattice.api import Opened
    from hanlattice.model.folder import ModelFolder


def info(
    argument: ModelArgument = None,
    model: ModelOption = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the files with the digests recorded when the model was saved.")
    ] = False,
    trust: TrustOption = False,
) -> None:
    """Show versions and the contents of a model: labels, sizes, engine, settings and model card.

    With --verify, print only one line for each file that has changed since the model was saved; the exit status is
    1 if there is one.
    """
    from hanlattice.api import open_model
    from hanlattice.model.folder import DEFAULT, ModelFolder, located_model

    model = one_model(argument, model)
    if model == PACKAGED and not DEFAULT.is_dir():
        _print_versions()
        typer.echo("model       this installation has none; name one, or train one with: hanlattice train")
        return
    folder = located_model(model)
    if verify:
        _verify(folder)
        return
    opened = open_model(model, trust=trust)  # before anything is printed, because it may fail
    _print_versions()
    _print_model(ModelFolder.open(folder), opened)


def _verify(folder: Path) -> None:
    from hanlattice.errors import ModelError
    from hanlattice.model.digests import faults

    if not folder.is_dir():
        problem = "is a file, not the folder of a model; name the folder" if folder.exists() else "no such folder"
        raise ModelError(f"{folder}: {problem}")
    found = list(faults(folder))
    typer.echo("\n".join(found) or f"{folder}: all files are as they were saved")
    if found:
        raise typer.Exit(1)


def _print_engine(opened: "Opened") -> None:
    typer.echo(f"engine      {opened.engine}: {opened.reason}")
    for name, reason in opened.passed_over:
        typer.echo(f"            not {name}: {reason}")


def _print_versions() -> None:
    import numpy

    from hanlattice import __version__

    typer.echo(f"hanlattice  {__version__}")
    typer.echo(f"python      {platform.python_version()}, {platform.machine()}")
    typer.echo(f"numpy       {numpy.__version__}")
    typer.echo(f"onnxruntime {_onnxruntime()}")
    typer.echo(f"torch       {_torch()}")


def _onnxruntime() -> str:
    try:
        import onnxruntime
    except ImportError:
        return "not installed; to run exported models: pip install 'hanlattice[onnx]'"
    return str(onnxruntime.__version__)


def _torch() -> str:
    try:
        import torch
    except ImportError:
        return "not installed; to train: pip install 'hanlattice[train]'"
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"{torch.__version__}, {device}, {torch.get_num_threads()} threads"


def _parameters(path: Path) -> int:
    """The number of weights in a file, without the scales of int8 tables."""
    from safetensors import safe_open

    from hanlattice.model.folder import SCALE

    with safe_open(path, framework="numpy") as weights:
        names = [name for name in weights.keys() if not name.endswith(SCALE)]  # noqa: SIM118  # not a dictionary
        shapes = [weights.get_slice(name).get_shape() for name in names]
    return sum(map(prod, shapes))


def _print_conventions(labels: Mapping[str, Sequence[str]]) -> None:
    """Print one convention per line, the first of the mapping first."""
    width = max(map(len, labels))
    for title, (name, its_labels) in zip(["conventions", *[""] * len(labels)], labels.items(), strict=False):
        typer.echo(f"{title:11} {name:{width}}  {', '.join(its_labels)}")


def _print_model(model: "ModelFolder", opened: "Opened") -> None:
    import tomli_w

    from hanlattice.config.files import to_dict
    from hanlattice.model.folder import CARD, GRAPH, WEIGHTS

    folder, vocabulary = model.path, model.vocabulary
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    exported = ", exported" if (folder / GRAPH).is_file() else ""
    typer.echo(f"model       {folder}, {size / 1e6:.1f} MB{exported}")
    typer.echo(f"labels      {', '.join(vocabulary.labels)}")
    if vocabulary.conventions:
        _print_conventions({vocabulary.convention: vocabulary.labels, **vocabulary.conventions})
    typer.echo(f"parameters  {_parameters(folder / WEIGHTS):,}")
    typer.echo(
        f"tables      {len(vocabulary.chars):,} characters, {len(vocabulary.bigrams):,} bigrams,"
        f" {len(vocabulary.words):,} words"
    )
    typer.echo(f"lexicon     {len(opened.ner.lexicon):,} words")
    _print_engine(opened)
    typer.echo(f"\n## Settings\n\n{tomli_w.dumps(to_dict(model.config)).strip()}")
    if (folder / CARD).is_file():
        typer.echo(f"\n{(folder / CARD).read_text(encoding='utf-8').strip()}")
