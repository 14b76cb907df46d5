"""DATE: days, weeks, months, quarters, years, decades and centuries, absolute or relative to a given day.

The value is in ISO 8601: ``2024-03-05``, ``2024-03``, ``2024``, ``2024-W12``, ``-0220``, and ``start/end`` for a
range. Where ISO 8601 has no form, it is TIMEX3 of ISO-TimeML (ISO 24617-1): ``XXXX-03-05`` (no year given),
``2024-Q1``, ``2024-H1``, ``2024-SP`` (spring; SU, FA, WI), ``2024-W12-WE`` (weekend), ``199X``, ``19XX``. There is
no value if the day does not exist (2月30日), if it depends on a given day and there is none, or if it is lunar.
A date that recurs does not depend on the given day: 每周三 is ``XXXX-WXX-3``.
"""

from itertools import pairwise

from hanlattice.patterns.calendar import Calendar, Dated, When, precedes
from hanlattice.patterns.numerals import Integer, integer
from hanlattice.patterns.scan import Found, Scan
from hanlattice.patterns.single_date import FIRST, WHOLE, date_at, day_at, on, recurring
from hanlattice.patterns.year import PIVOT, century_at, year_before_zero

__all__ = ["FIRST", "parse"]

_MOST_LISTED = 31  # the days of a month


def parse(scan: Scan, i: int) -> Found | None:
    """The date or range of dates at ``i``."""
    scan = recurring(scan, i)
    first = scan.once(date_at, i)
    if first is not None and (listed := _list_of_numbers(scan, first)) is not None:
        return listed
    numbers = _range_of_numbers(scan, i, first)
    if numbers is not None:
        return _range(scan, *numbers)
    if first is None:
        return None
    joint = scan.joint(first.end)
    last = _last_after(scan, joint, a_date=True) if joint > 0 else None
    if last is None and joint > 0 and scan.starts(i, "公元前") > 0:
        last = year_before_zero(scan, joint)
    return Found(first.end, on(scan, first.when).value) if last is None else _range(scan, first.when, last)


def _last_after(scan: Scan, i: int, *, a_date: bool) -> Dated | None:
    """The date at ``i`` that ends a range. After a date it may be a day in Chinese numerals, too."""
    found = scan.once(date_at, i)
    return day_at(scan, i) if found is None and a_date else found


def _range(scan: Scan, first: When, last: Dated) -> Found:
    """The range of two dates. There is no value if it would end before it starts."""
    start = on(scan, first)
    end = on(scan, last.when.after(start))
    if start.value is None or end.value is None or precedes(end, start):
        return Found(last.end, None)
    return Found(last.end, f"{start.value.partition('/')[0]}/{end.value.rpartition('/')[2]}")


def _list_of_numbers(scan: Scan, whole: Dated) -> Found | None:
    """Several days of a month, or months or quarters of a year, with one unit: 3月5、6日, 去年第一、二季度.

    The value is the range of the first to the last one. Where others lie between them there is no value.
    """
    if scan[whole.end - 1] not in WHOLE:
        return None
    numbers: list[Integer] = []
    end = _after_ordinal(scan, scan.gap(whole.end))
    while (number := integer(scan, end)) is not None:
        numbers.append(number)
        if scan[number.end] != "、" or len(numbers) > _MOST_LISTED:
            break
        end = number.end + 1
    last = _last_after(scan, end, a_date=True) if number is not None and len(numbers) > 1 else None
    if last is None or not isinstance(last.when, Calendar) or (last.when.month and last.when.day):
        return None
    first = _start_like(last.when, numbers[0], numbers[-1], is_inside=True)
    steps = {after.value - before.value for before, after in pairwise(numbers)}
    if first is None or not _is_inside(first, whole.when) or min(steps) < 1:
        return None
    return _range(scan, first.after(whole.when), last) if steps == {1} else Found(last.end, None)


def _range_of_numbers(scan: Scan, i: int, whole: Dated | None) -> tuple[When, Dated] | None:
    """The ends of a range whose unit follows the second number: 2019-2023年, 第一至三季度, 5-8日.

    ``whole`` is the date at ``i``. The range of numbers is then a part of this year or month, as in 去年10-12月.
    """
    if whole is not None and scan[whole.end - 1] not in WHOLE:
        return None
    start = i if whole is None else scan.gap(whole.end)
    number = integer(scan, _after_ordinal(scan, start))
    joint = -1 if number is None else scan.joint(number.end)
    last_number = integer(scan, _after_ordinal(scan, joint)) if joint > 0 else None
    last = None if last_number is None else _last_after(scan, joint, a_date=whole is not None)
    if number is None or last_number is None or last is None:
        return None
    if scan[start] == "第" and scan.starts(last.end - 2, "季度") < 0:
        return None
    unit = scan.text[last_number.end : last.end].rstrip("初底末")
    if unit in ("年代", "世纪"):
        first = _decade(number, unit)
    else:
        first = _start_like(last.when, number, last_number, is_inside=whole is not None)
    if whole is None or first is None:
        return None if first is None else (first, last)
    return (first.after(whole.when), last) if _is_inside(first, whole.when) else None


def _after_ordinal(scan: Scan, i: int) -> int:
    return i + 1 if scan[i] == "第" else i


def _decade(number: Integer, unit: str) -> When | None:
    """The decade or century of this number."""
    found = century_at(Scan(number.digits + unit), 0)
    return None if found is None else found.when


def _start_like(last: When, number: Integer, last_number: Integer, *, is_inside: bool) -> Calendar | None:
    """The first number of a range, read as the unit of its second one.

    None if the unit has no such number, or if the second date has more than one unit. Inside a month the second
    date may have a month of its own, as in 3月28-4月2日.
    """
    n = number.value
    match last:
        case Calendar(None, None, None, part) if part.startswith("Q") and 1 <= n <= 4:
            return Calendar(part=f"Q{n}")
        case Calendar(None, month, int()) if 1 <= n <= 31 and (month is None or is_inside):
            return Calendar(day=n)
        case Calendar(None, int(), None) if 1 <= n <= 12:
            return Calendar(month=n)
        case Calendar(int(year), None, None, "") if _is_year(number, last_number):
            return Calendar(_in_century_of(year, number))
    return None


def _is_year(number: Integer, last_number: Integer) -> bool:
    """Whether a number before a year is one, too: 2019 and 98 before 2002年, but not 1 or 08; 05 before 08年."""
    if len(number.digits) == 2:
        return number.value >= PIVOT or len(last_number.digits) == 2
    return len(number.digits) == 4 and 1000 <= number.value < 3000


def _is_inside(first: When, whole: When) -> bool:
    """Whether this is a month or quarter and the whole a year, or a day and the whole a month."""
    if not isinstance(first, Calendar) or not isinstance(whole, Calendar) or first.year is not None:
        return False
    return whole.day is None and not whole.part and (whole.month is None) == (first.day is None)


def _in_century_of(last: int, number: Integer) -> int:
    """The first year of a range: 98 of 98-99年 is 1998, and of 98-02年 too."""
    if len(number.digits) != 2:
        return number.value
    year = last - last % 100 + number.value
    return year if year <= last else year - 100
