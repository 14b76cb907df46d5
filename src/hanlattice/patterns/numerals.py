"""Numbers, in Arabic digits, Chinese numerals and mixtures of both, exactly as decimals.

=========== ============ ===========================================
3,500.5     3500.5       groups of three digits
3.5万       35000        digits with 百, 千, 万, 亿
1亿2000万   120000000    several such groups, in descending order
1万2000     12000        a last group without a unit
1万零500    10500        零 before it
3点5万      35000        点 as the decimal point, before a multiplier or a unit such as 公里
十二点五    12.5         Chinese numerals
一万二      12000        a last digit counts tenths of the unit before it
壹万贰仟    12000        the numerals of financial documents
二〇二四    digits 2024  digits without units: for years, not for amounts
两三百      200, 300     two digits side by side are an estimate
3000至5000  3000, 5000   a range
5、6        5, 6         two successive digits are an estimate
-3至5       -3, 5        the sign before a range is that of its low end
十几        no value     几 and 数 are unknown digits
20余万      200000       余, 多 and 来 do not change the value
=========== ============ ===========================================
"""

import re
from decimal import Decimal
from typing import NamedTuple

from hanlattice.patterns.scan import DIGITS, Scan

CHINESE_DIGITS = dict(zip("零〇○一二三四五六七八九两壹贰叁肆伍陆柒捌玖", "0001234567892123456789", strict=True))
UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
MYRIADS = {"万": 10**4, "亿": 10**8}
TWENTIES = {"廿": "二十", "卅": "三十"}
UNKNOWN = frozenset("几数")
ABOUT = frozenset("多余来")
_BEFORE_POINT = frozenset(" :(Oo") | {""}  # .5 is not 5; after a word, the point may end a sentence
_FINANCIAL = frozenset("壹贰叁肆伍陆柒捌玖")
SIGNS = {"+": 1, "-": -1, "负": -1}

NUMERALS = frozenset(CHINESE_DIGITS) | UNITS.keys() | MYRIADS.keys() | TWENTIES.keys()
"""The characters of Chinese numerals."""

FIRST = DIGITS | NUMERALS | UNKNOWN | {"上"}
"""The characters with which an amount starts."""

_LONGEST = 24  # characters of a Chinese numeral, and digits of an Arabic one
_ARABIC = re.compile(r"(?>[0-9]{1,3}(?:,[0-9]{3}){1,7}|[0-9]{1,24})(?>(?:\.[0-9]{1,12})?)(?![0-9])(?!,[0-9]{3})")
# 3点5万; without a multiplier or such a unit, the digits after 点 are minutes.
_SPOKEN_POINT = re.compile("[0-9]{1,4}+点[0-9]{1,2}(?=[百千]?[万亿]|公里|千米|公斤|倍|%|个百分点)")
_TEN = re.compile("十")
_INTEGER = re.compile(r"[0-9]{1,4}+(?![0-9])")
_OTHERS = "".join(sorted((NUMERALS | UNKNOWN) - {"两"}))
# 两 is a weight (八两) unless it comes first, before a unit (一万两千), in 一两, or in an estimate (一千两三百).
_RUN = re.compile(f"(?>(?:[{_OTHERS}]|两)(?:[{_OTHERS}]|(?<=一)两|两(?=三?[百千万亿]|三十)){{0,{_LONGEST}}})")
_SIMPLE = re.compile(f"两|[{''.join(CHINESE_DIGITS).replace('两', '')}十廿卅]{{1,4}}+")
_FRACTION = re.compile(f"[{''.join(CHINESE_DIGITS).replace('两', '')}]{{1,12}}+")
_MULTIPLIER = re.compile("[十百千]?+[万亿]{1,2}+|百(?!帕)|千(?![米克瓦卡帕焦赫伏])")
_MINUTES = frozenset("十分刻半时")  # after 点 and digits: the digits are minutes


class Integer(NamedTuple):
    """A small number as it occurs in dates: its end, its value, its digits, and whether they are Chinese."""

    end: int
    value: int
    digits: str
    chinese: bool


class Amount(NamedTuple):
    """A number from ``low`` to ``high``, which are equal unless it is a range; None if not known.

    ``bare`` is True if it begins with a unit, as in 百万. ``scaled`` is True if it ends with a word such as 万.
    """

    end: int
    low: Decimal | None
    high: Decimal | None
    bare: bool = False
    scaled: int = 1
    chinese: bool = False

    def times(self, factor: Decimal) -> "Amount":
        """The amount multiplied by a factor."""
        return self._replace(low=_product(self.low, factor), high=_product(self.high, factor))

    def signed(self, sign: int) -> "Amount":
        """The amount with a sign: -1 for minus, 1 for plus, 0 for none."""
        return self.times(Decimal(-1)) if sign < 0 else self

    def to(self, last: "Amount", *, descending: bool) -> "Amount | None":
        """The range up to another amount; None if an end is not known, or if it descends and may not."""
        if self.low is None or last.high is None or (self.low >= last.high and not descending):
            return None
        return Amount(last.end, min(self.low, last.high), max(self.low, last.high))


def _product(number: Decimal | None, factor: Decimal) -> Decimal | None:
    """The product, without the zeros at the end of a fraction."""
    if number is None or factor == 1:
        return number
    return Decimal(written((number * factor).normalize()))


def written(number: Decimal) -> str:
    """A number in plain decimal notation, without an exponent."""
    return format(number, "f")


def integer(scan: Scan, i: int) -> Integer | None:
    """The whole number at ``i``: up to four Arabic digits, or Chinese numerals below 100 or digit by digit."""
    if scan[i] in DIGITS:
        arabic = _INTEGER.match(scan.text, i)
        return None if arabic is None else Integer(arabic.end(), int(arabic[0]), arabic[0], False)
    found = _SIMPLE.match(scan.text, i)
    if found is None or _is_in_a_word(scan, i, found[0]):
        return None
    numeral = found[0]
    if all(character in CHINESE_DIGITS for character in numeral):
        digits = "".join(CHINESE_DIGITS[character] for character in numeral)
        return Integer(found.end(), int(digits), digits, True)
    value = chinese(numeral)
    return None if value is None else Integer(found.end(), int(value), written(value), True)


def _is_in_a_word(scan: Scan, i: int, numeral: str) -> bool:
    """Whether a single numeral of financial documents is a part of another word, as 陆 is in 登陆点 and 大陆."""
    return len(numeral) == 1 and numeral in _FINANCIAL and scan[i - 1] not in ("年", "月", "零")


def _two_in_a_row(scan: Scan, i: int) -> Amount | None:
    """An estimate with two digits and 、 between them: 5、6 is 5 to 6, and 二、三十 is 20 to 30."""
    first, second = scan[i], scan[i + 2]
    if scan[i + 1] != "、" or scan[i - 1] in ("、", "第") or scan[i - 1] in DIGITS or scan[i - 1] in NUMERALS:
        return None
    if (first in DIGITS) != (second in DIGITS):
        return None
    low = int(CHINESE_DIGITS.get(first, first)) if first in DIGITS or first in CHINESE_DIGITS else 0
    number = scan.once(single, i + 2) if low else None
    if number is None or number.low is None or number.low != number.high:
        return None
    for size in (1, 10, 100, 1000, 10**4, 10**8):
        if number.low == (low + 1) * size and (second not in DIGITS or size in (1, number.scaled)):
            return number._replace(low=Decimal(low * size))
    return None


def amount(scan: Scan, i: int) -> Amount | None:
    """The number or range of numbers at ``i``, as in 3000, 3000至5000, 10-15万 or 5、6."""
    low = scan.once(single, i)
    if low is None:
        return None
    in_a_row = _two_in_a_row(scan, i)
    if in_a_row is not None:
        return in_a_row
    joint = scan.joint(low.end)
    high = scan.once(single, joint) if joint > 0 else None
    return low if high is None else _range(low, high, descending=False) or low


def signed(scan: Scan, i: int, sign: int) -> Amount | None:
    """The number or range of numbers at ``i``, after a sign: (-)3, (-)3至5 or (-)5至-3."""
    low = scan.once(single, i)
    if low is None:
        return None
    in_a_row = None if sign else _two_in_a_row(scan, i)
    if in_a_row is not None:
        return in_a_row
    low = low.signed(sign)
    start, sign = second_number(scan, low.end, sign)
    high = scan.once(single, start) if start > 0 else None
    return low if high is None else _range(low, high.signed(sign), descending=bool(sign)) or low


def second_number(scan: Scan, i: int, sign: int) -> tuple[int, int]:
    """The start and the sign of the second number of a range, whose first one has a sign and ends at ``i``.

    The start is -1 if no joint follows, as in -5 -3, where both hyphens are signs. The second hyphen of 3--5 is no
    sign, that of -5--3 is one.
    """
    joint = scan.joint(i)
    if sign and scan[i] == " " and scan[joint - 1] == "-":
        return -1, 0
    if joint < 0 or scan[joint] not in SIGNS or (not sign and scan[joint] == scan[joint - 1] == "-"):
        return joint, 0
    return joint + 1, SIGNS[scan[joint]]


def _range(low: Amount, high: Amount, *, descending: bool) -> Amount | None:
    """The range of two numbers.

    A word such as 万 after the second one multiplies both, as in 3-5万, unless the first is too large for it, as in
    5000-1万.
    """
    if high.bare or low.low != low.high or high.low != high.high:
        return None
    scaled = low.times(Decimal(high.scaled)) if low.scaled == 1 < high.scaled else low
    return (
        scaled.to(high, descending=False)
        or low.to(high, descending=False)
        or scaled.to(high, descending=descending)
    )


def single(scan: Scan, i: int) -> Amount | None:
    """The number at ``i`` that is not a range with a joint, such as 3.5万, 十二点五, 两三百 or 20余万."""
    if scan[i - 1] == "第" or (scan[i - 1] == "." and scan[i] in DIGITS and scan[i - 2] in _BEFORE_POINT):
        return None
    if scan[i] == "上" and scan[i - 1] != "以" and scan[i + 1] in ("百", "千", "万", "亿", "十"):
        return scan.once(single, i + 1)
    found = _arabic(scan, i) if scan[i] in DIGITS else _chinese(scan, i)
    if found is None or scan[found.end] not in ABOUT:
        return found
    multiplier = _MULTIPLIER.match(scan.text, found.end + 1)
    if multiplier is None:
        return found._replace(end=found.end + 1)
    factor = _factor(multiplier[0])
    return found.times(Decimal(factor))._replace(end=multiplier.end(), scaled=factor)


def chinese(numeral: str) -> Decimal | None:
    """The value of a Chinese numeral without a fraction; None if it is not well-formed."""
    for short, long in TWENTIES.items():
        numeral = numeral.replace(short, long)
    for word, size in reversed(MYRIADS.items()):
        before, sign, after = numeral.rpartition(word)
        if sign:
            return _above_and_below(before, size, after)
    return _section(numeral)


def _above_and_below(before: str, size: int, after: str) -> Decimal | None:
    """The value of ``before`` times ``size``, plus ``after``."""
    above = chinese(before) if before else Decimal(1)
    if not after:
        below: Decimal | None = Decimal(0)
    elif len(after) == 1 and after in CHINESE_DIGITS:
        below = Decimal(CHINESE_DIGITS[after]) * size / 10
    else:
        below = chinese(after.lstrip("零〇"))
    return None if above is None or below is None or below >= size else above * size + below


def _section(numeral: str) -> Decimal | None:
    """The value of a numeral below 10,000: digits and units, the units in descending order."""
    total, digit, smallest, zero = 0, None, 10**4, False
    for character in numeral:
        if character in UNITS:
            unit = UNITS[character]
            if unit >= smallest or digit == 0:
                return None
            total += (1 if digit is None else digit) * unit
            digit, smallest, zero = None, unit, False
        elif CHINESE_DIGITS.get(character) == "0" and digit is None and (total or len(numeral) == 1):
            zero = True
        elif character in CHINESE_DIGITS and digit is None:
            digit = int(CHINESE_DIGITS[character])
        else:
            return None
    if digit is None:
        return Decimal(total)
    colloquial = smallest in (100, 1000) and not zero  # 三千五 is 3500
    return Decimal(total + digit * (smallest // 10 if colloquial else 1))


def _arabic(scan: Scan, i: int) -> Amount | None:
    """Arabic digits, perhaps with multipliers: 3.5万, 1亿2000万, 1万2000, 3万5."""
    if scan[i] == "0" and scan[i + 1] in DIGITS and scan[i - 1] in (",", "、") and scan[i - 2] in DIGITS:
        return None  # the end of a number that is grouped in another way, as in 35,00
    total, smallest, end, scaled = Decimal(0), 10**24, i, 1
    while scan[start := _after_zero(scan, end) if end > i else i] in DIGITS:
        digits = _SPOKEN_POINT.match(scan.text, start) if end == i else None
        digits = digits or _ARABIC.match(scan.text, start)
        if digits is None or (end > i and "." in digits[0]):
            break
        after = scan.gap(digits.end())
        multiplier = _MULTIPLIER.match(scan.text, after)
        if multiplier is None and end > i and scan[after] == "十":
            multiplier = _TEN.match(scan.text, after)
        if multiplier is None and end > i:
            has_zero = scan[start - 1] in ("零", "〇")
            is_apart = start > end and not has_zero
            rest = None if is_apart else _without_unit(scan, digits, smallest, has_zero=has_zero)
            if rest is not None:
                end, total, scaled = digits.end(), total + rest, 1
            break
        factor = 1 if multiplier is None else _factor(multiplier[0])
        if factor >= smallest:
            break
        part = _product(Decimal(digits[0].replace(",", "").replace("点", ".")), Decimal(factor))
        assert part is not None
        total += part
        scaled = factor if end == i else 1
        end = digits.end() if multiplier is None else multiplier.end()
        smallest = factor
    return None if end == i else Amount(end, total, total, scaled=scaled)


def _after_zero(scan: Scan, i: int) -> int:
    """The position after a space, or after 零 before digits, as in 1万零500."""
    return i + 1 if scan[i] in ("零", "〇") and scan[i + 1] in DIGITS else scan.gap(i)


def _without_unit(scan: Scan, digits: re.Match[str], unit: int, *, has_zero: bool) -> Decimal | None:
    """Digits without a unit after a number with this unit: 2000 in 1万2000.

    One digit counts tenths, as 5 in 3万5, unless 零 stands before it.
    """
    number = Decimal(digits[0].replace(",", ""))
    if number >= unit or scan[digits.end()] in UNITS or scan[digits.end()] in MYRIADS:
        return None
    return number * unit / 10 if len(digits[0]) == 1 and not has_zero else number


def _factor(multiplier: str) -> int:
    factor = 1
    for character in multiplier:
        factor *= UNITS.get(character) or MYRIADS[character]
    return factor


def _chinese(scan: Scan, i: int) -> Amount | None:
    run = _RUN.match(scan.text, i)
    if run is None or scan[run.end()] in NUMERALS - {"两"}:
        return None
    if _is_in_a_word(scan, i, run[0]) and scan[run.end()] not in ("元", "圆", "角", "分"):
        return None
    numeral, bare = run[0], run[0][0] in "百千万亿佰仟"
    scaled = MYRIADS.get(numeral[-1], 1)
    if UNKNOWN.intersection(numeral):
        return Amount(run.end(), None, None, chinese=True) if _is_vague(numeral) else None
    value = chinese(numeral)
    if value is not None:
        fraction = _fraction(scan, run.end())
        if fraction is None:
            return Amount(run.end(), value, value, bare, scaled, chinese=True)
        end, digits = fraction
        value += Decimal(f"0.{digits}")
        number = Amount(end, value, value, chinese=True)
        multiplier = _MULTIPLIER.match(scan.text, end)
        if multiplier is None:
            return number
        factor = _factor(multiplier[0])
        return number.times(Decimal(factor))._replace(end=multiplier.end(), scaled=factor)
    estimate = _estimate(numeral)
    return None if estimate is None else Amount(run.end(), *estimate, bare, scaled, chinese=True)


def _fraction(scan: Scan, i: int) -> tuple[int, str] | None:
    """The digits after 点, unless they are the minutes of a time."""
    digits = _FRACTION.match(scan.text, i + 1) if scan[i] == "点" else None
    if digits is None or scan[digits.end()] in _MINUTES:
        return None
    return digits.end(), "".join(CHINESE_DIGITS[character] for character in digits[0])


def _is_vague(numeral: str) -> bool:
    """Whether 几 or 数 stands beside a unit, as in 十几, 几百 or 数百万."""
    for unknown in UNKNOWN:
        at = numeral.find(unknown)
        if at < 0:
            continue
        rest = numeral[:at] + numeral[at + 1 :]
        after = numeral[at + 1 : at + 2] in {*UNITS, *MYRIADS}
        before = unknown == "几" and numeral[at - 1 : at] in {"十", "百"}
        return bool(rest) and (after or before) and chinese(numeral.replace(unknown, "三")) is not None
    return False


def _estimate(numeral: str) -> tuple[Decimal, Decimal] | None:
    """The two values of a numeral with two digits side by side, as in 两三百, 七八 or 十七八."""
    for at in range(len(numeral) - 1):
        pair = [CHINESE_DIGITS.get(character) for character in numeral[at : at + 2]]
        if None in pair:
            continue
        low, high = chinese(numeral[: at + 1] + numeral[at + 2 :]), chinese(numeral[:at] + numeral[at + 1 :])
        first, second = (int(digit or 0) for digit in pair)
        side_by_side = first > 0 and (second == first + 1 or (first, second) == (3, 5))
        return (low, high) if low is not None and high is not None and side_by_side else None
    return None
