"""EMAIL: addresses as in RFC 5321, without quoted and non-ASCII local parts. The value has a lower-case domain."""

import re
from string import ascii_letters, digits

from hanlattice.patterns.scan import Found, Scan

FIRST = frozenset(ascii_letters + digits)

_ADDRESS = re.compile(
    r"(?>[A-Za-z0-9_%+-]{1,64}(?:\.[A-Za-z0-9_%+-]{1,64}+){0,8})@((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24})"
)


def parse(scan: Scan, i: int) -> Found | None:
    """The e-mail address at ``i``."""
    match = _ADDRESS.match(scan.text, i)
    if match is None:
        return None
    local = match[0][: match.start(1) - i]
    return Found(match.end(), local + match[1].lower())
