"""Regular expressions that users write, run by RE2, whose time is linear in the text whatever the expression.

RE2 has no backreferences and no look-around: an expression with them is refused. A limit of time is not needed, and
would make the result depend on the machine. Needs google-re2.
"""

from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from hanlattice.errors import ConfigError
from hanlattice.patterns.grammar import Match
from hanlattice.patterns.scan import Scan

_MEMORY = 8 << 20  # bytes for a compiled expression


@lru_cache(maxsize=1024)
def compiled(source: str) -> Any:
    """The compiled expression.

    Raises:
        ConfigError: google-re2 is not installed, or RE2 refuses the expression.
    """
    if find_spec("re2") is None:
        raise ConfigError(
            f"the regular expression {source!r} needs google-re2:"
            " pip install 'hanlattice[patterns]', or write a pattern"
        )
    import re2

    options = re2.Options()
    options.max_mem = _MEMORY
    options.log_errors = False
    try:
        expression = re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"the regular expression {source!r} is refused: {reason}; RE2 has no backreferences and no look-around,"
            " because they would have to backtrack"
        ) from None
    if expression.match("") is not None:
        raise ConfigError(
            f"the regular expression {source!r} also matches an empty text; make one part of it required"
        )
    return expression


def matches(expression: Any, label: str, scan: Scan) -> Iterator[Match]:
    """The matches from the left; the entity is the first group if there is one, else the whole match."""
    for found in expression.finditer(scan.text):
        start, end = found.span(1) if expression.groups else found.span()
        if start < end:
            yield Match(start, end, label, None)
