"""DURATION: 三天, 两年半, 1小时30分钟, 3至5天, 十几天, and 15日 where it counts days, as in 15日内.

The value is an ISO 8601 duration, ``P3D``, ``P2Y6M`` or ``PT1H30M``; ``P3D..P5D`` for a range. 余, 多 and 来 do not
change it; 几 and 数 leave it open, and so do working days.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from hanlattice.patterns import numerals
from hanlattice.patterns.day import counts_days
from hanlattice.patterns.numerals import Amount, amount, single, written
from hanlattice.patterns.scan import DIGITS, Found, Scan, Words

CLOCK = frozenset("HmS")
"""The units below a day: hours, minutes and seconds."""

FIRST = numerals.FIRST | {"半"}


class Unit(NamedTuple):
    """A unit: its letter in ISO 8601 (``m`` for minutes), a factor, and half of it where that is a whole number."""

    code: str
    factor: Decimal = Decimal(1)
    half: tuple[str, int] | None = None


class Length(NamedTuple):
    """A duration in one unit: its end, the letter of the unit, and the number, None if it is not known exactly."""

    end: int
    unit: str
    number: Decimal | None


_HALF = Decimal("0.5")
_LARGEST_FIRST = "YMWDHmS"
_SECONDS = {"H": 3600, "m": 60, "S": 1}
_YEAR, _MONTH, _WEEK, _DAY = Unit("Y", half=("M", 6)), Unit("M"), Unit("W"), Unit("D", half=("H", 12))
_HOUR, _MINUTE, _SECOND = Unit("H", half=("m", 30)), Unit("m", half=("S", 30)), Unit("S")
_CENTURY = Unit("Y", Decimal(100))
_WORKING_DAY = Unit("D")  # of no fixed length
_UNITS = Words(
    {
        "年": _YEAR, "周年": _YEAR, "个世纪": _CENTURY, "个月": _MONTH, "个季度": Unit("M", Decimal(3)),
        "周": _WEEK,
        "个星期": _WEEK, "星期": _WEEK, "个礼拜": _WEEK, "礼拜": _WEEK, "天": _DAY, "个小时": _HOUR, "小时": _HOUR,
        "个钟头": _HOUR, "钟头": _HOUR, "分钟": _MINUTE, "刻钟": Unit("m", Decimal(15)), "秒": _SECOND,
        "秒钟": _SECOND,
        "毫秒": Unit("S", Decimal("0.001")), "个自然日": _DAY, "个工作日": _WORKING_DAY,
        "工作日": _WORKING_DAY, "个交易日": _WORKING_DAY,
    }
)  # fmt: skip
_MORE = {"个多" + name[1:]: unit for name, unit in _UNITS.table.items() if name[0] == "个"}  # 三个多月
_UNITS = Words(_UNITS.table | _MORE)
_AFTER_MORE = frozenset("前后以之来的，。、,.；;！!？?）) \n") | {""}
"""What follows 多 if it belongs to the duration before it, as in 三年多来."""

_AND_A_HALF = Words(
    {"个半小时": _HOUR, "个半钟头": _HOUR, "个半月": _MONTH, "个半世纪": _CENTURY, "个半星期": _WEEK}
)
_OTHER_WORDS = ("年级", "年代", "年底", "年初", "年末", "年度", "年薪", "年龄", "年轻", "天两头", "年五载",
"年半载",
"天地", "天窗",
                "周岁", "星期六", "周末")  # fmt: skip


# 四周 is mostly what surrounds something.
_AFTER_WEEKS = ("前", "后", "内", "之", "以", "左右", "时间", "的时间", "多", "半", "假", "来")
_BEFORE_WEEKS = (
    "为期",
    "期限",
    "约",
    "近",
    "长达",
    "共",
    "持续",
    "连续",
    "满",
    "过了",
    "了",
    "足足",
    "需",
    "需要",
    "休假",
)


def parse(scan: Scan, i: int) -> Found | None:
    """The duration at ``i``. The second number of 38+2周 and 3岁2个月 is none alone."""
    if scan[i - 1] == "岁" or (scan[i - 1] in ("+", "又", "零") and scan[i - 2] in DIGITS | {"岁"}):
        return None
    parts: dict[str, tuple[Decimal | None, Decimal | None]] = {}
    end, rank = i, -1
    while (part := _component(scan, end if end == i else _next(scan, end), rank)) is not None:
        end, number, unit, half = part
        rank = _LARGEST_FIRST.index(unit.code)
        parts[unit.code] = number
        if half is not None:
            parts[half[0]] = (Decimal(half[1]), Decimal(half[1]))
            break
        if unit.factor != 1 or number[0] != number[1]:
            break
    return Found(end, _value(parts)) if parts else None


def length(scan: Scan, i: int) -> Length | None:
    """The duration at ``i`` as a number of one unit, the smallest that it names."""
    part = _component(scan, i, -1)
    if part is None:
        return None
    end, (low, high), unit, half = part
    if low is None or low != high:
        return Length(end, unit.code, None)
    if half is None:
        return Length(end, unit.code, low)
    ratio = half[1] * 2
    return Length(end, half[0], low * ratio + half[1])


def seconds(found: Length) -> Decimal | None:
    """The number of seconds of a length in hours, minutes or seconds."""
    return None if found.number is None else found.number * _SECONDS[found.unit]


_Range = tuple[Decimal | None, Decimal | None]
_Half = tuple[str, int]


def _component(scan: Scan, i: int, rank: int) -> tuple[int, _Range, Unit, _Half | None] | None:
    """A number with a unit smaller than that of ``rank``.

    Returns:
        Its end, the number, the unit, and half of the unit if it is added, as in 一个半小时.
    """
    if scan[i] == "半":
        return _half_alone(scan, i) if rank < 0 and scan[i - 1] not in ("一", "多", "大") else None
    number = scan.once(amount if rank < 0 else single, i)
    if number is None or number.bare:
        return None
    gap = scan.gap(number.end)
    and_a_half = _AND_A_HALF.at(scan, gap)
    found = and_a_half or ((gap + 1, _DAY) if counts_days(scan, i, gap) else _unit(scan, gap, rank))
    if found is None or _is_other_word(scan, number, gap):
        return None
    end, unit = found
    if _LARGEST_FIRST.index(unit.code) <= rank:
        return None
    if scan[end] == "多" and scan[end + 1] in _AFTER_MORE:
        end += 1
    if and_a_half is None and scan[end] == "半" and scan[end + 1] not in ("年", "天", "个", "小"):
        end, and_a_half = end + 1, found
    low, high = _scaled(number, unit)
    if and_a_half is None or low is None or high is None:
        return end, (low, high), unit, None
    if unit.half is not None:
        return end, (low, high), unit, unit.half
    more = unit.factor * _HALF
    return end, (low + more, high + more), unit, None


def _half_alone(scan: Scan, i: int) -> tuple[int, _Range, Unit, _Half | None] | None:
    """半年, 半个月, 半小时."""
    found = _UNITS.at(scan, i + 1)
    if found is None or scan.starts(i + 1, *_OTHER_WORDS) > 0:
        return None
    end, unit = found
    if unit.half is not None:
        code, count = unit.half
        return end, (Decimal(count), Decimal(count)), Unit(code), None
    if unit is _WORKING_DAY:
        return end, (None, None), unit, None
    half = unit.factor * _HALF
    return end, (half, half), unit, None


def _unit(scan: Scan, i: int, rank: int) -> tuple[int, Unit] | None:
    """The unit at ``i``. 分 is one after hours and before seconds, 月 and 日 after a larger unit only."""
    found = _UNITS.at(scan, i)
    if found is not None or scan[i] != "分":
        return found
    if rank == _LARGEST_FIRST.index("H") or (rank < 0 and _component(scan, i + 1, 5) is not None):
        return i + 1, _MINUTE
    return None


def _is_other_word(scan: Scan, number: Amount, unit: int) -> bool:
    """Whether a number and the unit at ``unit`` are another word or a year, such as 三年级 or 2024年."""
    if scan.starts(unit, *_OTHER_WORDS) > 0:
        return True
    if scan.starts(unit - 1, "四周") > 0 and scan[unit - 2] not in numerals.NUMERALS | {"、", "到", "至"}:
        return scan.starts(unit + 1, *_AFTER_WEEKS) < 0 and not scan.follows(unit - 1, _BEFORE_WEEKS)
    return scan[unit] == "年" and _ends_with_a_year(scan, number)


def _ends_with_a_year(scan: Scan, number: Amount) -> bool:
    """Whether the number is a year, or a range such as 1-2024. A range to a round number, 500-1000, is a length."""
    if number.low is None or number.high is None or not 1000 <= number.high < 3000:
        return False
    has_four_digits = scan.text[number.end - 4 : number.end].isdecimal()
    return has_four_digits and (number.low >= 1000 or number.high % 100 != 0)


def _scaled(number: Amount, unit: Unit) -> _Range:
    if unit is _WORKING_DAY:
        return None, None
    scaled = number.times(unit.factor)
    return scaled.low, scaled.high


def _next(scan: Scan, i: int) -> int:
    """The start of the next component: 零 may stand before it."""
    i = scan.gap(i)
    return i + 1 if scan[i] in ("零", "又") else i


def _value(parts: Mapping[str, _Range]) -> str | None:
    low = _iso({unit: number[0] for unit, number in parts.items()})
    high = _iso({unit: number[1] for unit, number in parts.items()})
    return low if low == high else f"{low}..{high}"


def _iso(parts: Mapping[str, Decimal | None]) -> str | None:
    """An ISO 8601 duration."""
    days, clock = "", ""
    for unit in _LARGEST_FIRST:
        if unit not in parts:
            continue
        number = parts[unit]
        if number is None:
            return None
        text = written(number.normalize()) + unit.upper()
        days, clock = (days, clock + text) if unit in CLOCK else (days + text, clock)
    return f"P{days}" + (f"T{clock}" if clock else "")
