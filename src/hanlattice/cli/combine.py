"""``hanlattice combine``: an accurate model and a linear tagger become one model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import MapOption, ModelOption, QuietOption, model_path, renamed_labels, wrote

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Write a copy of an accurate model that is combined with a linear tagger; corpora choose the settings.",
)

CorporaArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="DEV… OUTPUT",
        help="Corpora with gold entities that neither model was trained on, and a new folder.",
        show_default=False,
    ),
]
SecondOption = Annotated[
    str,
    typer.Option(
        metavar="MODEL", help="Folder of the linear tagger, or lite for the packaged one.", show_default=False
    ),
]


@app.command()
def ensemble(
    corpora: CorporaArgument,
    second: SecondOption,
    model: ModelOption = None,
    rename: MapOption = "",
    quiet: QuietOption = False,
) -> None:
    """Add the scores of a linear tagger to those of a FLAT.

    The new model is more accurate and hardly slower, as the two make different errors. A linear tagger helps if it
    learned from much text, such as raw text that the FLAT annotated: see distill. Both models need the same labels,
    default convention and normalisation. If F1 on the corpora does not rise, nothing is written. The corpora are
    read thirty to fifty times.
    """
    from hanlattice.combination.ensemble import make_ensemble
    from hanlattice.model.folder import CASCADE

    dev, output = _dev_and_output(corpora)
    labels = renamed_labels(rename)
    chosen = make_ensemble(dev, output, second=second, model=model_path(model), labels=labels)
    wrote(output, quiet=quiet)
    if not quiet:
        typer.echo("\n".join([*chosen.lines(), f"weight of the linear tagger: {chosen.settings.weight}"]))
        if (output / CASCADE).is_file():
            typer.echo(
                f"note: {CASCADE} in {output} is that of the first model; choose its threshold again with:"
                f" hanlattice combine cascade --model {output}",
                err=True,
            )


@app.command()
def cascade(
    corpora: CorporaArgument,
    second: SecondOption,
    model: ModelOption = None,
    rename: MapOption = "",
    lost: Annotated[float, typer.Option(min=0, max=100, help="Largest loss of F1, in points.")] = 0.5,
    quiet: QuietOption = False,
) -> None:
    """Let a linear tagger answer where it is certain.

    The accurate model reads the other texts. The new model is several times as fast and nearly as accurate. Both
    models need the same labels, default convention and normalisation. Use the new model with --engine cascade.
    """
    from hanlattice.combination.cascade import make_cascade

    dev, output = _dev_and_output(corpora)
    labels = renamed_labels(rename)
    chosen = make_cascade(dev, output, second=second, model=model_path(model), lost=lost, labels=labels)
    wrote(output, quiet=quiet)
    if not quiet:
        typer.echo("\n".join([*chosen.lines, f"threshold: {chosen.settings.threshold}"]))


def _dev_and_output(paths: Sequence[Path]) -> tuple[Sequence[Path], Path]:
    """The corpora and the new folder, which is the last argument.

    Raises:
        BadParameter: there is one argument only.
    """
    *dev, output = paths
    if not dev:
        raise typer.BadParameter("name at least one corpus, and the new folder after it", param_hint="DEV… OUTPUT")
    return dev, output
