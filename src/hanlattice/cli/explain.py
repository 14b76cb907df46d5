"""``hanlattice explain``: pictures of the lattice that a model read, and of position encodings."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.cli.options import (
    ConventionOption,
    LexiconOption,
    ModelOption,
    TrustOption,
    checked_text,
    load_model,
    model_path,
    wrote,
)
from hanlattice.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from hanlattice.explain import Reading

SENTENCE = "李明去了南京市长江大桥"


def explain(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT|-]", help="The text, or - for stdin; an example by default.")
    ] = SENTENCE,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Picture (.svg), page (.html) or numbers (.json) to write."),
    ] = None,
    model: ModelOption = None,
    lexicon: LexiconOption = None,
    convention: ConventionOption = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Strength of words: influence (the default), attention (FLAT, needs torch) or none.",
            show_default=False,
        ),
    ] = None,
    trust: TrustOption = False,
    positions: Annotated[
        Path | None,
        typer.Option(help="Instead, draw absolute and relative position encodings into this .svg or .png."),
    ] = None,
) -> None:
    """Show the lexicon words that a model read with a text, and how each word changes the entities.

    Influence: each word in turn is left out of the lexicon and the text is read again; the strength of the word is
    the largest change of an entity's score. Without --output, a table is printed.
    """
    if positions is not None:
        if output is not None:
            raise ConfigError("--positions names its own file; leave --output out")
        if model or lexicon or convention or by or trust:
            raise ConfigError("--positions reads no model; leave out the options of models and words")
        from hanlattice.explain.position_figure import draw

        draw(positions, _read(text))
        wrote(positions)
        return
    _explain(text, output, model, lexicon or [], by or "influence", convention, trust)


def _explain(
    text: str,
    output: Path | None,
    model: str | None,
    lexicons: list[Path],
    by: str,
    convention: str | None,
    trust: bool,
) -> None:
    from hanlattice.atomic import atomic_write
    from hanlattice.explain import reading

    kind = "" if output is None else output.suffix.lower()
    if kind not in ("", ".svg", ".html", ".json") or (output is not None and not kind):
        raise ConfigError(f"{output}: write a picture (.svg), a page (.html) or numbers (.json)")
    if by not in ("influence", "attention", "none"):
        raise ConfigError(f"--by must be influence, attention or none, not {by!r}")
    text = _read(text)
    if by == "attention":
        _refuse_linear(model)
    engine = "torch" if by == "attention" else "auto"
    ner = load_model(model, lexicons, convention=convention, engine=engine, trust=trust)
    found = reading(ner, text, by=by)  # type: ignore[arg-type]  # one of the three, as checked above
    match kind:
        case ".svg":
            written = found.to_svg()
        case ".html":
            written = found.to_html()
        case ".json":
            written = json.dumps(found.to_dict(), ensure_ascii=False, indent=2) + "\n"
        case _:
            _print(found)
            return
    assert output is not None  # a kind was found in its name
    with atomic_write(output) as stream:
        stream.write(written)
    wrote(output)


def _read(text: str) -> str:
    """The text of an argument, or of standard input without the end of its last line."""
    if text != "-":
        return checked_text(text)
    from hanlattice.files import STDIN, read_text

    return read_text(STDIN).removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")


def _refuse_linear(model: str | None) -> None:
    """Check that a model may have attention.

    Raises:
        ConfigError: it is a linear tagger.
    """
    from hanlattice.config.linear import linear_settings
    from hanlattice.model.folder import ModelFolder

    try:
        folder = ModelFolder.open(model_path(model))
    except ModelError:  # reported when the model is loaded
        return
    if linear_settings(folder.config) is not None:
        raise ConfigError(f"{folder.path} is a linear tagger, which has no attention; leave out --by attention")


def _print(found: "Reading") -> None:
    """The entities, then the words in the order of the text."""
    import sys

    from hanlattice.cli.tables import Column, print_table, visible

    entities = ", ".join(f"{visible(e.text)} {e.label}" for e in found.document.entities)
    typer.echo(f"entities: {entities or 'none'}\n")
    columns = [Column("start", True), Column("end", True), Column(found.by, True), Column("word")]
    strengths = [f"{strength:.3f}" for strength in found.strengths] or [""] * len(found.lattice)
    rows = zip(found.lattice, strengths, found.reasons or found.lattice.words, strict=True)
    cells = [(str(start), str(end), strength, visible(why)) for (start, end, _, _), strength, why in rows]
    if cells:
        print_table(columns, cells, sys.stdout)
    else:
        typer.echo("(no words)")
