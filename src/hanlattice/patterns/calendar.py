"""Points of the calendar, some of them incomplete, and their values in ISO 8601 or TIMEX3 (ISO-TimeML)."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import NamedTuple, Protocol


class When(Protocol):
    """A point or period of the calendar."""

    @property
    def value(self) -> str | None:
        """The value; None if the day does not exist, or depends on a given day that is missing."""
        ...

    def after(self, first: When) -> When:
        """This as the end of a range, completed by what only its start states."""
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

    def after(self, first: When) -> When:
        return self

    def on(self, today: date) -> When:
        return self


UNKNOWN = Fixed(None)


@dataclass(frozen=True, slots=True)
class Calendar:
    """A year, a month or a day, of which the larger parts may be missing.

    Args:
        part: a part of the year instead of a month: Q1 to Q4, H1 and H2, or SP, SU, FA and WI for the seasons.
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
            return f"{year}-{self.part}"
        if self.day is None:
            return year if self.month is None else f"{year}-{self.month:02}"
        month = f"{year}-{'XX' if self.month is None else format(self.month, '02')}"
        if self.last is None:
            return f"{month}-{self.day:02}"
        return f"{month}-{self.day:02}/{month}-{min(self.last, self._days_of_month()):02}"

    def _days_of_month(self) -> int:
        return monthrange(2000 if self.year is None else self.year, self.month or 1)[1]

    def after(self, first: When) -> When:
        if not isinstance(first, Calendar) or self.year is not None or not self.known:
            return self
        month = first.month if self.month is None and self.day is not None else self.month
        return replace(self, month=month, year=first.year, known=first.known)

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

    def after(self, first: When) -> When:
        if isinstance(first, Week) and not self.named:
            return replace(self, monday=first.monday, named=first.named)
        return self

    def on(self, today: date) -> When:
        return self if self.monday or self.named else replace(self, monday=week(today, 0).monday)


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
