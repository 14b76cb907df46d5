"""Warnings about corpora that were probably read wrongly."""

import itertools
from collections import Counter
from collections.abc import Iterable
from math import log
from pathlib import Path
from typing import Any

import pytest

from corpus_examples import (
    TEXT,
    document,
    kinds,
    put,
)
from hanlattice.corpus.checking import check
from hanlattice.corpus.plausibility import Plausibility
from hanlattice.document import Document, Entity


def many(row: Any, n: int = 6) -> Iterable[dict[str, Any]]:
    """Rows of different texts, each two names and a full stop."""
    for i in range(n):
        yield row(f"{'张王李赵钱孙'[i % 6]}{'明芳军丽强敏'[i // 6 % 6]}在{'上下左右前后'[i % 6]}城。")


def test_a_corpus_without_entities_is_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT}])
    assert kinds(path) == {"no entities": "name the format with --from if there should be entities"}
    assert check([path]).usable


def test_ends_one_character_short_are_a_warning(tmp_path: Path) -> None:
    right = list(many(lambda text: {"text": text, "label": [[0, 2, "PER"], [3, 5, "LOC"]]}))
    short = list(many(lambda text: {"text": text, "label": [[0, 1, "PER"], [3, 4, "LOC"]]}))
    assert kinds(put(tmp_path / "right", right)) == {}
    told = kinds(put(tmp_path / "short", short))
    assert told == {"ends one short": "if the ends are inclusive, read the file with --ends inclusive"}
    assert kinds(tmp_path / "short", ends="inclusive") == {}
    tags = "".join(
        "".join(f"{c}\t{'B-X' if i in (0, 3) else 'O'}\n" for i, c in enumerate(row["text"])) + "\n"
        for row in short
    )
    assert kinds(put(tmp_path / "tags", tags)) == {}


def test_plausible_byte_offsets_are_a_warning(tmp_path: Path) -> None:
    text = "李明王芳张军赵丽钱强孙敏在上海出席了会议并且讲话还有其他人一同前往"
    rows = [{"text": f"{i}{text}", "label": [[1 + 6 * i, 7 + 6 * i, "PER"]]} for i in range(4)]
    rows += [{"text": f"{text}{i}", "label": [[3 + 6 * i, 9 + 6 * i, "PER"]]} for i in range(4)]
    path = put(tmp_path / "file", rows)
    assert kinds(path) == {"byte offsets": "if they count bytes, read the file with --units bytes"}
    assert kinds(path, units="bytes") == {}
    one = put(tmp_path / "one", [{"text": f"{i}，{text}", "label": [[2, 4, "PER"]]} for i in range(9)])
    assert kinds(one) == {}


def test_plausible_utf16_offsets_are_a_warning(tmp_path: Path) -> None:
    names = ["李明", "王芳", "张军", "赵丽"]
    plain = [{"text": f"{name}去了，我没有去。", "label": [[0, 2, "PER"]]} for name in names]
    emoji = [{"text": f"😀{name}也去了，真好。", "label": [[2, 4, "PER"]]} for name in names]
    path = put(tmp_path / "file", [*plain, *emoji])
    assert kinds(path)["UTF-16 offsets"] == "if they count UTF-16 code units, read the file with --units utf16"
    assert kinds(path, units="utf16") == {}
    right = [{"text": row["text"], "label": [[1, 3, "PER"]]} for row in emoji]
    assert kinds(put(tmp_path / "right", [*plain, *right])) == {}


def test_labels_with_whitespace_are_one_warning_each(tmp_path: Path) -> None:
    spans = [[0, 2, "full name"], [3, 5, "LOC "], [2, 3, "ok"]]
    path = put(tmp_path / "file", [{"text": f"{TEXT}{i}", "label": spans} for i in range(3)])
    report = check([path])
    assert report.kinds == {"label with blanks": 2}
    assert "'full name' contains whitespace (3 entities)" in report.defects[0].message


def test_only_entities_after_an_emoji_may_have_moved() -> None:
    """北京 stands before the emoji, where offsets of both kinds are the same."""
    seen = Plausibility()
    entities = (Entity("北京", "LOC", 0, 2), Entity("上海", "LOC", 4, 6))
    seen.add(Document("北京😀在上海", entities))
    assert [read for read, _ in seen.shifted] == [("LOC", "上海")]
    assert seen.known == set()
    seen.add(Document("北京在上海", (Entity("北京", "LOC", 0, 2),)))
    assert seen.known == {("LOC", "北京")}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, []),
        ({"documents": 1}, ["no entities"]),
        ({"documents": 1, "entities": 1}, []),
        ({"at_edge": 4, "one_short": 5}, ["ends one short"]),
        ({"at_edge": 0, "one_short": 4}, []),
        ({"at_edge": 5, "one_short": 6}, []),
        ({"at_edge": 8, "one_short": 10}, ["ends one short"]),
        ({"as_bytes": {3: 4.0, 6: 5.0}}, ["byte offsets"]),
        ({"as_bytes": {3: 4.0, 6: 4.9}}, []),
        ({"as_bytes": {3: 99.0}, "no_bytes": True}, []),
        ({"known": {("A", "李")}, "shifted": [(("A", "在"), ("A", "李"))] * 3}, ["UTF-16 offsets"]),
        ({"known": {("A", "李")}, "shifted": [(("A", "在"), ("A", "李"))] * 2}, []),
        ({"known": {("A", "李")}, "shifted": [(("A", "在"), ("B", "李"))] * 9}, []),
        (
            {"known": {("A", "李")}, "shifted": [(("A", "李"), ("A", "在"))] + [(("A", "在"), ("A", "李"))] * 4},
            [],
        ),
        (
            {"known": {("A", "李")}, "shifted": [(("A", "李"), ("A", "在"))] + [(("A", "在"), ("A", "李"))] * 5},
            ["UTF-16 offsets"],
        ),
        ({"labels": Counter({"A": 1, "": 2, " ": 3, "A B": 4, "A ": 5})}, ["label with blanks"] * 2),
    ],
)
def test_how_much_evidence_is_enough(counts: dict[str, Any], expected: list[str]) -> None:
    told = list(Plausibility(**counts).defects("f", offsets=True))
    assert [defect.kind for defect in told] == expected
    assert [(defect.file, defect.line, defect.lossy) for defect in told] == [("f", None, False)] * len(expected)
    about_offsets = {"ends one short", "byte offsets", "UTF-16 offsets"}
    kept = [kind for kind in expected if kind not in about_offsets]
    assert [defect.kind for defect in Plausibility(**counts).defects("f", offsets=False)] == kept


def test_the_evidence_of_a_document_by_its_definition() -> None:
    texts = ["李明a在，北京。", "在北京abc 李明", "一二三", "😀李明在", "李\uffff明在", "ab，c"]
    for text in texts:
        bounds = list(itertools.accumulate((len(c.encode()) for c in text), initial=0))
        for start, end in itertools.combinations(range(len(text) + 1), 2):
            counted = Plausibility()
            counted.add(document(text, (start, end, "A")))
            edges = [place >= len(text) or not text[place].isalnum() for place in (end, end + 1)]
            assert (counted.at_edge, counted.one_short) == (edges[0], not edges[0] and edges[1])
            assert (counted.documents, counted.entities, counted.labels) == (1, 1, {"A": 1})
            if text.isascii():
                assert not counted.as_bytes
                continue
            assert counted.no_bytes == (start not in bounds or end not in bounds)
            evidence = -log(sum(bound <= len(text) for bound in bounds) / (len(text) + 1))
            assert counted.as_bytes == {place: pytest.approx(evidence) for place in (start, end) if place}
            if "😀" not in text:
                assert counted.known == {("A", text[start:end])}
                continue
            units = {len(text[:n].encode("utf-16-le")) // 2: n for n in range(len(text) + 1)}
            read = [units.get(place) for place in (start, end)]
            is_other = None not in read and read[0] != start
            other = ("A", text[slice(*read)])
            assert counted.shifted == ([(("A", text[start:end]), other)] if is_other else [])


def test_the_strongest_evidence_for_an_offset_counts() -> None:
    counted = Plausibility()
    found = [document("一二三四五", (0, 3, "A")), document("一二三四五六七八", (0, 3, "A"))]
    for one in [*found, found[0]]:
        counted.add(one)
    assert counted.as_bytes == {3: pytest.approx(-log(3 / 9))}
    counted.add(document("一二", (0, 1, "A")))
    assert counted.no_bytes
    counted.add(document("一二三", (0, 3, "A")))
    assert counted.no_bytes, "one offset that cannot count bytes is enough"
