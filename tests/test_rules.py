"""Texts that are always or never an entity, whatever normalisation makes of them."""

from typing import Any

import pytest

import hanlattice
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load("lite")


def found(ner: hanlattice.NER, text: str, **rules: Any) -> list[tuple[str, str]]:
    with ner.using(**rules):
        return [(e.text, e.label) for e in ner(text).entities if rules.get("block") or e.score == 1.0]


@pytest.mark.parametrize(
    ("text", "rule", "expected"),
    [
        ("我和欧阳 锋去吃饭", "欧阳 锋", ["欧阳 锋"]),
        ("我买小 米手机", "小 米", ["小 米"]),
        ("用阿里 云服务器", "阿里 云", ["阿里 云"]),
        ("海信 美的 京东方", "海信 美的", ["海信 美的"]),
        ("李 明 在 北 京", "李 明", ["李 明"]),
        ("李　明在北京", "李　明", ["李　明"]),
        ("我用鵝廠的手机，鹅厂很好", "鹅厂", ["鵝廠", "鹅厂"]),
        ("我用ＮＢＡ手机", "NBA", ["ＮＢＡ"]),
        ("我今天很开心😀😂", "🍎", []),
        ("我买了😀手机", "🍎手机", []),
        ("我买了🍎手机，🍎很好", "🍎手机", ["🍎手机"]),
        ("㍿在北京", "株式会社", ["㍿"]),
        ("a㍿b", "㍿", ["㍿"]),
    ],
)
def test_forced(ner: hanlattice.NER, text: str, rule: str, expected: list[str]) -> None:
    assert found(ner, text, force={rule: "ORG"}) == [(word, "ORG") for word in expected]


def test_of_forced_texts_the_first_and_then_the_longest_counts(ner: hanlattice.NER) -> None:
    force = {"欧阳": "PER", "欧阳 锋": "ORG", "锋去": "LOC", "去吃饭": "WORK"}
    assert found(ner, "我和欧阳 锋去吃饭", force=force) == [("欧阳 锋", "ORG"), ("去吃饭", "WORK")]


def test_blocked(ner: hanlattice.NER) -> None:
    text = "李明在北 京工作，他来自重庆。"
    names = {e.text for e in ner(text).entities}
    assert "重庆" in names
    for rule in names:
        assert rule not in {name for name, _ in found(ner, text, block={rule: None})}
        assert rule in {name for name, _ in found(ner, text, block={rule: "TIME", "🍎": None})}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lexicon": ["a"]}, "lexicon must be a hanlattice.Lexicon, not a list"),
        ({"force": ["鹅厂"]}, "force must map texts to labels"),
        ({"force": {"鹅厂": None}}, "force must map texts to labels"),
        ({"force": {1: "ORG"}}, "force must map texts to labels"),
        ({"force": {"鹅厂": "ORG", "": "PER"}}, "^force has a text without characters; remove it$"),
        ({"force": {"鹅" * 1001: "ORG"}}, "^force: a text has 1,001 characters, more than 1,000; shorten it$"),
        ({"force": {"鹅\0": "ORG"}}, r"^force: '鹅\\x00' has a NUL character; remove it$"),
        ({"block": {"大连"}}, "block must map texts to labels"),
        ({"block": {1: None}}, "block must map texts to labels"),
        ({"block": {"大连": 5}}, "block must map texts to labels"),
        ({"block": {"大连": ["LOC", None]}}, "block must map texts to labels"),
        ({"threshold": "a"}, "threshold must be a number from 0 to 1, not 'a'"),
        ({"threshold": float("nan")}, "threshold must be a number from 0 to 1, not nan"),
        ({"threshold": 1.01}, "threshold must be a number from 0 to 1"),
        ({"threshold": -0.01}, "threshold must be a number from 0 to 1"),
    ],
)
def test_wrong_options_are_one_line(ner: hanlattice.NER, options: dict[str, Any], message: str) -> None:
    with pytest.raises(HanlatticeError, match=message), ner.using(**options):
        pass
    with ner.using(lexicon=Lexicon(), force={}, block={}, threshold=1):
        pass


def test_a_rule_for_the_text_as_given_wins(ner: hanlattice.NER) -> None:
    force = {"鵝廠": "PER", "鹅厂": "ORG"}
    for text, label in force.items():
        with ner.using(force=force):
            assert (text, label) in [(e.text, e.label) for e in ner(f"昨天{text}上市。").entities]


def test_a_forced_text_is_not_a_part_of_a_latin_word(ner: hanlattice.NER) -> None:
    force = {"AI": "ORG", "小米1": "WORK"}
    assert ("AI", "ORG") in found(ner, "他在AI公司", force=force)
    for text in ("OpenAI在北京", "AIDS和EMAIL", "买了小米14", "ＯｐｅｎＡＩ"):
        assert {"AI", "ＡＩ", "小米1"}.isdisjoint(name for name, _ in found(ner, text, force=force))
    assert found(ner, "AI", force=force) == [("AI", "ORG")]
