"""PERCENT: 12.5%, 百分之五十, 千分之三, 三成五, 0.25个百分点, 25个基点.

The value is a decimal and a unit: ``12.5 %``, ``10..20 %`` for a range, ``5 pp`` for percentage points and ``25
bp`` for basis points. Per mille and per ten thousand are converted to per cent.
"""

from decimal import Decimal

from hanlattice.patterns import numerals
from hanlattice.patterns.numerals import Amount, amount, integer, written
from hanlattice.patterns.scan import Found, Scan, Words

_SIGNS = Words({"%": 1, "‰": 10, "‱": 100})
_PREFIXES = Words({"百分之": 1, "千分之": 10, "万分之": 100})
_POINTS = Words({"个百分点": "pp", "百分点": "pp", "个基点": "bp", "基点": "bp"})
_NOT_TENTHS = frozenset("为本员立都人长功果绩分熟就群套名见片天年语员交份色器品对双不")

FIRST = numerals.FIRST | _PREFIXES.first | frozenset("+-负")


def parse(scan: Scan, i: int) -> Found | None:
    """The percentage at ``i``, or the range of percentages."""
    if scan[i] in ("+", "-", "负"):
        if scan[i] != "负" and scan[i - 1].isascii() and scan[i - 1].isalnum():
            return None
        found = _one(scan, i + 1)
        sign = Decimal(1 if scan[i] == "+" else -1)
        return None if found is None else _found(found[0].times(sign), found[1])
    first = _one(scan, i)
    if first is None:
        return None
    joint = scan.joint(first[0].end)
    last = _one(scan, joint) if joint > 0 else None
    if last is None or last[1] != first[1] or None in (first[0].low, last[0].high):
        return _found(*first)
    return _found(first[0]._replace(end=last[0].end, high=last[0].high), first[1])


def _found(number: Amount, unit: str) -> Found:
    if number.low is None or number.high is None:
        return Found(number.end, None)
    low, high = (written(n.normalize()) for n in sorted((number.low, number.high)))
    return Found(number.end, f"{low} {unit}" if low == high else f"{low}..{high} {unit}")


def _one(scan: Scan, i: int) -> tuple[Amount, str] | None:
    prefix = _PREFIXES.at(scan, i)
    if prefix is not None:
        number = scan.once(amount, prefix[0])
        return None if number is None else (number.times(Decimal(1) / prefix[1]), "%")
    number = scan.once(amount, i)
    if number is None or number.bare:
        return None
    end = scan.gap(number.end)
    sign = _SIGNS.at(scan, end)
    if sign is not None:
        return number.times(Decimal(1) / sign[1])._replace(end=sign[0]), "%"
    points = _POINTS.at(scan, end)
    if points is not None:
        return number._replace(end=points[0]), points[1]
    return _tenths(scan, number)


def _tenths(scan: Scan, number: Amount) -> tuple[Amount, str] | None:
    """三成, 七成五: tenths and hundredths."""
    if scan[number.end] != "成" or number.high is None or not 0 < number.high <= 10:
        return None
    if scan[number.end + 1] in _NOT_TENTHS or (number.chinese and scan[number.end + 1] in ("变",)):
        return None
    hundredths = integer(scan, number.end + 1)
    tenths = number.times(Decimal(10))._replace(end=number.end + 1)
    if hundredths is None or len(hundredths.digits) > 1 or tenths.low is None or tenths.low != tenths.high:
        return tenths, "%"
    more = tenths.low + hundredths.value
    return Amount(hundredths.end, more, more), "%"
