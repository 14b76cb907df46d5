"""The search in one pass: linear work, checks of numbers, and cases on each side of a rule."""

import random
import sys
from datetime import date
from time import process_time

import pytest

from hanlattice.patterns import find
from hanlattice.patterns.grammar import KINDS, grammar
from hanlattice.patterns.kinds.bank_card import luhn
from hanlattice.patterns.kinds.id_card import check
from hanlattice.patterns.scan import Scan

GRAMMAR = grammar(frozenset(KINDS))
HARD = {
    "digits and brackets": "".join(random.Random(1).choices("0123456789()[]", k=400)),
    "one digit": "1" * 400,
    "groups of digits": "1,111," * 70,
    "joined digits": "1-" * 200,
    "colons": "1:" * 200,
    "letters and joints": "a-" * 200,
    "numerals": "一" * 1000,
    "numerals and units": "三年" * 200,
    "brackets after an address": "http://a.cn/" + ")" * 990,
}


def calls(text: str) -> int:
    """The number of function calls that a search takes, which no other process can change."""
    n = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in GRAMMAR.matches(Scan(text)):
            pass
    finally:
        sys.setprofile(None)
    return n


@pytest.mark.parametrize("name", HARD)
def test_work_is_linear(name: str) -> None:
    once, four_times = calls(HARD[name]), calls(HARD[name] * 4)
    assert four_times <= 4.5 * once + 100


def test_a_megabyte_of_digits_and_brackets() -> None:
    """Four times the text takes about four times the processor time; a quadratic search takes sixteen times."""
    mixed = "".join(random.Random(2).choices("0123456789()[]（）", k=10_000))
    seconds = []
    for size in (1, 4):
        text = ("9" * 75_000 + "(" * 62_500 + "）" * 62_500 + mixed * 5) * size
        started = process_time()
        assert any(GRAMMAR.matches(Scan(text)))
        seconds.append(process_time() - started)
    assert len(text) == 1_000_000
    assert seconds[1] < 8 * seconds[0] + 1


@pytest.mark.parametrize(
    ("text", "value"), [("2024年2月29日", "2024-02-29"), ("2023年2月29日", None), ("2月30日", None)]
)
def test_a_day_that_does_not_exist_has_no_value(text: str, value: str | None) -> None:
    [entity] = find(text)
    assert (entity.text, entity.label, entity.value) == (text, "DATE", value)


def test_digits_that_are_no_day_are_no_date() -> None:
    assert find("编码2023-02-29完") == ()


def test_a_given_day_resolves_relative_dates() -> None:
    assert find("下周三")[0].value is None
    assert find("下周三", today=date(2024, 3, 15))[0].value == "2024-03-20"
    assert find("9999年前", today=date(2024, 3, 15))[0].value is None


def test_check_digits() -> None:
    assert check("11010519491231002") == "X"  # the example of GB 11643
    assert luhn("79927398713")
    assert not luhn("79927398710")
    assert [e.label for e in find("11010519491231002X")] == ["ID_CARD"]
    assert find("110105194912310021") == ()


def test_offsets_are_those_of_the_text_as_given() -> None:
    text = "😀㍿ＡＢ于２０２４年３月５日，支付￥３５００"
    entities = find(text)
    assert [(e.text, e.value) for e in entities] == [
        ("２０２４年３月５日", "2024-03-05"),
        ("￥３５００", "3500 CNY"),
    ]
    assert all(text[e.start : e.end] == e.text for e in entities)


@pytest.mark.parametrize("invisible", ["\u200b", "\ufeff", "\xad", "\u2060\u200d", "\x00"])
def test_invisible_characters_are_skipped(invisible: str) -> None:
    text = f"付{invisible}3{invisible}０{invisible}0{invisible}元{invisible}，三月{invisible}五日"
    entities = find(text)
    assert [(e.text.replace(invisible, ""), e.label, e.value) for e in entities] == [
        ("3０0元", "MONEY", "300 CNY"),
        ("三月五日", "DATE", "XXXX-03-05"),
    ]
    assert all(text[e.start : e.end] == e.text == e.text.strip(invisible) for e in entities)


@pytest.mark.parametrize("keycap", ["1\ufe0f\u20e3", "1\u20e3"])
def test_a_keycap_is_no_digit(keycap: str) -> None:
    assert [e.text for e in find(f"{keycap}3500元")] == ["3500元"]
