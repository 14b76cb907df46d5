"""PERCENT: 12.5%, 百分之五十, 千分之三, 三成五, 0.25个百分点, 25个基点.

The value is a decimal and a unit: ``12.5 %``, ``10..20 %`` for a range, ``5 pp`` for percentage points and ``25
bp`` for basis points. Per mille and per ten thousand are converted to per cent.
"""

from decimal import Decimal

from hanlattice.patterns import numerals
from hanlattice.patterns.numerals import SIGNS, Amount, integer, second_number, signed, written
from hanlattice.patterns.scan import Found, Scan, Words

_MARKS = Words({"%": 1, "‰": 10, "‱": 100})
_PREFIXES = Words({"百分之": 1, "千分之": 10, "万分之": 100})
_POINTS = Words({"个百分点": "pp", "百分点": "pp", "个基点": "bp", "基点": "bp"})
_NOT_TENTHS = frozenset("为本员立都人长功果绩分熟就群套名见片天年语员交份色器品对双不")

FIRST = numerals.FIRST | _PREFIXES.first | frozenset("+-负")


def parse(scan: Scan, i: int) -> Found | None:
    """The percentage at ``i``, or the range of percentages."""
    sign = SIGNS.get(scan[i], 0)
    if scan[i] in ("+", "-") and scan[i - 1].isascii() and scan[i - 1].isalnum():
        return None
    first = _one(scan, i + abs(sign), sign)
    if first is None:
        return None
    start, last_sign = second_number(scan, first[0].end, sign)
    last = _one(scan, start, last_sign) if start > 0 else None
    if last is None or last[1] != first[1]:
        return _found(*first)
    return _found(first[0].to(last[0], descending=not sign or bool(last_sign)) or first[0], first[1])


def _found(number: Amount, unit: str) -> Found:
    if number.low is None or number.high is None:
        return Found(number.end, None)
    low, high = (written(n.normalize()) for n in sorted((number.low, number.high)))
    return Found(number.end, f"{low} {unit}" if low == high else f"{low}..{high} {unit}")


def _one(scan: Scan, i: int, sign: int) -> tuple[Amount, str] | None:
    prefix = _PREFIXES.at(scan, i)
    if prefix is not None:
        number = signed(scan, prefix[0], sign)
        return None if number is None else (number.times(Decimal(1) / prefix[1]), "%")
    number = signed(scan, i, sign)
    if number is None or number.bare:
        return None
    end = scan.gap(number.end)
    found = _MARKS.at(scan, end)
    if found is not None:
        return number.times(Decimal(1) / found[1])._replace(end=found[0]), "%"
    points = _POINTS.at(scan, end)
    if points is not None:
        return number._replace(end=points[0]), points[1]
    return _tenths(scan, number, sign)


def _tenths(scan: Scan, number: Amount, sign: int) -> tuple[Amount, str] | None:
    """三成, 七成五: tenths and hundredths."""
    if scan[number.end] != "成" or number.low is None or number.high is None:
        return None
    if not 0 < max(-number.low, number.high) <= 10:
        return None
    if scan[number.end + 1] in _NOT_TENTHS or (number.chinese and scan[number.end + 1] in ("变",)):
        return None
    tenths = number.times(Decimal(10))._replace(end=number.end + 1)
    if tenths.low is None or tenths.low != tenths.high:
        return tenths, "%"
    hundredths = integer(scan, tenths.end)
    if scan[tenths.end] == "半" and scan[tenths.end + 1] != "数":  # 三成半
        end, more = tenths.end + 1, 5
    elif hundredths is not None and len(hundredths.digits) == 1:
        end, more = hundredths.end, hundredths.value
    else:
        return tenths, "%"
    total = tenths.low + (-more if sign < 0 else more)
    return Amount(end, total, total), "%"
