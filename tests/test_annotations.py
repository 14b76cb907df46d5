"""scripts/annotations.py: entities of sentences whose text is elsewhere."""

from itertools import pairwise
from pathlib import Path

import pytest

import annotations
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError
from hanlattice.spans import Span

TEXTS = ["王小红去了南京。", "今天下雨。", "光明集团的王小红"]
DOCUMENTS = [
    Document(TEXTS[0], (Entity("王小红", "PER", 0, 3), Entity("南京", "LOC", 5, 7)), meta={"genre": "a"}),
    Document(TEXTS[1], (), meta={"genre": "a"}),
    Document(TEXTS[2], (Entity("光明集团", "ORG", 0, 4), Entity("王小红", "PER", 5, 8)), meta={"genre": "b"}),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "open.tsv"
    path.write_text("".join(annotations.rows(DOCUMENTS)), "utf-8")
    return path


def test_the_sentences_are_found_again(path: Path) -> None:
    by_source = annotations.read(path)
    assert list(by_source) == ["a", "b"]
    others = ["王小红去了北京。", *reversed(TEXTS), TEXTS[0]]
    found = [d for source in "ab" for d in annotations.annotated(others, {**by_source[source]}, source)]
    assert found == [DOCUMENTS[1], DOCUMENTS[0], DOCUMENTS[2]]
    assert [d.meta["genre"] for d in found] == ["a", "a", "b"]


def test_the_file_holds_no_text(path: Path) -> None:
    for file in (path, annotations.OPEN):
        assert file.read_bytes().isascii()


def test_a_source_without_an_annotated_sentence_is_refused(path: Path) -> None:
    (wanted, _) = annotations.read(path).values()
    with pytest.raises(DataError, match=r"1 annotated sentences are not in a, such as [0-9a-f]{16}: .*version"):
        list(annotations.annotated(TEXTS[:1], wanted, "a"))
    with pytest.raises(DataError, match=r"ends behind the sentence"):
        list(annotations.annotated(TEXTS, {annotations.digest(TEXTS[0]): (Span(5, 9, "LOC"),)}, "a"))


@pytest.mark.parametrize("row", ["a\t12", "a\t12\t3:PER", "a\t12\t3-3:PER", "a\t12\t0-1:", "a\t12\tx-2:PER"])
def test_a_broken_row_is_named(path: Path, row: str) -> None:
    path.write_text(path.read_text("utf-8") + row + "\n", "utf-8")
    with pytest.raises(DataError, match=r"open.tsv:4: not a row of source, digest and start-end:LABEL"):
        annotations.read(path)


def test_the_command_writes_sorted_rows_without_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus.write(DOCUMENTS, tmp_path / "in.jsonl", "jsonl")
    output = tmp_path / "out.tsv"
    monkeypatch.setattr("sys.argv", ["annotations.py", str(tmp_path / "in.jsonl"), str(output)])
    annotations.main()
    written = output.read_text("utf-8").splitlines()
    assert written == sorted(line.rstrip("\n") for line in annotations.rows(DOCUMENTS))
    assert sum(line.endswith("\t0-3:PER 5-7:LOC") for line in written) == 1


def test_our_annotations_have_the_labels_of_the_packaged_model_and_do_not_overlap() -> None:
    by_source = annotations.read()
    assert sum(map(len, by_source.values())) > 1_000
    for wanted in by_source.values():
        for spans in wanted.values():
            assert {s.label for s in spans} <= {"PER", "LOC", "ORG", "WORK", "PRODUCT", "EVENT"}
            assert all(a.end <= b.start for a, b in pairwise(spans))


def test_the_gazetteer_has_each_name_once_with_a_label() -> None:
    lines = annotations.OPEN.with_name("names.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines]
    names = [name for name, _ in rows]
    assert names == sorted(set(names))
    assert {label for _, label in rows} == {"PER", "LOC", "ORG", "WORK", "PRODUCT", "EVENT"}
    assert all(2 <= len(name) <= 16 and name == name.strip() for name in names)
