"""Single dates in a text, absolute or relative: every form, tried in order, and days, weeks, months and offsets."""

import re

from hanlattice.patterns import numerals, part_of_year, year
from hanlattice.patterns.calendar import (
    UNKNOWN,
    Calendar,
    Dated,
    Week,
    When,
    days_after,
    months_after,
    week,
)
from hanlattice.patterns.day import day_alone, day_of_month
from hanlattice.patterns.kinds import duration
from hanlattice.patterns.part_of_year import holiday, in_month, inside_year, part_of_a_year
from hanlattice.patterns.scan import BEFORE_VERSION, DIGITS, Scan, Words
from hanlattice.patterns.year import century_at, century_of_era, from_year

_NUMERIC = re.compile(r"([12][0-9]{3})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?![0-9]|\2[0-9])")
_DAYS = Words(
    {
        "今天": 0,
        "今日": 0,
        "明天": 1,
        "明日": 1,
        "后天": 2,
        "大后天": 3,
        "昨天": -1,
        "昨日": -1,
        "前天": -2,
        "大前天": -3,
    }
)

_STEPS = Words({"上上": -2, "上": -1, "上一": -1, "这": 0, "这一": 0, "本": 0, "下": 1, "下一": 1, "下下": 2})
_WEEKDAYS = dict(zip("一二三四五六日天", (1, 2, 3, 4, 5, 6, 7, 7), strict=True))


# Before a date that recurs, and so has no year, month or week: 每周三, 每年的3月, 每月5日和20日.
_EVERY = re.compile(
    "(?:每(?:年度?|个?月|个|周|星期|逢|到|当)?|逢)的?"
    "(?:(?:(?:周|星期|礼拜)[一二三四五六日天]|[0-9]{1,2}[月日号]){1,3}[、和及或]){0,6}\\Z"
)
_LONGEST_LIST = 32  # characters before a date

WHOLE = frozenset("年度月份")
"""The last character of a year or month, after which a part of it may follow."""


_OFFSETS = Words({"以前": -1, "之前": -1, "前": -1, "以后": 1, "之后": 1, "后": 1})

# What stands after or before an expression that looks like a date and is something else.
_NO_OFFSET = ("前后", "前者", "前沿", "前途", "前列", "后者", "后期", "后勤", "后代", "后辈")
_NO_RELATIVE = ("今日头条", "明日之星", "后天性", "前天性")
_NO_WEEKDAY = frozenset("鸣福围方大年代次个岁")

FIRST = frozenset("公第农阴旧夏闰正腊半周星礼").union(
    numerals.FIRST,
    _DAYS.first,
    _STEPS.first,
    part_of_year.FIRST,
    year.FIRST,
)


def on(scan: Scan, when: When) -> When:
    """The date for the given day."""
    return when if scan.today is None else when.on(scan.today)


def recurring(scan: Scan, i: int) -> Scan:
    """The text without the given day if the date at ``i`` recurs, as in 每周三 and 每年3月5日."""
    if scan.today is None:
        return scan
    before = scan.text[max(0, i - _LONGEST_LIST) : i]
    is_every = ("每" in before or "逢" in before) and _EVERY.search(before) is not None
    return Scan(scan.text) if is_every else scan


def date_at(scan: Scan, i: int) -> Dated | None:
    """The date at ``i`` that is not a range of dates."""
    for form in _FORMS:
        found = form(scan, i)
        if found is not None:
            is_cut = scan.cuts(found.end) and not (scan[found.end] == "T" and scan[found.end + 1] in DIGITS)
            return None if is_cut else Dated(_after_weekday(scan, found.end), found.when)
    return None


def day_at(scan: Scan, i: int) -> Dated | None:
    """The day of a month at ``i``, also in Chinese numerals, where the text before shows that it may be one."""
    found = day_of_month(scan, i)
    return None if found is None else found._replace(end=_after_weekday(scan, found.end))


def _numeric(scan: Scan, i: int) -> Dated | None:
    """2024-03-05, 2024/3/5 or 2024.3.5. Digits that are not a day of the calendar are not a date."""
    match = _NUMERIC.match(scan.text, i) if scan[i] in DIGITS else None
    if match is None or (scan[i - 1] == match[2] and scan[i - 2] in DIGITS):
        return None
    if match[2] == "." and scan.follows(i, BEFORE_VERSION):
        return None
    day = Calendar(int(match[1]), int(match[3]), int(match[4]))
    return Dated(match.end(), day) if 1 <= (day.month or 0) <= 12 and day.exists else None


def _day_by_name(scan: Scan, i: int) -> Dated | None:
    """今天, 明天, 大前天."""
    found = _DAYS.at(scan, i)
    if found is None or scan.starts(i, *_NO_RELATIVE) > 0:
        return None
    if scan.today is None:
        return Dated(found[0], UNKNOWN)
    return Dated(found[0], days_after(scan.today, found[1]))


def _week(scan: Scan, i: int) -> Dated | None:
    """周三, 下周三, 上个星期天, 本周, 下下周, 周末."""
    step = _STEPS.at(scan, i)
    end = i if step is None else step[0]
    if step is not None and scan[end] == "个":
        end += 1
    end = scan.starts(end, "周", "星期", "礼拜")
    if end < 0:
        return None
    day: int | str | None = _WEEKDAYS.get(scan[end]) if scan[end + 1] not in _NO_WEEKDAY else None
    if scan[end] == "末":
        day = "WE"
    if day is None and step is None:
        return None
    if day is None and scan[end] in ("期", "年", "刊", "围", "边"):
        return None
    when = Week(None, day) if step is None else week(scan.today, step[1], day)
    return Dated(end + (day is not None), when)


def _relative_month(scan: Scan, i: int) -> Dated | None:
    """本月, 上个月, 下下个月, 上个月5号, 本月底."""
    step = _STEPS.at(scan, i)
    end = -1 if step is None else scan.starts(step[0], "月", "个月")
    if step is None or end < 0 or scan[end] in ("球", "亮"):
        return None
    year, month = (0, 1) if scan.today is None else months_after(scan.today, step[1])
    found = in_month(scan, end, month)
    assert isinstance(found.when, Calendar)
    if scan.today is None:
        return Dated(found.end, found.when.in_year(None, known=False))
    return Dated(found.end, found.when.in_year(year) if 0 < year < 10_000 else UNKNOWN)


def _relative_quarter(scan: Scan, i: int) -> Dated | None:
    """本季度, 上个季度, 下一季度."""
    step = _STEPS.at(scan, i)
    end = -1 if step is None else scan.starts(step[0], "季度", "个季度")
    if step is None or end < 0:
        return None
    if scan.today is None:
        return Dated(end, UNKNOWN)
    year, month = months_after(scan.today, 3 * step[1])
    part = f"Q{(month + 2) // 3}"
    return Dated(end, Calendar(year, part=part) if 0 < year < 10_000 else UNKNOWN)


def _offset(scan: Scan, i: int) -> Dated | None:
    """三天前, 两周后, 半年以前, 两年前的3月. The value is as exact as the unit: a month for 三个月前."""
    length = scan.once(duration.length, i)
    side = None if length is None else _OFFSETS.at(scan, length.end)
    if length is None or side is None or length.unit in duration.CLOCK or scan.starts(length.end, *_NO_OFFSET) > 0:
        return None
    if scan.follows(length.end, ("日",)) and not scan.follows(length.end, ("工作日", "自然日", "交易日")):
        return None  # 十日前 is mostly ten days before another day
    count = None if length.number is None else length.number * side[1]
    is_known = scan.today is not None and count is not None and count == int(count)
    when = _moved(scan, length.unit, int(count or 0)) if is_known else UNKNOWN
    part = inside_year(scan, side[0] + 1) if length.unit == "Y" and scan[side[0]] == "的" else None
    if part is None or not isinstance(part.when, Calendar) or part.end <= side[0] + 2:
        return Dated(side[0], when)
    year = when.year if isinstance(when, Calendar) else None
    return Dated(part.end, part.when.in_year(year, known=year is not None))


def _moved(scan: Scan, unit: str, count: int) -> When:
    """The given day moved by days, weeks, months or years; unknown if it leaves the calendar."""
    assert scan.today is not None
    if unit == "W":
        return week(scan.today, count)
    if unit == "D":
        return days_after(scan.today, count)
    if unit == "Y":
        year = scan.today.year + count
        return Calendar(year) if 0 < year < 10_000 else UNKNOWN
    year, month = months_after(scan.today, count)
    return Calendar(year, month) if 0 < year < 10_000 else UNKNOWN


def _after_weekday(scan: Scan, i: int) -> int:
    """The position after a day of the week that follows a day, as in 3月5日（周二）."""
    if scan[i - 1] not in ("日", "号"):
        return i
    start = i + 1 if scan[i] == "(" else i
    end = scan.starts(start, "周", "星期", "礼拜")
    if end < 0 or scan[end] not in _WEEKDAYS:
        return i
    if start == i:
        return end + 1
    return end + 2 if scan[end + 1] == ")" else i


_FORMS = (
    _numeric, _day_by_name, _week, century_at, century_of_era, from_year, _offset, holiday, _relative_month,
    _relative_quarter, part_of_a_year, day_alone,
)  # fmt: skip
