"""Expressions at the edges of the rules, on both sides of each, and every entry of tables of dates.

Each row of edges.tsv is a text, and an entity in it: its text, its label and its value. A text with several
entities has several rows; one in which nothing is to be found has no further columns. The given day is 15 March
2024.
"""

from datetime import date, datetime
from pathlib import Path

import pytest

from hanlattice.patterns import find
from hanlattice.patterns.calendar import Calendar

ROWS = [line.split("\t") for line in Path(__file__).with_name("edges.tsv").read_text("utf-8").splitlines()]
TEXTS = {row[0]: [tuple(other[1:]) for other in ROWS if other[0] == row[0] and other[1:]] for row in ROWS}


def found(text: str, today: date | None) -> list[tuple[str, ...]]:
    return [(e.text, e.label, e.value or "") for e in find(text, today=today)]


@pytest.mark.parametrize("text", TEXTS)
def test_an_edge(text: str) -> None:
    assert found(text, date(2024, 3, 15)) == TEXTS[text]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10分钟前", "2024-03-15T10:10"),
        ("两个小时后", "2024-03-15T12:20"),
        ("30秒后", "2024-03-15T10:21:00"),
        ("半小时后", "2024-03-15T10:50"),
        ("十几分钟前", ""),
        ("九千九百亿小时后", ""),
        ("一天半前", "2024-03-13T22:20"),
    ],
)
def test_with_a_time_of_the_given_day(text: str, value: str) -> None:
    assert found(text, datetime(2024, 3, 15, 10, 20, 30)) == [(text, "TIME", value)]


@pytest.mark.parametrize(
    ("text", "today", "value"),
    [
        ("一年后", date(9998, 5, 1), "9999"),
        ("两年后", date(9998, 5, 1), ""),
        ("一千年前", date(1001, 5, 1), "0001"),
        ("一千年前", date(1000, 5, 1), ""),
        ("一个月后", date(9999, 11, 1), "9999-12"),
        ("两个月后", date(9999, 11, 1), ""),
        ("一个月前", date(1, 2, 1), "0001-01"),
        ("上个月", date(1, 2, 1), "0001-01"),
        ("上个月", date(1, 1, 1), ""),
        ("一个月前", date(1, 1, 1), ""),
        ("三周后", date(9999, 12, 20), ""),
        ("上个月", date(2024, 1, 5), "2023-12"),
        ("下个月", date(2024, 12, 5), "2025-01"),
        ("今天", date(9999, 12, 31), "9999-12-31"),
        *((text, date(9999, 12, 31), "") for text in ("明天", "大后天", "下周", "下周一", "周六", "下个月")),
        *((text, date(9999, 12, 31), "") for text in ("12月30日至1月2日", "30日至2日", "周五至周一")),
        *((text, date(1, 1, 1), "") for text in ("昨天", "上周", "上周一", "三周前")),
    ],
)
def test_at_the_ends_of_the_calendar(text: str, today: date, value: str) -> None:
    assert found(text, today) == [(text, "DATE", value)]


def test_tonight_at_the_end_of_the_calendar() -> None:
    assert found("今晚和明晚", date(9999, 12, 31)) == [
        ("今晚", "TIME", "9999-12-31TEV"),
        ("明晚", "TIME", ""),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3月5日", "XXXX-03-05"),
        ("5日", "XXXX-XX-05"),
        ("三月", "XXXX-03"),
        ("第一季度", "XXXX-Q1"),
        ("周三", "XXXX-WXX-3"),
        ("周末", "XXXX-WXX-WE"),
        *((text, "") for text in ("明天", "去年", "去年3月", "下周三", "上个月", "三天前", "去年3月至5月")),
        ("2月29日", "XXXX-02-29"),
        ("2月下旬", "XXXX-02-21/XXXX-02-29"),
        ("3月5日至8日", "XXXX-03-05/XXXX-03-08"),
        ("3月5-8日", "XXXX-03-05/XXXX-03-08"),
        ("30日至2日", "XXXX-XX-30/XXXX-XX-02"),
        ("三月五日至八日", "XXXX-03-05/XXXX-03-08"),
        ("昨天到八日", ""),
        ("3月30日至2日", "XXXX-03-30/XXXX-04-02"),
        ("12月30日至2日", "XXXX-12-30/XXXX-01-02"),
        ("12月30日至1月2日", "XXXX-12-30/XXXX-01-02"),
        ("周六至周一", "XXXX-WXX-6/XXXX-WXX-1"),
        *((text, "") for text in ("去年10-12月", "上个月5-8号", "下周六至周一")),
    ],
)
def test_without_a_given_day(text: str, value: str) -> None:
    assert found(text, None) == [(text, "DATE", value)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3月5日22:00至2:00", "XXXX-03-05T22:00/XXXX-03-06T02:00"),
        ("2月27日22:00至2:00", "XXXX-02-27T22:00/XXXX-02-28T02:00"),
        ("周六22:00至2:00", "XXXX-WXX-6T22:00/XXXX-WXX-7T02:00"),
        *((f"{day}22:00至2:00", "") for day in ("2月28日", "周日", "下周六", "上个月5号")),
        ("今晚10点到凌晨2点", ""),
    ],
)
def test_past_midnight_without_a_given_day(text: str, value: str) -> None:
    assert found(text, None) == [(text, "TIME", value)]


@pytest.mark.parametrize(
    ("text", "today", "expected"),
    [
        (
            "令和9000年3月5日22点到1点",
            None,
            [("9000年", "P9000Y"), ("3月5日22点到1点", "XXXX-03-05T22:00/XXXX-03-06T01:00")],
        ),
        ("昭和9999年", None, [("9999年", "P9999Y")]),
        ("明年3月5日22点到1点", date(9999, 6, 1), [("明年3月5日22点到1点", None)]),
        ("去年3月5日", date(1, 6, 1), [("去年3月5日", None)]),
        ("去年3月5日", date(2, 6, 1), [("去年3月5日", "0001-03-05")]),
        ("公元9999年", None, [("公元9999年", "9999")]),
    ],
)
def test_years_outside_the_calendar(text: str, today: date | None, expected: list[tuple[str, str | None]]) -> None:
    assert [(e.text, e.value) for e in (find(text, today=today) if today else find(text))] == expected


@pytest.mark.parametrize(("part", "last"), [("Q1/Q2", 6), ("Q1/Q3", 9), ("Q3", 9)])
def test_the_days_of_quarters(part: str, last: int) -> None:
    days = Calendar(2024, part=part).days
    assert days is not None
    assert days[1] == (2024, last, 31)
