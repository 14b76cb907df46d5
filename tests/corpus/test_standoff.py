"""Formats with offsets beside the text: brat, CMeEE and spaCy's DocBin."""

import io
import re
import zlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from corpus_examples import (
    NAMES,
    TEXT,
    document,
    found,
    lines,
    plain,
    put,
    refusal,
    run,
)
from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.standoff import brat, cmeee
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


def test_cmeee_reads_nested_entities_and_reports_bad_ones() -> None:
    text = "肺炎患者|||0    1    dis|||0 3 sym|||3 1 pro|||x|||\n无"
    with pytest.raises(DataError, match=r"^f:1: cannot read 'x'"):
        list(cmeee.read(lines(text), "f"))
    defects: list[Defect] = []
    first, second = cmeee.read(lines(text), "f", on_defect=defects.append)
    assert found(first) == [("肺炎患者", "sym"), ("肺炎", "dis")]
    assert found(second) == []
    assert [defect.kind for defect in defects] == ["not an entity", "misaligned span"]
    stream = io.StringIO()
    cmeee.write([first, second], stream)
    again = list(cmeee.read(stream.getvalue().split("\n")))
    assert [(d.text, d.spans) for d in again] == [(d.text, d.spans) for d in (first, second)]


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("李明|", "PER", "ends with |"),
        ("李|||明", "PER", "contains ||| or a line break"),
        ("李明", "P|R", "contains whitespace or |"),
        ("李明", "P R", "contains whitespace or |"),
    ],
)
def test_cmeee_refuses_what_it_could_not_read_back(text: str, label: str, message: str) -> None:
    given = Document(text, (Entity(text[:1], label, 0, 1),))
    with pytest.raises(HanlatticeError, match=re.escape(message)):
        cmeee.write([given], io.StringIO())


def test_brat_keeps_everything_in_its_pairs(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    (folder / "a.txt").write_bytes("我们\r\n在重庆".encode())
    (folder / "a.ann").write_text(
        "T3\tLOC 5 7\t重庆\nT1\tPER 0 1;1 2\t我 们\n"
        "R1\tIn Arg1:T1 Arg2:T3\n#1\tAnnotatorNotes T3\t好\n*\tEquiv T1 T3\n",
        encoding="utf-8",
    )
    (folder / "b" / "c.txt").write_text("无", encoding="utf-8")
    one, two = corpus.read(folder)
    assert (one.id, two.id) == ("a", "b/c")
    assert found(one) == [("我们", "PER"), ("重庆", "LOC")]
    assert one.entities[0].fragments == ((0, 1), (1, 2))
    corpus.write([one, two], tmp_path / "out", "brat")
    assert [plain(document) for document in corpus.read(tmp_path / "out")] == [plain(one), plain(two)]
    assert [plain(document) for document in corpus.read(folder / "a.ann")] == [plain(one)]
    with pytest.raises(DataError, match="exists already"):
        corpus.write([one], tmp_path / "out", "brat")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_brat_refuses_annotations_that_are_no_lines(tmp_path: Path) -> None:
    document = Document("重庆", (), meta={"annotations": [{"start": 0}]})
    with pytest.raises(HanlatticeError, match="column 'annotations' does not have lines of brat; rename"):
        corpus.write([document], tmp_path / "out", "brat")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ids", "written"),
    [
        (["T7", "T3"], ["T7", "T3"]),
        (("T7", "T3"), ["T7", "T3"]),
        (["T7"], ["T1", "T2"]),
        (["T7", "T7"], ["T1", "T2"]),
        (["T7", "T"], ["T1", "T2"]),
        (["T7", "a b"], ["T1", "T2"]),
        (["T7", "T3\t"], ["T1", "T2"]),
        (["T7", 3], ["T1", "T2"]),
        (["T7", ["T3"]], ["T1", "T2"]),
        ("T7", ["T1", "T2"]),
        ({"T7": 1, "T3": 2}, ["T1", "T2"]),
        (5, ["T1", "T2"]),
        (None, ["T1", "T2"]),
    ],
)
def test_brat_uses_identifiers_only_if_they_are_its_own(ids: object, written: list[str], tmp_path: Path) -> None:
    given = document(TEXT, (0, 2, "PER"), (3, 5, "LOC"), id="a", meta={"ids": ids})
    assert brat.clashing(given) == ({"ids"} if written == ["T1", "T2"] else set())
    corpus.write([given], tmp_path / "out", "brat")
    lines = (tmp_path / "out" / "a.ann").read_text("utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == written
    assert [d.spans for d in corpus.read(tmp_path / "out")] == [given.spans]


@pytest.mark.parametrize("surface", ["李\n", "\n李", "a\t", "\t", "李\r\n明"])
def test_brat_reads_entities_that_it_wrote_with_white_space_at_their_ends(surface: str, tmp_path: Path) -> None:
    document = Document(surface, (Entity(surface, "PER", 0, len(surface)),))
    corpus.write([document], tmp_path / "out", "brat")
    assert [d.spans for d in corpus.read(tmp_path / "out")] == [document.spans]


def test_brat_reports_wrong_offsets_and_reads_line_breaks_in_annotations(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("我们\n在重庆", encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tX 0 4\t我们\n在\nT2\tLOC 3 5\t重庆\nT3 LOC 4 6\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.ann:4: cannot read"):
        list(brat.read(tmp_path))
    defects: list[Defect] = []
    [read] = brat.read(tmp_path, on_defect=defects.append)
    assert found(read) == [("我们\n在", "X")]
    assert [(defect.line, defect.kind) for defect in defects] == [(4, "not an entity"), (3, "misaligned span")]
    assert "'重庆' is at [4, 6)" in defects[1].fix


def test_brat_quotes_a_line_that_is_no_annotation_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("李明在北京", encoding="utf-8")
    (tmp_path / "a.ann").write_text("foo bar\nT1\tPER 0 2\t李明\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.ann:1: cannot read 'foo bar'; write T1<tab>LABEL start end<tab>text$"):
        list(brat.read(tmp_path))
    defects: list[Defect] = []
    [read] = brat.read(tmp_path, on_defect=defects.append)
    assert found(read) == [("李明", "PER")]
    assert [(defect.line, defect.kind) for defect in defects] == [(1, "not an entity")]
    assert "annotations" not in read.meta


PAIR = "T1\tPER 0 2\t李明\nT2\tLOC 3 5\t北京\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("R\tIn Arg1:T1 Arg2:T2", "3: 'R' is not an identifier of brat; write one such as T1 or R1"),
        ("Rx\tIn Head:T1 Tail:T2", "3: 'Rx' is not an identifier of brat; write one such as T1 or R1"),
        ("\tIn Arg1:T1 Arg2:T2", "3: '' is not an identifier of brat; write one such as T1 or R1"),
        ("A\tNegation T1", "3: 'A' is not an identifier of brat; write one such as T1 or R1"),
        ("E\tMove:T1", "3: 'E' is not an identifier of brat; write one such as T1 or R1"),
        (
            "R1\tIn Arg1:T1 Arg2:T2\nR1\tIn Arg1:T2 Arg2:T1",
            "4: R1 is the identifier of an annotation on line 3 too; give each one its own",
        ),
        ("R1\tIn Arg1:T1 Arg2:T9", "3: R1 refers to T9, which is the identifier of no annotation that can be read"),
        ("R1\tIn Arg1: Arg2:T2", "3: R1 refers to nothing; name the annotation that is meant, or delete the line"),
        ("R1\tIn", "3: R1 refers to nothing"),
        ("R1 ", "3: R1 refers to nothing"),
        ("A1\tNegation", "3: A1 refers to nothing"),
        ("M1\tCertainty E9 high", "3: M1 refers to E9"),
        ("E1\tMove:T8 ", "3: E1 refers to T8"),
        ("*\tEquiv T1 T9", "3: * refers to T9"),
        ("N1\tReference T9 Wiki:3\tx", "3: N1 refers to T9"),
        ("#1\tAnnotatorNotes T9\tx", "3: #1 refers to T9"),
    ],
)
def test_brat_keeps_and_counts_annotations_with_unusable_identifiers(
    lines: str, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder / "a.txt", TEXT)
    put(folder / "a.ann", PAIR + lines + "\n")
    defects: list[Defect] = []
    [read] = corpus.read(folder, on_defect=defects.append)
    assert [defect.lossy for defect in defects] == [False]
    assert str(defects[0]).startswith(f"{folder / 'a.ann'}:{message}")
    assert found(read) == NAMES
    assert read.meta["annotations"] == lines.split("\n")
    corpus.write(corpus.read(folder), tmp_path / "out", "brat")
    assert (tmp_path / "out" / "a.ann").read_text("utf-8") == PAIR + lines + "\n"
    converted = run("convert", folder, tmp_path / "a.jsonl")
    assert (converted.exit_code, f"1 × {defects[0].kind}" in converted.output) == (0, True)


def test_brat_has_nothing_to_say_about_references_that_are_clear(tmp_path: Path) -> None:
    others = [
        "R1\tIn Arg1:T1 Arg2:T2", "E1\tMove:T1 To:T2", "E2\tPlan:T1 Theme:E1", "A1\tNegation E1", "M2\tNegation T1",
        "A3\tCertainty R1 T9", "N1\tReference T1 Wiki:T9\tx", "#1\tAnnotatorNotes R1\tT9", "#2\tNotes",
        "*\tEquiv T1 T2", "*\tEquiv T1 T2",
    ]  # fmt: skip
    put(tmp_path / "a.txt", TEXT)
    put(tmp_path / "a.ann", PAIR + "\n".join([*others, ""]))
    defects: list[Defect] = []
    [read] = corpus.read(tmp_path, on_defect=defects.append)
    assert (defects, read.meta["annotations"]) == ([], others)


@pytest.mark.parametrize(("name", "kind"), [("T1", "duplicate"), ("T", "unusable"), ("Tx", "unusable")])
def test_brat_does_not_let_relations_refer_to_other_entities(name: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder / "a.txt", TEXT)
    put(folder / "a.ann", PAIR.replace("T2", name) + "R1\tIn Arg1:T1 Arg2:T2\n")
    defects: list[Defect] = []
    [read] = corpus.read(folder, on_defect=defects.append)
    assert {defect.kind for defect in defects} == {f"{kind} identifier", "unclear reference"}
    assert found(read) == NAMES
    with pytest.raises(HanlatticeError, match="'ids' does not have one identifier for each entity; correct 'ids'"):
        corpus.write([read], tmp_path / "out", "brat")
    converted = run("convert", folder, tmp_path / "out", "--to", "brat")
    assert "brat holds no column 'annotations': 1 left out" in converted.output
    assert (tmp_path / "out" / "a.ann").read_text("utf-8") == PAIR


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("N1\tReference T9 hanlattice:value\tx", "'x' is a value of T9, which is not the identifier of one entity"),
        (
            "N1\tReference T1 hanlattice:value\tx\nN2\tReference T1 hanlattice:value\ty",
            "'y' is a value of T1, which is an entity that has a value already; delete the line",
        ),
    ],
)
def test_brat_reports_values_that_no_entity_can_have(value: str, message: str, tmp_path: Path) -> None:
    put(tmp_path / "a.txt", TEXT)
    put(tmp_path / "a.ann", PAIR + value + "\n")
    with pytest.raises(DataError, match=rf"a\.ann:\d: {message}"):
        list(corpus.read(tmp_path))
    [read] = corpus.read(tmp_path, on_defect=lambda defect: None)
    assert [entity.value for entity in read.entities] == ["x" if "T1" in value else None, None]


@pytest.mark.parametrize(
    "line",
    ["", "x", "T3\tPER 0 1\t李", "N1\tReference T1 hanlattice:value\tx", "R1\tA Arg1:T1\nR2\tA Arg1:T1", "#1\tx\r"],
)
def test_brat_writes_no_annotation_that_it_would_read_as_something_else(line: str, tmp_path: Path) -> None:
    with pytest.raises(HanlatticeError, match="column 'annotations' does not have lines of brat; rename"):
        corpus.write([document(TEXT, (0, 2, "PER"), meta={"annotations": [line]})], tmp_path / "out", "brat")


@pytest.mark.parametrize("name", ["../x", "", "a"])
def test_brat_ids_must_be_unique_file_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(HanlatticeError, match="brat names files by ids"):
        brat.write([document("我", id="a"), document("我", id=name)], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_brat_in_utf16(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", TEXT.encode("utf-16"))
    put(tmp_path / "a.ann", "T1\tPER 0 2\t李明\nT2\tLOC 3 5\t北京\n".encode("utf-16"))
    assert [(d.text, found(d)) for d in corpus.read(tmp_path)] == [(TEXT, NAMES)]


def test_docbin_without_spacy_names_the_command_that_converts_it(tmp_path: Path) -> None:
    path = put(tmp_path / "train.spacy", zlib.compress(b"\x84\xa7version\xa30.1\xa5attrs\x95\x41\x42"))
    assert corpus.detect(path) == "docbin"
    if find_spec("spacy") is None:
        refused = refusal(path)
        assert "is spaCy's DocBin, which only spaCy can read" in refused
        assert "DocBin().from_disk('train.spacy')" in refused
    else:
        assert "cannot be read as spaCy's DocBin" in refusal(path)


def test_docbin_is_read_where_spacy_is_installed(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    vocab = spacy.blank("xx").vocab
    entities, groups, both = (Doc(vocab, ["李明", "在", "北京"], [False] * 3) for _ in range(3))
    for doc in (entities, both):
        doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "LOC")]
    for doc in (groups, both):
        doc.spans["sc"] = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "LOC")]
    DocBin(docs=[entities, groups], store_user_data=True).to_disk(tmp_path / "a.spacy")
    assert [(d.text, found(d)) for d in corpus.read(tmp_path / "a.spacy")] == [(TEXT, NAMES)] * 2
    DocBin(docs=[both]).to_disk(tmp_path / "b.spacy")
    assert "2 spans in groups, which are not read" in refusal(tmp_path / "b.spacy")
