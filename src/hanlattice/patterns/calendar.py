"""Points of the calendar, some of them incomplete, and their values in ISO 8601 or TIMEX3 (ISO-TimeML)."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import MAXYEAR, MINYEAR, date, timedelta
from typing import NamedTuple, Protocol

Day = tuple[int, int, int]
"""A year, a month and a day. The last day of any month may be 31, since days are only compared."""

_MONTHS = {
    "Q1": (1, 3), "Q2": (4, 6), "Q3": (7, 9), "Q4": (10, 12), "H1": (1, 6), "H2": (7, 12),
    "Q1/Q2": (1, 6), "Q1/Q3": (1, 9),
}  # fmt: skip


class When(Protocol):
    """A point or period of the calendar."""

    @property
    def value(self) -> str | None:
        """The value; None if the day does not exist, or depends on a given day that is missing."""
        ...

    @property
    def days(self) -> tuple[Day, Day] | None:
        """The first and the last day; None if they are not known."""
        ...

    def after(self, first: When) -> When:
        """This as the end of a range, completed by what only its start states.

        If it would precede the start, it is in the next year, month or week.
        """
        ...

    def on(self, today: date) -> When:
        """This with the year, month or week of the given day where it names none."""
        ...


class Dated(NamedTuple):
    """A date in a text: its end and its meaning."""

    end: int
    when: When


@dataclass(frozen=True, slots=True)
class Fixed:
    """A period with one written form, such as ``199X``, or with none that is known."""

    value: str | None

    @property
    def days(self) -> tuple[Day, Day] | None:
        if self.value is None:
            return None
        return (int(self.value.replace("X", "0")), 1, 1), (int(self.value.replace("X", "9")), 12, 31)

    def after(self, first: When) -> When:
        return self

    def on(self, today: date) -> When:
        return self


UNKNOWN = Fixed(None)


@dataclass(frozen=True, slots=True)
class Calendar:
    """A year, a month or a day, of which the larger parts may be missing.

    Args:
        part: a part of the year instead of a month: Q1 to Q4, Q1/Q2 and Q1/Q3 for the first two or three quarters,
            H1 and H2, or SP, SU, FA and WI for the seasons.
        last: last day, if this is a range of days.
        known: False if the year depends on a given day that is missing.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    part: str = ""
    last: int | None = None
    known: bool = True

    @property
    def exists(self) -> bool:
        """Whether the month has this day. 29 February exists if no year is given."""
        return self.month is None or self.day is None or 1 <= self.day <= self._days_of_month()

    @property
    def value(self) -> str | None:
        if not self.known or not self.exists:
            return None
        year = "XXXX" if self.year is None else f"{self.year:04}"
        if self.part:
            return "/".join(f"{year}-{part}" for part in self.part.split("/"))
        if self.day is None:
            return year if self.month is None else f"{year}-{self.month:02}"
        month = f"{year}-{'XX' if self.month is None else format(self.month, '02')}"
        if self.last is None:
            return f"{month}-{self.day:02}"
        return f"{month}-{self.day:02}/{month}-{min(self.last, self._days_of_month()):02}"

    @property
    def days(self) -> tuple[Day, Day] | None:
        if self.year is None or not self.known or not self.exists:
            return None
        first, last = _MONTHS.get(self.part, (self.month or 1, self.month or 12))
        return (self.year, first, self.day or 1), (self.year, last, self.last or self.day or 31)

    def _days_of_month(self) -> int:
        return monthrange(2000 if self.year is None else self.year, self.month or 1)[1]

    def after(self, first: When) -> When:
        if not isinstance(first, Calendar) or self.year is not None or not self.known:
            return self
        if self.month is None and self.day is not None:
            end = replace(self, month=first.month, year=first.year, known=first.known)
            return end._next_month() if first.day is not None and self.day < first.day else end
        end = replace(self, year=first.year, known=first.known)
        return end._next_year() if precedes(end, first) else end

    def _next_month(self) -> Calendar:
        if self.month == 12:
            return replace(self, month=1)._next_year()
        return self if self.month is None else replace(self, month=self.month + 1)

    def _next_year(self) -> Calendar:
        if self.year is None:
            return self
        return replace(self, year=self.year + 1, known=self.year < date.max.year)

    def on(self, today: date) -> When:
        if self.year is not None or not self.known:
            return self
        month = today.month if self.month is None and self.day is not None else self.month
        return replace(self, year=today.year, month=month)

    def in_year(self, year: int | None, known: bool = True) -> Calendar:
        """The same part of a year."""
        return replace(self, year=year, known=known)


@dataclass(frozen=True, slots=True)
class Week:
    """A week, a day of it (1 to 7) or its weekend (``"WE"``).

    Args:
        monday: its first day; None if not known.
        day: what part of the week, or None.
        named: whether the text names the week, as 下周三 does and 周三 does not.
    """

    monday: date | None
    day: int | str | None = None
    named: bool = False

    @property
    def value(self) -> str | None:
        if self.monday is None:
            return None if self.named else f"XXXX-WXX-{self.day}"
        if isinstance(self.day, int):
            return days_after(self.monday, self.day - 1).value
        year, week, _ = self.monday.isocalendar()
        return f"{year:04}-W{week:02}" + (f"-{self.day}" if self.day else "")

    @property
    def days(self) -> tuple[Day, Day] | None:
        if self.monday is None:
            return None
        first, last = (self.day, self.day) if isinstance(self.day, int) else (6 if self.day else 1, 7)
        start, end = (days_after(self.monday, day - 1).days for day in (first, last))
        return None if start is None or end is None else (start[0], end[1])

    def after(self, first: When) -> When:
        if not isinstance(first, Week) or self.named:
            return self
        end = replace(self, monday=first.monday, named=first.named)
        return week(first.monday, 1, self.day) if precedes(end, first) else end

    def on(self, today: date) -> When:
        return self if self.monday or self.named else replace(self, monday=week(today, 0).monday)


def precedes(end: When, start: When) -> bool:
    """Whether the end of a range is before its start. It is not if the days are not known."""
    first, last = start.days, end.days
    return first is not None and last is not None and last[1] < first[0]


def next_day(when: When) -> When:
    """The day after a day; unknown if that may be in another month, year or week that is not given."""
    if when.days is not None:
        year, month, day = when.days[0]
        return days_after(date(year, month, day), 1) if MINYEAR <= year <= MAXYEAR else UNKNOWN
    if isinstance(when, Calendar) and when.known and when.day is not None and when.day < 28:
        return replace(when, day=when.day + 1)
    if isinstance(when, Week) and not when.named and isinstance(when.day, int) and when.day < 7:
        return replace(when, day=when.day + 1)
    return UNKNOWN


def days_after(today: date, days: int) -> When:
    """The day that is this number of days after the given day; unknown if it is not in the calendar."""
    try:
        day = today + timedelta(days=days)
    except OverflowError:
        return UNKNOWN
    return Calendar(day.year, day.month, day.day)


def week(today: date | None, steps: int, day: int | str | None = None) -> Week:
    """A part of the week that is ``steps`` weeks after the one of the given day.

    Its value is not known if there is no given day, or if the week is not in the calendar.
    """
    if today is None:
        return Week(None, day, named=True)
    try:
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=steps)
    except OverflowError:
        monday = None
    return Week(monday, day, named=True)


def months_after(today: date, months: int) -> tuple[int, int]:
    """The year and the month that is this number of months after the given day."""
    years, month = divmod(today.year * 12 + today.month - 1 + months, 12)
    return years, month + 1
