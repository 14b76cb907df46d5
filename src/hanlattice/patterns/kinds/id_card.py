"""ID_CARD: the numbers of identity cards of China, by GB 11643.

18 characters with a check character (ISO 7064, MOD 11-2), or 15 digits as issued before 1999, whose value is the
number of 18 characters. The region and the date of birth are checked too; a wrong number is no entity.
"""

import re
from datetime import date

from hanlattice.patterns.scan import DIGITS, Found, Scan

FIRST = DIGITS

_NUMBER = re.compile(r"[0-9]{17}[0-9Xx]|[0-9]{15}")
_REGIONS = frozenset(
    [
        "11",
        "12",
        "13",
        "14",
        "15",
        "21",
        "22",
        "23",
        "31",
        "32",
        "33",
        "34",
        "35",
        "36",
        "37",
        "41",
        "42",
        "43",
        "44",
        "45",
        "46",
        "50",
        "51",
        "52",
        "53",
        "54",
        "61",
        "62",
        "63",
        "64",
        "65",
        "71",
        "81",
        "82",
        "83",
    ]
)
_CHECKS = "10X98765432"


def parse(scan: Scan, i: int) -> Found | None:
    """The identity card number at ``i``."""
    match = _NUMBER.match(scan.text, i)
    if match is None or scan[match.end()] in DIGITS or match[0][:2] not in _REGIONS:
        return None
    number = match[0].upper()
    if len(number) == 15:
        body = f"{number[:6]}19{number[6:]}"
        return Found(match.end(), body + check(body)) if _is_day(body[6:14]) else None
    return Found(match.end(), number) if _is_day(number[6:14]) and check(number[:17]) == number[17] else None


def check(body: str) -> str:
    """The check character of 17 digits: GB 11643, ISO 7064 MOD 11-2."""
    return _CHECKS[sum(int(digit) * pow(2, 17 - i, 11) for i, digit in enumerate(body)) % 11]


def _is_day(digits: str) -> bool:
    try:
        return date.fromisoformat(digits).year >= 1850
    except ValueError:
        return False
