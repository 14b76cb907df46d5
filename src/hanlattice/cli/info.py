"""``hanlattice info``: versions, and what a model is made of."""

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hanlattice.pipeline import NER


def info(
    model: Annotated[str, typer.Argument(help="Folder of a model, or default for the packaged one.")] = "default",
) -> None:
    """Show versions, and what a model is made of: labels, sizes, settings and scores."""
    from hanlattice.model import DEFAULT, load_model

    if model == "default" and not DEFAULT.is_dir():
        _print_versions()
        typer.echo("model       none in this installation; name one, or train one with: hanlattice train")
        return
    folder = DEFAULT if model == "default" else Path(model)
    ner = load_model(folder)
    _print_versions()
    _print_model(folder, ner)


def _print_versions() -> None:
    import numpy
    import torch

    from hanlattice import __version__

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    typer.echo(f"hanlattice  {__version__}")
    typer.echo(f"python      {platform.python_version()}, {platform.machine()}")
    typer.echo(f"numpy       {numpy.__version__}")
    typer.echo(f"torch       {torch.__version__}, {device}, {torch.get_num_threads()} threads")


def _print_model(folder: Path, ner: "NER") -> None:
    import tomli_w

    from hanlattice.config import to_dict
    from hanlattice.model import CARD

    vocabulary = ner.vocabulary
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    typer.echo(f"model       {folder}, {size / 1e6:.1f} MB")
    typer.echo(f"labels      {', '.join(ner.labels)}")
    typer.echo(f"parameters  {sum(p.numel() for p in ner.tagger.parameters()):,}")
    typer.echo(
        f"tables      {len(vocabulary.chars):,} characters, {len(vocabulary.bigrams):,} bigrams,"
        f" {len(vocabulary.words):,} words"
    )
    typer.echo(f"lexicon     {len(ner.lexicon):,} words")
    typer.echo(f"\n## Settings\n\n{tomli_w.dumps(to_dict(ner.config)).strip()}")
    if (folder / CARD).is_file():
        typer.echo(f"\n{(folder / CARD).read_text(encoding='utf-8').strip()}")
