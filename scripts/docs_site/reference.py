"""The reference of commands and of the API, written from the code into the pages that ask for it.

A page asks by a comment, which a Git host does not show: ``<!-- commands -->`` or ``<!-- api -->``.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from typer.main import get_command

from hanlattice.cli import COMMANDS, app

# The classes that users' own parts extend or receive, beside the public names of the package.
PARTS = {
    "hanlattice.embeddings.base": ("Embedding",),
    "hanlattice.encoders.base": ("Encoder", "WordEncoder"),
    "hanlattice.decoders.base": ("Decoder",),
    "hanlattice.inputs.batch": ("Batch", "Words"),
}
MODULES = {
    "hanlattice": (
        *("load", "save", "train", "tune", "evaluate", "NER", "Document", "Entity", "Lattice", "Span", "Lexicon"),
        *("Config", "Tagger", "HanlatticeError"),
    ),
    "hanlattice.errors": (
        "DataError",
        "WriteError",
        "ConfigError",
        "UnknownConvention",
        "ModelError",
        "EngineError",
    ),
    "hanlattice.corpus": ("read", "write", "detect"),
    "hanlattice.patterns": ("Patterns",),
}


def filled_in(text: str) -> str:
    """The page with its generated parts."""
    for name, content in (("commands", commands), ("api", api), ("parts", parts)):
        comment = f"<!-- {name} -->"
        if comment in text:
            text = text.replace(comment, content())
    return text


def commands() -> str:
    """Markdown of all commands: usage, description, arguments and options as ``--help`` prints them."""
    group: Any = get_command(app)
    return "\n\n".join(part for name in COMMANDS for part in _sections(group.get_command(None, name), name, 2))


def _sections(command: Any, name: str, level: int) -> Iterator[str]:
    context = command.context_class(command, info_name=f"hanlattice {name}")
    yield f"{'#' * level} `{name}`"
    yield f"```\nhanlattice {name} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield _escaped(command.help or COMMANDS.get(name, ""))
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        rows = [parameter.get_help_record(context) for parameter in command.params]
        yield _table([row for row in rows if row])
    for sub, inner in subcommands.items():
        yield from _sections(inner, f"{name} {sub}", level + 1)


def _table(records: Iterable[tuple[str, str]]) -> str:
    rows = ["| argument or option | meaning |", "|---|---|"]
    for name, meaning in records:
        name = name.lower() if "<" in name else name
        rows.append(f"| `{name}` | {_escaped(meaning)} |".replace("\n", " "))
    return "\n".join(rows)


def _escaped(text: str) -> str:
    """Text of a help message as Markdown: what is not in backquotes is taken literally."""
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([\\*_\[\]<>|])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)


def api() -> str:
    """Directives that document the public names."""
    return _directives(MODULES)


def parts() -> str:
    """Directives that document the classes which users extend."""
    return _directives(PARTS)


def _directives(modules: dict[str, tuple[str, ...]]) -> str:
    lines = []
    for module, names in modules.items():
        for name in names:
            kind = "autoclass" if name[0].isupper() else "autofunction"
            lines += [f".. {kind}:: {module}.{name}", *(["   :members:"] if kind == "autoclass" else []), ""]
    return "\n".join(["```{eval-rst}", *lines, "```"])
