"""BANK_CARD: card numbers (ISO/IEC 7812) with the prefix and length of a network and a valid check digit (Luhn).

The value is the digits. Numbers after words such as 订单号 are something else.
"""

import re

from hanlattice.patterns.scan import DIGITS, Found, Scan

FIRST = frozenset("23456")

_DIGITS = re.compile(r"[0-9]{15,19}")
_GROUPED = re.compile(r"[0-9]{4}(?:([- ])[0-9]{4}(?:\1[0-9]{4}){2}(?:\1[0-9]{1,3})?)")
_NETWORKS = (
    ("62", range(16, 20)),
    ("4367", (18, 19)),
    ("4", (16,)),
    ("34", (15,)),
    ("37", (15,)),
    ("35", (16,)),
    *((str(prefix), (16,)) for prefix in range(51, 56)),
    *((str(prefix), (16,)) for prefix in range(2221, 2721)),
)


def parse(scan: Scan, i: int) -> Found | None:
    """The card number at ``i``."""
    match = _GROUPED.match(scan.text, i) or _DIGITS.match(scan.text, i)
    if match is None or scan[match.end()] in DIGITS or scan[match.end()] == ".":
        return None
    number = "".join(character for character in match[0] if character in DIGITS)
    return Found(match.end(), number) if _has_network(number) and luhn(number) else None


def luhn(number: str) -> bool:
    """Whether the last digit is the check digit of the others: ISO/IEC 7812-1, annex B."""
    doubled = (2 * int(digit) for digit in number[-2::-2])
    return (sum(map(int, number[-1::-2])) + sum(n - 9 if n > 9 else n for n in doubled)) % 10 == 0


def _has_network(number: str) -> bool:
    return any(number.startswith(prefix) and len(number) in lengths for prefix, lengths in _NETWORKS)
