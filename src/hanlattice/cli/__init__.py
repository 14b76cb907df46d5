"""The command line: data on stdout, progress and notes on stderr, every error in one line.

Exit status: 0 success, 1 failure, 2 wrong usage, 130 stopped by Ctrl-C.
"""

import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hanlattice.errors import HanlatticeError, UnknownConvention

COMMANDS = {
    "predict": "Find the entities of texts, files or standard input.",
    "train": "Train a model on a corpus.",
    "distill": "Train a fast model from the output of an accurate one.",
    "evaluate": "Score a model on a corpus.",
    "combine": "Combine an accurate model with a linear tagger.",
    "calibrate": "Write a copy of a model with calibrated confidences.",
    "compare": "Train and score several systems with several seeds.",
    "tune": "Search for the best values of settings; resumable.",
    "check": "Print statistics and all defects of corpora.",
    "convert": "Convert a corpus to another format.",
    "lexicon": "Compile, inspect and match lexicons.",
    "vectors": "Train, convert and inspect vectors.",
    "pretrain": "Train a character Transformer on raw text.",
    "annotate": "Add entities to files of any size; resumable.",
    "select": "Choose the texts to annotate next.",
    "explain": "Show which words a model read, and their influence.",
    "export": "Write a copy of a model that runs without torch.",
    "benchmark": "Measure throughput, latency and memory of a model.",
    "serve": "Serve a model over HTTP, with a page to try it.",
    "info": "Show versions and the contents of a model.",
}


class Interrupted(HanlatticeError):
    """The user pressed Ctrl-C; the message says how to continue."""


class _Commands(TyperGroup):
    """Imports the module of a command only when the command is used, so that ``--help`` is fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, 1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _command(name: str) -> Any:
    """The command of a module, which has either an ``app`` or a function with the name of the command."""
    module = import_module(f"hanlattice.cli.{name}")
    app = getattr(module, "app", None)
    if app is None:
        app = _app()
        app.command(name)(getattr(module, name))
    app.rich_markup_mode = None
    command = get_command(app)
    command.name = name
    _show_arguments_as_written(command)
    return command


def _show_arguments_as_written(command: Any) -> None:
    """In ``--help``, show the metavar of an argument as it is; typer adds brackets, dots and ``<list[Path]>``."""
    for inner in getattr(command, "commands", {}).values():
        _show_arguments_as_written(inner)
    for parameter in command.params:
        if parameter.param_type_name == "argument" and parameter.metavar:
            written = parameter.metavar
            parameter.get_usage_pieces = lambda ctx, written=written: [written]
            parameter.display_type_rich = lambda ctx: ""


def _app(**settings: Any) -> typer.Typer:
    settings = {"add_completion": False, **settings}
    return typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, **settings)


def _version(wanted: bool) -> None:
    if wanted:
        from hanlattice import __version__

        typer.echo(f"hanlattice {__version__}")
        raise typer.Exit


app = _app(cls=_Commands, no_args_is_help=True, add_completion=True)


@app.callback(help="Chinese named entity recognition on word lattices.")
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    # `main` handles this option at any position; here it is only documented.
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and exit with its status."""
    # Idle threads of GNU OpenMP otherwise spin and slow down the working ones. Torch reads this when imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    arguments, debug = _without_debug(sys.argv[1:] if arguments is None else arguments)
    _log_to_stderr(quiet="--quiet" in arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            app(arguments, prog_name="hanlattice")
    except SystemExit as error:  # typer turns Ctrl-C into this, without a message
        if error.code == 130:
            _print_error("interrupted")
        raise
    except Exception as error:
        if debug:
            raise
        _print_error(_message(error))
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


def _log_to_stderr(*, quiet: bool) -> None:
    """Print the log of the library, such as the number of skipped blank lines, on stderr."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("note: %(message)s"))
    logger = logging.getLogger("hanlattice")
    logger.handlers = [handler]
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def _message(error: Exception) -> str:
    """The error in one line."""
    match error:
        case HanlatticeError():
            message = str(error)
        case shutil.Error():  # holds a list of (source, target, reason)
            source, _, reason = error.args[0][0]
            message = f"{source}: cannot be copied: {reason}"
        case OSError():
            where = f"{error.filename}: " if error.filename is not None else ""
            message = f"{where}{error.strerror or error}"
        case MemoryError():
            message = "out of memory; try a smaller --batch-size"
        case RuntimeError() if str(error) == "can't start new thread":
            message = "out of memory, or too many threads; try fewer --threads"
        case _:
            message = f"unexpected {type(error).__name__}: {error}; --debug prints the traceback"
    return " ".join(message.split("\n"))


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """One line; by default, Python also prints its own file and the line of code that warns."""
    typer.echo(f"warning: {' '.join(str(message).split())}", err=True)


def _print_error(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
