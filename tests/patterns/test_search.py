"""Which patterns are searched: the forms in which they are given, checks of files, and overlaps."""

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from hanlattice.errors import ConfigError, DataError
from hanlattice.patterns import KINDS, Pattern, Patterns, day_of, find, patterns_of

TEXT = "3月5日付300元"
DAY = date(2024, 3, 15)


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        (True, tuple(KINDS)),
        ("all", tuple(KINDS)),
        ("DATE, MONEY", ("DATE", "MONEY")),
        ("DATE", ("DATE",)),
        (["MONEY"], ("MONEY",)),
        (Patterns(("IP",)), ("IP",)),
    ],
)
def test_forms(given: Any, kinds: tuple[str, ...]) -> None:
    patterns = patterns_of(given)
    assert patterns is not None
    assert patterns.kinds == kinds
    assert patterns.labels == {*kinds}


def test_a_file_by_its_path_or_name(tmp_path: Path) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text('kinds = ["IP"]', "utf-8")
    assert patterns_of(path) == patterns_of(str(path)) == Patterns(("IP",))


def test_none() -> None:
    assert patterns_of(None) is None
    assert patterns_of(False) is None
    assert find(TEXT, patterns=()) == ()
    assert [e.label for e in find(TEXT)] == ["DATE", "MONEY"]
    with pytest.raises(ConfigError, match="there is no kind 'DAY'; the kinds are DATE, TIME"):
        patterns_of("DATE,DAY")
    text: Any = "2024-03-15"
    with pytest.raises(ConfigError, match="today must be a date or a datetime, not '2024-03-15'"):
        find(TEXT, today=text)
    wrong: Any = 3
    with pytest.raises(ConfigError, match=r"^patterns must be True, 'all', kinds such as .* not 3$"):
        patterns_of(wrong)


def test_labels_are_those_of_kinds_and_patterns() -> None:
    assert Patterns(("IP",), (Pattern("A", "甲"), Pattern("B", "乙"))).labels == {"IP", "A", "B"}


@pytest.mark.parametrize("label", ["", " ", 3, None])
def test_a_pattern_has_a_label(label: Any) -> None:
    with pytest.raises(ConfigError, match="a pattern has no label"):
        Pattern(label, "甲")


def test_a_pattern_has_one_source() -> None:
    for source in ("", "甲"):
        with pytest.raises(ConfigError, match="the pattern of A needs either 'pattern' or 'regex'"):
            Pattern("A", source, source)


def test_values_of_a_function_are_made_from_the_entity() -> None:
    own = Pattern("A", "第=(<digit>{1,3})级", value=lambda text: f"<{text}>")
    assert [(e.text, e.value) for e in Patterns((), (own,)).find("在第１２级")] == [("１２", "<12>")]


def test_of_equal_entities_that_of_the_user_is_kept() -> None:
    own = (Pattern("OWN", "3月5日"), Pattern("SHORT", "300"))
    assert [e.label for e in Patterns(own=own).find(TEXT)] == ["OWN", "MONEY"]
    assert [e.label for e in Patterns((), (Pattern("A", "甲"), Pattern("B", "[甲乙]"))).find("甲乙")] == ["A", "B"]


def test_priority_is_one_of_three() -> None:
    for priority in ("longest", "patterns", "model"):
        Patterns(priority=priority)
    with pytest.raises(ConfigError, match="priority must be one of longest, patterns, model, not 'best'"):
        Patterns(priority="best")  # type: ignore[arg-type]


def test_the_given_day() -> None:
    patterns = Patterns(("DATE",), today=DAY)
    assert patterns.on(None) is patterns
    assert patterns.on(date(2025, 1, 1)).find("明天")[0].value == "2025-01-02"
    assert patterns.find("明天")[0].value == "2024-03-16"
    assert find("明天", today=DAY)[0].value == "2024-03-16"


@pytest.mark.parametrize(
    ("written", "day"),
    [
        (None, None),
        ("", None),
        ("2024-03-15", DAY),
        ("2024-03-15T10:20", datetime(2024, 3, 15, 10, 20)),
    ],
)
def test_days_as_text(written: str | None, day: date | None) -> None:
    found = day_of(written)
    assert found == day
    assert type(found) is type(day)


@pytest.mark.parametrize("written", ["soon", "2024-3-15", "2024-03-15T"])
def test_what_is_no_day(written: str) -> None:
    with pytest.raises(ConfigError, match=f"'{written}' is not a day; write 2024-03-15"):
        day_of(written)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ('kinds = "DATE"', r"kinds is not a list of labels"),
        ("kinds = [1]", r"kinds is not a list of labels"),
        ("today = 2024", r"today is not a day; write today = 2024-03-15, without quotes"),
        ("pattern = 3", r"has a 'pattern' that is not a table"),
        ("pattern = [3]", r"has a 'pattern' that is not a table"),
        (
            '[pattern]\nlabel = "A"',
            r"has a 'pattern' that is not a table; write \[\[pattern\]\] above each pattern",
        ),
        ('[[pattern]]\nlabel = "A"\npatern = "甲"', r"pattern 1 has the unknown key 'patern'; the keys are label"),
        ('[[pattern]]\nlabel = "A"\npattern = 3', r"pattern 1 has a value that is not text; put it in quotes"),
        (
            '[[pattern]]\nlabel = "A"\npattern = "甲"\n[[pattern]]\nlabel = "A"\npattern = "乙*"',
            r"pattern 2: the pattern '乙\*' has '\*'",
        ),
        (
            '[[pattern]]\nlabel = "A"\npattern = "甲"\n[[pattern]]\nlabel = "B"\npattern = "甲"',
            r"1 and 2 are the same",
        ),
        ('kinds = ["DATE"]\nkinds = ["TIME"]', "is not TOML"),
    ],
)
def test_wrong_files(tmp_path: Path, lines: str, problem: str) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text(lines, "utf-8")
    with pytest.raises(DataError, match=rf"patterns\.toml: .*{problem}"):
        Patterns.open(path)


def test_a_file_may_have_any_of_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text("", "utf-8")
    assert Patterns.open(path) == Patterns()
    path.write_text("today = 2024-03-15T10:20:00", "utf-8")
    assert Patterns.open(path).today == datetime(2024, 3, 15, 10, 20)


def test_a_character_that_becomes_several_belongs_to_one_entity() -> None:
    """㍿ is read as 株式会社, four characters of which both patterns take a part."""
    own = (Pattern("A", "株式"), Pattern("B", "会社"))
    assert [(e.text, e.label) for e in Patterns((), own).find("在㍿")] == [("㍿", "A")]
