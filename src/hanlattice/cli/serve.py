"""``hanlattice serve``: a model behind an HTTP API, with a web page to try it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from hanlattice.cli.options import (
    BlockOption,
    DeviceOption,
    Engine,
    ForceOption,
    Int8Option,
    LexiconOption,
    ModelOption,
    ThresholdOption,
    TrustOption,
    blocked,
    forced,
    model_path,
)
from hanlattice.errors import DataError
from hanlattice.serving.settings import TOKEN, TOKEN_FORM, Settings, lexicon_folder

DEFAULT = Settings(lexicons=Path("$XDG_DATA_HOME/hanlattice/lexicons"))  # for the help; see `lexicon_folder`


def serve(
    model: ModelOption = None,
    convention: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Annotation convention of requests that name none; by default the model's."
        ),
    ] = None,
    patterns: Annotated[
        str,
        typer.Option(
            metavar="all|KIND,…|FILE.toml",
            help="Also find regular entities, such as dates and amounts; a request can choose otherwise.",
        ),
    ] = "",
    engine: Annotated[
        Engine, typer.Option(help="What runs the model; with torch, the page also shows attention.")
    ] = Engine.auto,
    int8: Int8Option = False,
    device: DeviceOption = DEFAULT.device,
    lexicon: LexiconOption = None,
    force: ForceOption = None,
    block: BlockOption = None,
    threshold: ThresholdOption = DEFAULT.threshold,
    trust: TrustOption = False,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = DEFAULT.host,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any free port.")
    ] = DEFAULT.port,
    workers: Annotated[int, typer.Option(min=1, help="Processes; each loads the model.")] = DEFAULT.workers,
    threads: Annotated[
        int, typer.Option(min=0, help="Threads per worker; 0 divides the cores among the workers.")
    ] = DEFAULT.threads,
    max_batch: Annotated[int, typer.Option(min=1, help="Texts per batch.")] = DEFAULT.max_batch,
    max_wait_ms: Annotated[
        float, typer.Option(min=0.0, help="How long an idle worker waits for more texts.")
    ] = DEFAULT.max_wait_ms,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Texts that may wait in a worker; further requests get status 503.")
    ] = DEFAULT.max_queue,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts per request.")] = DEFAULT.max_texts,
    max_chars: Annotated[int, typer.Option(min=1, help="Characters per text.")] = DEFAULT.max_chars,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes per request.")] = DEFAULT.max_body,
    max_lexicon_body: Annotated[
        int, typer.Option(min=1, help="Bytes of a request that stores a lexicon.")
    ] = DEFAULT.max_lexicon_body,
    max_lexicons: Annotated[int, typer.Option(min=1, help="Number of stored lexicons.")] = DEFAULT.max_lexicons,
    answer_timeout: Annotated[
        float, typer.Option(help="Seconds until a request without a response gets status 504.")
    ] = DEFAULT.answer_timeout,
    client_timeout: Annotated[
        float, typer.Option(help="Seconds for a client to send its request, and to receive the response.")
    ] = DEFAULT.client_timeout,
    drain_timeout: Annotated[
        float, typer.Option(help="Seconds for open requests to finish after SIGTERM.")
    ] = DEFAULT.drain_timeout,
    lexicons: Annotated[
        Path | None, typer.Option(help=f"Folder of the stored lexicons; by default {DEFAULT.lexicons}.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients must send; or set HANLATTICE_TOKEN to the token."),
    ] = None,
    root_path: Annotated[str, typer.Option(help="Path under which a proxy offers the service.")] = "",
) -> None:
    """Serve a model over HTTP until SIGTERM or Ctrl-C: JSON at /v1, a page to try it at /, metrics at /metrics.

    The log is JSON on stderr, one line per request, and never contains texts.
    """
    from hanlattice.serving import supervisor

    settings = Settings(
        model=model_path(model),
        convention=convention or "",
        patterns=patterns,
        engine=engine.value,
        int8=int8 or None,
        device=device,
        words=tuple(lexicon or ()),
        force=tuple(forced(force).items()),
        block=tuple(blocked(block).items()),
        threshold=threshold,
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
        lexicons=lexicons or lexicon_folder(),
        token=_token(token_file),
        root_path=root_path,
    )
    supervisor.serve(settings)


def _token(file: Path | None) -> str | None:
    """The token from the file or the environment. A command line could be read by all users of the machine.

    Raises:
        DataError: the file cannot be read, or its first line is no token.
    """
    if file is not None:
        from hanlattice.files import read_lines

        token = next(read_lines(file), "").strip()
        if not TOKEN.fullmatch(token):
            raise DataError(f"the first line is not a token; {TOKEN_FORM}", file, 1)
        return token
    return os.environ.get("HANLATTICE_TOKEN")
