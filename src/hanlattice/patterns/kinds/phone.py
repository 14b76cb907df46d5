"""PHONE: mobile and landline numbers of China, 400 and 800 numbers, international and short service numbers.

The value is in E.164, ``+8613812345678``, with an extension as in RFC 3966 (``;ext=801``). Short numbers (110,
95588) are found only after a word such as 拨打 or 热线, and keep their digits.
"""

import re

from hanlattice.patterns.scan import DIGITS, Found, Scan

FIRST = DIGITS | frozenset("+(")

_MOBILE = re.compile(r"1[3-9][0-9](?:[- ]?[0-9]{4}){2}")
_LANDLINE = re.compile(r"\(?(0(?:10|2[0-9]|[3-9][0-9]{2}))\)?[- ]?([1-9][0-9]{2,3})[- ]?([0-9]{4})")
_WITHOUT_ZERO = re.compile(r"((?:10|2[0-9]|[3-9][0-9]{2}))[- ]([1-9][0-9]{2,3})[- ]?([0-9]{4})")
_FREE = re.compile(r"([48]00)(?:-?[0-9]{3}-?[0-9]{4}|-[0-9]{4}-[0-9]{3})")
_CHINA = re.compile(r"(?:\(\+86\)|\+86|0086|86(?=-))[- ]?")
_ABROAD = re.compile(r"\+(?!86)[1-9][0-9]{0,2}(?:[- ]?(?:[0-9]{1,4}|\([0-9]{1,4}\))){2,5}")
_EXTENSION = re.compile(r"(?:-|转分机|转|分机)([0-9]{1,6})")
_SHORT = re.compile(r"1[0-9]{2}|1[0-9]{4}|95[0-9]{3}|96[0-9]{3,4}|12[0-9]{3}")
_LISTED = re.compile(  # a short number before another one: 客服95588、10086, 拨打110或119
    r"(?:电话|热线|致电|拨打?|客服|总机|打) ?[:是为#(]? ?(?:[0-9]{3,6}(?: ?[、,/或和及] ?)){1,4}\Z"
)
_LONGEST_LIST = 40  # characters before a number
# 0755-12345678 before /87654321, which has the same code.
_SAME_CODE = re.compile(
    r"\(?(0(?:10|2[0-9]|[3-9][0-9]{2}))\)?[- ]?[1-9][0-9]{6,7}(?: ?[、,/] ?[1-9][0-9]{6,7}){0,3} ?[、,/] ?\Z"
)
_LOCAL = re.compile(r"[1-9][0-9]{6,7}(?![0-9])")
_BEFORE_SHORT = ("拨打", "电话", "热线", "致电", "拨", "客服", "总机", "打")


def parse(scan: Scan, i: int) -> Found | None:
    """The telephone number at ``i``."""
    if scan[i] == "(" and scan[i + 1] not in DIGITS and scan[i + 1] != "+":
        return None
    china = _CHINA.match(scan.text, i)
    found = _at(scan, i) if china is None else _at(scan, china.end(), home=True)
    if found is None:
        found = _abroad(scan, i) or _local(scan, i) or _short(scan, i)
    return None if found is None or scan[found.end] in DIGITS or scan[found.end] == "%" else found


def _at(scan: Scan, i: int, *, home: bool = False) -> Found | None:
    """A number of China; after its country code (``home``) a landline has no 0."""
    mobile = _MOBILE.match(scan.text, i)
    if mobile is not None and _is_even(mobile[0]):
        return Found(mobile.end(), "+86" + _digits(mobile[0]))
    free = _FREE.match(scan.text, i)
    if free is not None:
        return Found(free.end(), "+86" + _digits(free[0]))
    line = (_WITHOUT_ZERO.match(scan.text, i) if home else None) or _LANDLINE.match(scan.text, i)
    if line is None or (line[0][0] == "(") != (")" in line[0]):
        return None
    return _with_extension(scan, line.end(), "+86" + "".join(line.groups()).removeprefix("0"))


def _is_even(number: str) -> bool:
    """Whether a mobile number has two separators of one kind, or none."""
    separators = [character for character in number if character not in DIGITS]
    return len(separators) in (0, 2) and len(set(separators)) < 2


def _with_extension(scan: Scan, i: int, number: str) -> Found:
    extension = _EXTENSION.match(scan.text, i)
    if extension is None or scan[extension.end()] in DIGITS:
        return Found(i, number)
    return Found(extension.end(), f"{number};ext={extension[1]}")


def _abroad(scan: Scan, i: int) -> Found | None:
    match = _ABROAD.match(scan.text, i)
    if match is None or not 8 <= len(_digits(match[0])) <= 15:
        return None
    return Found(match.end(), "+" + _digits(match[0]))


def _local(scan: Scan, i: int) -> Found | None:
    """A landline after another one that has a code, as in 0755-12345678/87654321."""
    number = _LOCAL.match(scan.text, i) if scan[i - 1] in ("/", "、", ",", " ") else None
    before = None if number is None else _SAME_CODE.search(scan.text, max(0, i - _LONGEST_LIST), i)
    if number is None or before is None or scan[before.start() - 1] in DIGITS:
        return None
    return _with_extension(scan, number.end(), f"+86{before[1].removeprefix('0')}{number[0]}")


def _short(scan: Scan, i: int) -> Found | None:
    ends = [i + size for size in (6, 5, 3) if scan[i + size - 1] and _SHORT.fullmatch(scan.text, i, i + size)]
    end = next((end for end in ends if scan[end] not in DIGITS), None)
    is_amount = end is not None and scan[end] in (
        "元",
        "个",
        "次",
        "块",
        "人",
        "年",
        "分",
        "秒",
        "小",
        "天",
        ":",
        "-",
        ".",
        "万",
    )
    if end is None or is_amount:
        return None
    is_listed = _LISTED.search(scan.text, max(0, i - _LONGEST_LIST), i) is not None
    return Found(end, scan.text[i:end]) if is_listed or scan.follows(i, _BEFORE_SHORT) else None


def _digits(number: str) -> str:
    return "".join(character for character in number if character in DIGITS)
