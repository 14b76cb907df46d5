"""Patterns of users: language, regular expressions, files; priority beside a model; formats that keep values."""

import importlib.util
import pickle
import re
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path

import pytest

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.patterns import KINDS, Pattern, Patterns, find, patterns_of
from hanlattice.postprocessing import merge_patterns


def texts(pattern: str, text: str) -> list[tuple[str, str | None]]:
    return [(e.text, e.value) for e in Patterns((), (Pattern("X", pattern),)).find(text)]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("CA<digit>{3,4}", "坐CA1234去，CA12不是", [("CA1234", None)]),
        ("合同编?号[：:]?=(HT-<digit>{4,8})", "合同号：HT-20240101", [("HT-20240101", None)]),
        ("(甲|乙)级", "甲级和乙级、丙级", [("甲级", None), ("乙级", None)]),
        ("<number>岁", "今年三十岁", [("三十岁", "30")]),
        ("<DATE>晚会", "3月5日晚会", [("3月5日晚会", "XXXX-03-05")]),
        ("[^甲]级", "甲级乙级", [("乙级", None)]),
        (r"\(<han>{2}\)", "（北京）", [("（北京）", None)]),
        ("<letter>{2}<any>", "ab!", [("ab!", None)]),
    ],
)
def test_language(pattern: str, text: str, expected: list[tuple[str, str | None]]) -> None:
    assert texts(pattern, text) == expected


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("<digit>*", "no bound"),
        ("[a-z]{1,8}abc", "would have to backtrack"),
        ("a{0,65}", "repeats 0,65 times"),
        ("(a", "has no '\\)'"),
        ("<foo>", "unknown name <foo>"),
        ("a?", "also matches nothing"),
        ("((a{64}){64}){2}", "repeat less"),
        ("=(a)=(b)", "2 parts"),
    ],
)
def test_a_wrong_pattern_is_one_line(pattern: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Pattern("X", pattern)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("re2") is None, reason="google-re2 is not installed")
def test_regular_expressions_are_run_by_re2() -> None:
    entities = Patterns((), (Pattern("X", regex="合同(HT-[0-9]+)"),)).find("😀合同HT-12345")
    assert [(e.text, e.start) for e in entities] == [("HT-12345", 3)]
    assert Patterns((), (Pattern("X", regex="(a+)+b"),)).find("a" * 20_000) == ()
    with pytest.raises(ConfigError, match="no backreferences"):
        Pattern("X", regex=r"(a)\1")


def test_a_regular_expression_without_re2_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.patterns.expressions.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="hanlattice\\[patterns\\]"):
        Pattern("X", regex="not seen before")


def test_of_patterns_that_overlap_the_longest_is_kept() -> None:
    own = (Pattern("SHOW", "3月5日晚会"), Pattern("DAY", "3月5日"))
    assert [(e.text, e.label) for e in Patterns(own=own).find("3月5日晚会和3月5日")] == [
        ("3月5日晚会", "SHOW"),
        ("3月5日", "DAY"),
    ]
    with pytest.raises(ConfigError, match="patterns 1 and 2 are the same"):
        Patterns(own=(Pattern("A", "甲"), Pattern("B", "甲")))


def test_value_of_a_function() -> None:
    own = (Pattern("AGE", "<digit>{1,3}岁", value=lambda text: text.removesuffix("岁")),)
    assert Patterns((), own).find("３０岁")[0].value == "30"


FILE = """
kinds = ["DATE"]
today = 2024-03-15
priority = "model"
[[pattern]]
label = "FLIGHT"
pattern = "CA<digit>{4}"
"""


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text(FILE, "utf-8")
    patterns = patterns_of(path)
    assert patterns is not None
    assert pickle.loads(pickle.dumps(patterns)) == patterns
    assert patterns.priority == "model"
    assert [(e.text, e.value) for e in find("明天CA1234花300元", patterns=patterns)] == [
        ("明天", "2024-03-16"),
        ("CA1234", None),
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"DATE"', '"DAY"', "no kind 'DAY'"),
        ("today = 2024-03-15", 'today = "soon"', "today is not a day"),
        ('"model"', '"best"', "priority must be"),
        ("<digit>{4}", "<digit>+", "pattern 1: .*no bound"),
        ('label = "FLIGHT"', "", "pattern 1: .*no label"),
        ("kinds", "kind", "unknown key 'kind'"),
        ("[[pattern]]", "[[pattern", "is not TOML"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_name(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text(FILE.replace(old, new), "utf-8")
    with pytest.raises(DataError, match=rf"patterns\.toml: .*{problem}") as caught:
        Patterns.open(path)
    assert "\n" not in str(caught.value)


def entity(start: int, end: int, label: str) -> Entity:
    return Entity("x" * (end - start), label, start, end, 1.0)


def test_priority() -> None:
    long, short, day = entity(0, 6, "ORG"), entity(6, 8, "PER"), entity(4, 8, "DATE")
    regular = [day]

    def kept(priority: str, *model: Entity, nested: bool = False) -> list[str]:
        merged = merge_patterns(model, regular, priority=priority, nested=nested)  # type: ignore[arg-type]
        return [e.label for e in merged]

    assert kept("longest", long, short) == ["ORG", "PER"]  # the date loses to ORG, so it does not displace PER
    assert kept("longest", short) == ["DATE"]
    assert kept("longest", entity(4, 8, "TIME")) == ["DATE"]
    assert kept("patterns", long, short) == ["DATE"]
    assert kept("model", short) == ["PER"]
    assert kept("longest", short, nested=True) == ["DATE", "PER"]


def test_beside_a_model() -> None:
    ner = hanlattice.load(patterns=["DATE", "MONEY"])
    text = "李明明天在北京捐款3500元"

    def labels() -> dict[str, str]:
        return {e.text: e.label for e in ner(text).entities}

    assert labels() | {"明天": "DATE", "3500元": "MONEY"} == labels()
    words = ner(text).words
    with ner.using(patterns=False):
        assert "3500元" not in labels()
        assert ner(text).words == words  # which the patterns do not change
    with ner.using(patterns=Patterns(("DATE",), today=date(2024, 3, 15))):
        assert [e.value for e in ner(text).entities if e.label == "DATE"] == ["2024-03-16"]
    with ner.using(block={"3500元": None}, force={"明天": "PER"}):
        assert "3500元" not in labels()
        assert labels()["明天"] == "PER"
    assert pickle.loads(pickle.dumps(ner)).patterns == ner.patterns


@pytest.mark.parametrize("name", ["jsonl", "label-studio"])
def test_values_survive_a_file(name: str) -> None:
    text = "于3月5日付3500元"
    document = Document(text, tuple(replace(e, score=None) for e in find(text)))
    stream = StringIO()
    write = corpus.FORMATS[name].write
    assert write is not None
    write([document], stream)
    [again] = corpus.FORMATS[name].read(stream.getvalue().splitlines())
    assert again.entities == document.entities
    assert [e.value for e in again.entities] == ["XXXX-03-05", "3500 CNY"]


def test_values_survive_brat(tmp_path: Path) -> None:
    text = "于3月5日付3500元"
    document = Document(text, tuple(replace(e, score=None) for e in find(text)), id="a")
    corpus.write([document], tmp_path / "brat", "brat")
    [again] = corpus.read(tmp_path / "brat")
    assert again.entities == document.entities


def test_no_possessive_groups() -> None:
    """``(…)*+`` can match wrongly before Python 3.11.5 (https://github.com/python/cpython/issues/106052)."""
    possessive = re.compile(r"[^\\]\)(?:[*+?]|\{\{?[0-9,{}\w]*\}\}?)\+")
    assert possessive.search("(?:ab?c){{0,{_LONGEST}}}+")
    assert possessive.search("(?:ab?c)*+")
    sources = {path: path.read_text("utf-8") for path in Path(hanlattice.__file__).parent.rglob("*.py")}
    assert [path.name for path, source in sources.items() if possessive.search(source)] == []


@pytest.mark.parametrize("page", ["docs/patterns.md", "docs/zh/patterns.md"])
def test_examples_of_the_page_are_found(page: str) -> None:
    rows = re.findall(
        r"^\| (`[A-Z].+?) \| (.+?) \|", (Path(__file__).parents[2] / page).read_text("utf-8"), re.MULTILINE
    )
    rows = [(labels, examples) for labels, examples in rows if "ID_CARD" not in labels]  # described in words
    assert len(rows) == len(KINDS) - 3  # three share a row
    for labels, examples in rows:
        for example in re.split("[、,] ?", examples):
            [entity] = find(example)
            assert f"`{entity.label}`" in labels
