"""Each element of the pattern language, and each rule and limit on both sides."""

import pytest

from hanlattice.errors import ConfigError
from hanlattice.patterns import Pattern, Patterns
from hanlattice.patterns.language import LONGEST, MOST


def found(pattern: str, text: str) -> list[str]:
    return [e.text for e in Patterns((), (Pattern("X", pattern),)).find(text)]


def values(pattern: str, text: str) -> list[str | None]:
    return [e.value for e in Patterns((), (Pattern("X", pattern),)).find(text)]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("甲{2,3}", "甲，甲甲，甲甲甲，甲甲甲甲", ["甲甲", "甲甲甲", "甲甲甲"]),
        ("甲{3}", "甲甲，甲甲甲", ["甲甲甲"]),
        ("甲{0,1}乙", "甲乙，乙，甲", ["甲乙", "乙"]),
        ("甲?乙", "乙，甲乙，乙，甲", ["乙", "甲乙", "乙"]),
        ("甲甲", "甲甲甲甲甲", ["甲甲", "甲甲"]),
        ("(甲乙|甲)丙", "甲丙，甲乙丙", ["甲丙", "甲乙丙"]),
        ("(甲?|乙)丙", "甲丙，乙丙，丙", ["甲丙", "丙", "丙"]),
        ("甲|乙|丙", "丙乙丁甲", ["丙", "乙", "甲"]),
        ("第=(甲{1,2})级", "第甲级，第甲甲级，第级", ["甲", "甲甲"]),
        ("[3-5]级", "2级3级4级5级6级", ["3级", "4级", "5级"]),
        ("[a-]级", "a级，-级，b级", ["a级", "-级"]),
        ("[-a]级", "a级，-级，b级", ["a级", "-级"]),
        ("[^3-5]级", "3级4级5级6级", ["6级"]),
        ("[Ａ]级", "A级，Ａ级", ["A级", "Ａ级"]),
        ("①级", "①级，1级，②级", ["①级"]),
        ("[①-③]级", "①级，②级，1级，④级", ["①级", "②级"]),
        ("[Ａ-Ｃ]级", "A级，Ｂ级，D级", ["A级", "Ｂ级"]),
        ("[０-９]{2}号", "１２号，34号", ["１２号", "34号"]),
        ("[甲-甲]级", "甲级", ["甲级"]),
        ("㍿", "（株式会社）和㍿", ["株式会社", "㍿"]),
        (r"\=\(甲\)", "=(甲)", ["=(甲)"]),
        ("甲=乙", "甲=乙，甲乙", ["甲=乙"]),
        (r"\<digit\>", "<digit>", ["<digit>"]),
        ("<digit>级", "0级5级9级a级", ["0级", "5级", "9级"]),
        ("<letter>级", "a级Z级0级é级", ["a级", "Z级"]),
        ("<han>=", "\u3400=\u9fff=\U00020000=a=\ua000=", ["\u3400=", "\u9fff=", "\U00020000="]),
        ("甲<any>乙", "甲乙甲 乙甲a乙", ["甲 乙", "甲a乙"]),
        ("CA", "CA，CAT，ACA，CA1", ["CA"]),
        ("<digit>{2}", "12，123", ["12"]),
        ("(甲=(乙)丙|甲乙丁)", "甲乙丁，甲乙丙", ["甲乙丁", "乙"]),  # what fails leaves no part
        ("(甲=(乙)丙)?甲乙丁", "甲乙丁，甲乙丙甲乙丁", ["甲乙丁", "乙"]),
        ("(=(甲)乙){1,2}(甲丙)?", "甲乙甲丙", ["甲"]),
        ("A=(B)", "AB", []),  # the entity would begin inside a run of letters
        ("=(A)B", "AB", []),
    ],
)
def test_what_is_found(pattern: str, text: str, expected: list[str]) -> None:
    assert found(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("<number>个", "三百个", "300"),
        ("<number>个", "几百个", None),
        ("于<DATE>起", "于2024年3月5日起", "2024-03-05"),
        ("甲", "甲", None),
        ("编号(<number>万|[0-9]{1,6}号)", "编号3500号", None),  # a value of an alternative that fails is no value
        ("编号(<number>个|[0-9]{1,6}号)", "编号3500个", "3500"),
        ("(<MONEY>起)?[0-9]{1,6}元整?房", "3500元房", None),
        ("(<number>个){1,3}[0-9]只", "5个6个7只", "6"),
    ],
)
def test_values(pattern: str, text: str, value: str | None) -> None:
    assert values(pattern, text) == [value]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("甲*", r"has '\*', which has no bound at character 3"),
        ("+甲", r"has '\+', which has no bound at character 2"),
        ("?甲", r"has '\?' with nothing before it at character 2"),
        ("{2}甲", r"has '\{' with nothing before it"),
        ("(甲", r"has no '\)' at character 3"),
        ("甲)", r"has an unexpected '\)' at character 2"),
        ("[]甲", "has no characters in brackets at character 2"),
        ("[^]甲", "has no characters in brackets"),
        ("[甲", "has no characters in brackets"),
        ("[z-a]", "has the range z-a at character 2; write the smaller character first"),
        ("[a-㍿]", "has the range a-㍿"),
        ("<digit", "has the unknown name <digit> at character 2"),
        ("<Digit>", "the names are digit, letter, han, any, number, DATE"),
        ("甲{}", r"has no number of times at character 2; write \{3\} or \{2,5\}"),
        ("甲{a}", "has no number of times"),
        ("甲{2,}", "has no number of times"),
        ("甲{2", "has no number of times"),
        ("甲{1,2,3}", "has no number of times"),
        ("甲{²}", "has no number of times"),
        ("甲{0}", "repeats 0 times"),
        ("甲{5,2}", "repeats 5,2 times"),
        ("甲{0,3}", "also matches nothing"),
        ("甲?(乙?|丙)", "also matches nothing"),
        ("", "needs either 'pattern' or 'regex'"),
        ("=(甲)(=(乙)|丙)", r"has 2 parts =\(…\)"),
        ("[甲乙]{1,3}乙", "would have to backtrack"),
        ("[^丙]{1,3}(甲|乙)", "would have to backtrack"),
        ("<digit>?1", "would have to backtrack"),
        (
            "(甲|甲乙)丙",
            r"alternative '甲乙', which never matches .* '甲' is tried before it at character 6; write the",
        ),
        ("丁|甲|乙|甲", "alternative '甲', which never matches"),
        ("号=(甲)?", r"repeats the part =\(…\) at character 6; write the repetition inside"),
        ("号=(甲){2}", "repeats the part"),
    ],
)
def test_what_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Pattern("X", pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[甲乙]{2}乙", "甲甲乙"),  # a fixed length
        ("[甲乙]{1,3}丙", "甲乙丙"),
        ("[甲乙]{1,3}(乙|丙)", "甲乙丙"),  # can continue with 丙
        ("[甲乙]{1,3}乙?", "甲乙"),  # need not continue
        ("<digit>{1,3}<letter>", "12a"),
    ],
)
def test_what_need_not_backtrack(pattern: str, text: str) -> None:
    assert found(pattern, text) == [text]


def test_limits_of_repetitions() -> None:
    text = "甲" * (MOST + 1)
    assert found(f"甲{{{MOST}}}", text) == ["甲" * MOST]
    assert found(f"甲{{1,{MOST}}}", text) == ["甲" * MOST, "甲"]
    for times in (f"{MOST + 1}", f"1,{MOST + 1}"):
        with pytest.raises(ConfigError, match=f"repeats {times} times"):
            Pattern("X", f"甲{{{times}}}")


def test_limits_of_the_size() -> None:
    assert MOST * MOST == LONGEST
    most = f"(甲{{{MOST}}}){{{MOST}}}"
    assert found(most, "甲" * LONGEST) == ["甲" * LONGEST]
    for more in (f"{most}乙", f"({most}|乙)", f"=({most})乙?"):
        with pytest.raises(
            ConfigError, match="tries up to 4,097 characters at one position; repeat less, up to 4,096"
        ):
            Pattern("X", more)
