"""``hanlattice select``: choose the texts to annotate next."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import (
    BatchSizeOption,
    ConventionOption,
    LexiconOption,
    ModelOption,
    QuietOption,
    TrustOption,
    check_writable,
    load_model,
    refuse_own_input,
)


def select(
    pool: Annotated[
        list[Path], typer.Argument(metavar="FILE…", help="Texts: .txt with one per line, or any corpus format.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="JSONL file to write.")],
    n: Annotated[int, typer.Option("--n", min=1, help="Number of texts to choose.")] = 100,
    model: ModelOption = None,
    lexicon: LexiconOption = None,
    convention: ConventionOption = None,
    batch_size: BatchSizeOption = 64,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Choose the texts to annotate next: those of which the model is unsure, and which differ from one another.

    The rows have the entities that the model finds, to be corrected, and the field "uncertainty"; the most useful
    text is first.
    """
    from hanlattice import corpus
    from hanlattice.errors import DataError
    from hanlattice.selection import read_pool, select

    if output.suffix.lower() != ".jsonl":
        raise typer.BadParameter(
            f"{output}: name a file of JSON lines, such as chosen.jsonl", param_hint="--output"
        )
    for path in pool:
        if not path.exists():
            raise DataError("no such file", path)
    check_writable(output)
    refuse_own_input(output, pool)
    ner = load_model(model, lexicon or [], convention=convention, trust=trust)
    chosen = select(ner, read_pool(pool), n, batch_size=batch_size)
    rows = [replace(s.document, meta={**s.document.meta, "uncertainty": round(s.uncertainty, 6)}) for s in chosen]
    corpus.write(rows, output, "jsonl")
    if not quiet:
        fewer = "" if len(rows) == n else f" (there are no more than {len(rows):,})"
        typer.echo(f"wrote {len(rows):,} texts to {output}{fewer}", err=True)
