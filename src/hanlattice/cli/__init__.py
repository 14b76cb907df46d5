"""The command line: data on stdout, progress and notes on stderr, every error one line.

Exit status: 0 fine, 1 the work failed, 2 wrong usage, 130 stopped by Ctrl-C.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hanlattice.errors import HanlatticeError, UnknownConvention

VERBS = {
    "predict": "Find the entities of texts, files or standard input.",
    "train": "Train a model on a corpus.",
    "evaluate": "Score a model on a corpus.",
    "calibrate": "Make a model whose confidences mean what they say.",
    "compare": "Several systems and seeds, side by side.",
    "check": "Count what is in corpora, and list every defect.",
    "convert": "Convert a corpus from one format into another.",
    "lexicon": "Compile lexicons, look into them, match them.",
    "vectors": "Train, convert and inspect vectors.",
    "pretrain": "Train a character Transformer on raw text.",
    "annotate": "Annotate files of any size; resumable.",
    "explain": "Show what a model read, and what each word did.",
    "export": "Make a model that runs without torch.",
    "benchmark": "How fast a model reads on this machine.",
    "serve": "A model over HTTP, and a page to try it.",
    "info": "Show versions, and what a model is made of.",
}


class Interrupted(HanlatticeError):
    """Ctrl-C, with what the user should know about it."""


class _Verbs(TyperGroup):
    """Imports a verb's module only when the verb is called, so that help comes at once."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in VERBS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _command(verb: str) -> Any:
    """A module has either an ``app`` or a function of the verb's name."""
    module = import_module(f"hanlattice.cli.{verb}")
    app = getattr(module, "app", None)
    if app is None:
        app = _app()
        app.command(verb)(getattr(module, verb))
    app.rich_markup_mode = None
    command = get_command(app)
    command.name = verb
    return command


def _app(**settings: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings)


def _version(wanted: bool) -> None:
    if wanted:
        from hanlattice import __version__

        typer.echo(f"hanlattice {__version__}")
        raise typer.Exit


app = _app(cls=_Verbs, no_args_is_help=True)


@app.callback(help="Chinese named entity recognition on word lattices.")
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    # Taken by `main`, wherever it stands; it is here for the help.
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and leave with its exit status."""
    # Threads of GNU OpenMP that spin while they wait take the cores from those that work; read by torch on import.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    arguments, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    _show_notes(quiet="--quiet" in arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app(arguments, prog_name="hanlattice")
    except SystemExit as error:  # typer makes one of Ctrl-C, and says nothing
        if error.code == 130:
            _say("interrupted")
        raise
    except Exception as error:
        if debug:
            raise
        _say(_line(error))
        sys.exit(_status(error))


def _status(error: Exception) -> int:
    match error:
        case Interrupted():
            return 130
        case UnknownConvention():
            return 2
        case _:
            return 1


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = [argument for argument in arguments[:end] if argument != "--debug"]
    return [*options, *arguments[end:]], len(options) < end


def _show_notes(*, quiet: bool) -> None:
    """What the library logs, such as blank lines that were skipped, as lines on stderr."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("note: %(message)s"))
    logger = logging.getLogger("hanlattice")
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def _line(error: Exception) -> str:
    """What happened, in one line."""
    match error:
        case HanlatticeError():
            message = str(error)
        case shutil.Error():  # a list of files, each with what went wrong
            source, _, reason = error.args[0][0]
            message = f"{source}: cannot be copied: {reason}"
        case OSError():
            where = f"{error.filename}: " if error.filename is not None else ""
            message = f"{where}{error.strerror or error}"
        case MemoryError():
            message = "out of memory; try a smaller --batch-size"
        case _:
            message = f"unexpected {type(error).__name__}: {error}; --debug prints the traceback"
    return " ".join(message.split("\n"))


def _say(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
