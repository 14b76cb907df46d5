"""Warnings about corpora that were probably read wrongly."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corpus_examples import (
    TEXT,
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
