"""URL: addresses with a scheme, beginning with www., or with a domain of a well-known ending.

An address ends at a space, at a Chinese character, and before closing punctuation. The value is the address with
scheme and host in lower case.
"""

import re
from string import ascii_letters, digits

from hanlattice.patterns.scan import Found, Scan

FIRST = frozenset(ascii_letters + digits)

_DOMAINS = (
    "com|cn|net|org|edu|gov|io|info|biz|top|xyz|ai|app|dev|me|tv|cc|co|hk|tw|mo|jp|kr"
    "|sg|uk|de|fr|ru|us|eu|int|mil|shop|tech|site"
)
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
_PORT = r"(?::[0-9]{1,5}(?![0-9]))?"
_WITH_SCHEME = re.compile(
    rf"(?:https?|ftps?|sftp|wss?)://(?>[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}}+){{0,8}}){_PORT}", re.I
)
_WITHOUT = re.compile(
    rf"(?:www\.{_HOST}[A-Za-z]{{2,24}}|{_HOST}(?:{_DOMAINS})){_PORT}(?![A-Za-z0-9@-]|\.[A-Za-z0-9])", re.I
)
_TICKER = re.compile(r"[A-Z]{1,5}\.US")  # of a share
_REST = re.compile(r"[/?#][A-Za-z0-9._~:/?#\[\]@!$&'(*+),;=%-]{0,2000}")
_CLOSING = frozenset(".,;:!?'")
_BRACKETS = {")": "(", "]": "["}


def parse(scan: Scan, i: int) -> Found | None:
    """The address at ``i``."""
    host = _WITH_SCHEME.match(scan.text, i) or _WITHOUT.match(scan.text, i)
    if host is None:
        return None
    rest = _REST.match(scan.text, host.end())
    if rest is None and _TICKER.fullmatch(host[0]) is not None:
        return None
    end = host.end() if rest is None else _trimmed(scan.text, host.end(), rest.end())
    return Found(end, host[0].lower() + scan.text[host.end() : end])


def _trimmed(text: str, start: int, end: int) -> int:
    """The end without closing punctuation, and without closing brackets that were not opened in the address."""
    unopened = {
        close: text.count(close, start, end) - text.count(opening, start, end)
        for close, opening in _BRACKETS.items()
    }
    while end > start:
        last = text[end - 1]
        if unopened.get(last, 0) > 0:
            unopened[last] -= 1
        elif last not in _CLOSING:
            break
        end -= 1
    return end
