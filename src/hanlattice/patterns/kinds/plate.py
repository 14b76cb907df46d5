"""PLATE: licence plates of vehicles of mainland China (GA 36): 京A12345, 粤BD12345, 冀A1234学, 粤ZA123港.

The value has no separators and upper-case letters.
"""

import re

from hanlattice.patterns.scan import Found, Scan

PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
FIRST = frozenset(PROVINCES)

_LETTER, _SIGN = "A-HJ-NP-Z", "A-HJ-NP-Z0-9"  # without I and O
_PLATE = re.compile(
    f"[{PROVINCES}][{_LETTER}][· .-]?"
    f"(?:[DF][{_SIGN}][0-9]{{4}}|[0-9]{{5}}[DF]|[{_SIGN}]{{4}}[警学挂港澳使领]|[{_SIGN}]{{3}}[港澳]|[{_SIGN}]{{5}})",
    re.IGNORECASE,
)


def parse(scan: Scan, i: int) -> Found | None:
    """The licence plate at ``i``; at least one character after the first letter is a digit."""
    match = _PLATE.match(scan.text, i)
    if match is None or not any(character.isdigit() for character in match[0]):
        return None
    return Found(match.end(), "".join(character for character in match[0].upper() if character not in "· .-"))
