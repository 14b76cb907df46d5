"""``hanlattice serve``: the model behind HTTP, and a page to try it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from hanlattice.api import EngineName
from hanlattice.cli.settings import Trust
from hanlattice.serving.settings import Settings

DEFAULT = Settings()


def serve(
    model: Annotated[str | None, typer.Option(help="Folder of a model; the packaged one by default.")] = None,
    convention: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Annotation convention of requests that name none; the model's default."),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="What reads the model; torch tells attention to the page.")
    ] = DEFAULT.engine,
    trust: Trust = False,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all.")] = DEFAULT.host,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.")] = DEFAULT.port,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with the model.")] = DEFAULT.workers,
    threads: Annotated[
        int, typer.Option(min=0, help="Of each worker's model; 0 shares out the cores.")
    ] = DEFAULT.threads,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts that are read together.")] = DEFAULT.max_batch,
    max_wait_ms: Annotated[
        float, typer.Option(min=0.0, help="How long an idle model waits for more texts.")
    ] = DEFAULT.max_wait_ms,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Texts that may wait in a worker; more get 503.")
    ] = DEFAULT.max_queue,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts of one request.")] = DEFAULT.max_texts,
    max_chars: Annotated[int, typer.Option(min=1, help="Characters of one text.")] = DEFAULT.max_chars,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of one request.")] = DEFAULT.max_body,
    max_lexicon_body: Annotated[
        int, typer.Option(min=1, help="Bytes of a lexicon that is stored.")
    ] = DEFAULT.max_lexicon_body,
    max_lexicons: Annotated[int, typer.Option(min=1, help="Lexicons that are stored.")] = DEFAULT.max_lexicons,
    answer_timeout: Annotated[float, typer.Option(help="Seconds for an answer.")] = DEFAULT.answer_timeout,
    client_timeout: Annotated[
        float, typer.Option(help="Seconds for a client to send its request, and to take its answer.")
    ] = DEFAULT.client_timeout,
    drain_timeout: Annotated[
        float, typer.Option(help="Seconds for what was accepted to be answered after SIGTERM.")
    ] = DEFAULT.drain_timeout,
    lexicons: Annotated[
        Path | None, typer.Option(help=f"Folder of the named lexicons; by default {DEFAULT.lexicons}.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients must show; or set HANLATTICE_TOKEN to the token."),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy shows the service.")] = "",
) -> None:
    """Serve a model over HTTP until SIGTERM or Ctrl-C: JSON at /v1, a page to try it at /, figures at /metrics.

    The log is JSON on stderr, one line a request, and never holds a text.
    """
    from hanlattice.serving import supervisor

    settings = Settings(
        model=model,
        convention=convention or "",
        engine=engine,
        trust=trust,
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        max_batch=max_batch,
        max_wait_ms=max_wait_ms,
        max_queue=max_queue,
        max_texts=max_texts,
        max_chars=max_chars,
        max_body=max_body,
        max_lexicon_body=max_lexicon_body,
        max_lexicons=max_lexicons,
        answer_timeout=answer_timeout,
        client_timeout=client_timeout,
        drain_timeout=drain_timeout,
        lexicons=lexicons or DEFAULT.lexicons,
        token=_token(token_file),
        root_path=root_path,
    )
    supervisor.serve(settings)


def _token(file: Path | None) -> str | None:
    """From the file or the environment; not from the command line, which everybody on a machine can read."""
    if file is not None:
        from hanlattice.files import read_lines

        return next(read_lines(file), "").strip()
    return os.environ.get("HANLATTICE_TOKEN") or None
