"""Every reader and writer: each quirk on an example of its own, and whatever is written reads back the same."""

import io
import itertools
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice import corpus
from hanlattice.corpus import brat, cluener, cmeee, conll, jsonl, label_studio, losses, people_daily, spacy
from hanlattice.corpus.defects import Defect
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


def lines(text: str) -> list[str]:
    return text.split("\n")


def found(document: Document) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in document.entities]


def plain(document: Document) -> Document:
    """Without the place it was read from."""
    meta = {key: value for key, value in document.meta.items() if not key.startswith("@")}
    return Document(document.text, document.entities, document.id, document.tokens, meta)


def document(text: str, *spans: tuple[int, int, str], **rest: object) -> Document:
    entities = tuple(Entity(text[start:end], label, start, end) for start, end, label in spans)
    return Document(text, entities, **rest)  # type: ignore[arg-type]


# CoNLL columns


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BIO", "B-LOC I-LOC I-LOC O B-PER B_T"),
        ("BMES", "B-LOC M-LOC E-LOC O S-PER S-T"),
        ("BIOES", "B-LOC I-LOC E-LOC O S-PER S_T"),
        ("BILOU", "B-LOC I-LOC L-LOC O U-PER U-T"),
    ],
)
@pytest.mark.parametrize("separator", [" ", "\t"])
@pytest.mark.parametrize("named", [True, False])
def test_conll_reads_every_scheme(scheme: str, tags: str, separator: str, named: bool) -> None:
    rows = [f"{token}{separator}{tag}" for token, tag in zip("渝中区在他们", tags.split(), strict=True)]
    [read] = conll.read(rows, scheme=scheme if named else None)
    assert read.text == "渝中区在他们"
    assert found(read) == [("渝中区", "LOC"), ("他", "PER"), ("们", "T")]
    assert read.tokens is None


@pytest.mark.parametrize(
    ("blank", "separator"),
    [(" ", " "), ("\u3000", " "), ("\u00a0", " "), (" ", "\t"), ("\u3000", "\t"), ("\t", "\t")],
)
def test_conll_token_may_be_a_blank(blank: str, separator: str) -> None:
    rows = [
        f"{token}{separator}{tag}" for token, tag in [("我", "B-X"), (blank, "I-X"), ("你", "I-X"), (blank, "O")]
    ]
    [read] = conll.read(rows)
    assert read.text == f"我{blank}你{blank}"
    assert found(read) == [(f"我{blank}你", "X")]


def test_conll_empty_token_is_a_stripped_space_and_is_said() -> None:
    defects: list[Defect] = []
    [read] = conll.read(["看 O", " O", "一 O", " the O"], on_defect=defects.append)
    assert read.text == "看 一 the"
    assert [(defect.line, defect.kind, defect.lossy) for defect in defects] == [(2, "empty token", False)]


def test_conll_splits_sentences_at_blank_lines_and_docstart() -> None:
    text = "-DOCSTART- -X- O\n\n我 O\n \t\n你 O\n\n\n-DOCSTART- O\n他 O"
    read = list(conll.read(lines(text)))
    assert [(document.text, document.meta["@line"]) for document in read] == [("我", 3), ("你", 5), ("他", 9)]


def test_conll_keeps_columns_between() -> None:
    [read] = conll.read(["我 r 1 B-PER", "们 r 2 I-PER"])
    assert read.meta["columns"] == [["r", "1"], ["r", "2"]]
    assert found(read) == [("我们", "PER")]


def test_conll_word_tokens_get_a_space_only_where_latin_would_fuse() -> None:
    rows = [("我", "O"), ("love", "B-X"), ("you", "I-X"), ("3000", "I-X"), ("遍", "O"), ("o", "O"), ("k", "O")]
    [read] = conll.read([f"{token} {tag}" for token, tag in rows])
    assert read.text == "我love you 3000遍ok"
    assert found(read) == [("love you 3000", "X")]
    assert [read.text[start:end] for start, end in read.tokens or ()] == [token for token, _ in rows]


def test_conll_weibo_positions_of_one_and_two_digits() -> None:
    tokens = ["科0", "技1", "我0", "\ufffd\ufffd0", *(f"{i % 10}{i}" for i in range(12)), "京0"]
    rows = [f"{token}\t{'B-T' if i == 0 else 'O'}" for i, token in enumerate(tokens)]
    [read] = conll.read(rows)
    assert read.text == "科技我\ufffd\ufffd012345678901京"
    assert read.meta["positions"] == [0, 1, 0, 0, *range(12), 0]
    assert found(read) == [("科", "T")]
    stream = io.StringIO()
    conll.write([read], stream, "BIO")
    assert stream.getvalue() == "\n".join(rows) + "\n\n"


def test_conll_words_with_numbers_are_not_weibo_positions() -> None:
    [read] = conll.read(["A1 O", "A2 O", "我 O"])
    assert read.text == "A1 A2我"
    [named] = conll.read(["我0 O", "们1 O"], positions=False)
    assert named.text == "我0们1"


def test_conll_ill_formed_tags_lenient_strict_and_reported() -> None:
    rows = ["我 O", "们 I-X", "在 B-Y", "这 I-Y"]
    defects: list[Defect] = []
    assert found(next(conll.read(rows))) == [("们", "X"), ("在这", "Y")]
    assert found(next(conll.read(rows, strict=True))) == [("在这", "Y")]
    list(conll.read(["", *rows], "f", on_defect=defects.append))
    assert [(defect.line, defect.kind, defect.lossy) for defect in defects] == [(3, "ill-formed tags", False)]


def test_conll_unknown_tag_and_missing_tag_name_the_line() -> None:
    rows = ["我 B-X", "们 X-Y", "在", "里 Q"]
    with pytest.raises(DataError, match=r"^f:3: no tag in '在'; write"):
        list(conll.read(rows, "f"))
    with pytest.raises(DataError, match=r"^f:2: tag 'X-Y' is not of any scheme"):
        list(conll.read(rows[:2], "f"))
    with pytest.raises(DataError, match=r"^f:1: tag 'M-X' is not of BIO"):
        list(conll.read(["我 M-X"], "f", scheme="BIO"))
    with pytest.raises(HanlatticeError, match=r"unknown tag scheme 'BIX'; allowed are BIO"):
        list(conll.read(["我 M-X"], "f", scheme="BIX"))
    defects: list[Defect] = []
    [read] = conll.read(rows, "f", on_defect=defects.append)
    assert found(read) == [("我", "X")]
    assert sorted((defect.line, defect.kind) for defect in defects) == [
        (2, "unknown tag"), (3, "missing tag"), (4, "unknown tag"),
    ]  # fmt: skip


def test_conll_scheme_is_guessed_anew_when_a_tag_comes_late() -> None:
    rows = ["我 O", ""] * 3000 + ["你 B-X", "们 E-X", "", "你 B-X", "们 I-X", "好 E-X"]
    *_, one, two = conll.read(rows)
    assert found(one) + found(two) == [("你们", "X"), ("你们好", "X")]
    with pytest.raises(DataError, match="name the scheme"):
        list(conll.read(rows, strict=True))


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.text("我们在ab1Ａ \t\u3000\u00a0\r\u2028😀-|", min_size=1, max_size=3).filter(
                    lambda token: "\t" not in token or token == "\t"
                ),
                st.sampled_from(["O", "B-X", "I-X", "B-y_z.1", "I-y_z.1"]),
            ),
            min_size=1,
            max_size=6,
        ),
        max_size=4,
    ),
    st.sampled_from(["BIO", "BMES", "BIOES", "BILOU"]),
)
def test_conll_read_write_read(sentences: list[list[tuple[str, str]]], scheme: str) -> None:
    rows = [row for sentence in sentences for row in [*(f"{token}\t{tag}" for token, tag in sentence), ""]]
    first = [plain(document) for document in conll.read(rows, scheme="BIO", positions=False)]
    stream = io.StringIO()
    conll.write(first, stream, scheme)
    again = conll.read(stream.getvalue().split("\n"), scheme=scheme, positions=False)
    assert [plain(document) for document in again] == first
    assert [len(document.tokens or document.text) for document in first] == [len(row) for row in sentences]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (document("我们在", (0, 2, "A"), (1, 3, "B")), "overlap"),
        (Document("我们在", (Entity("我们在", "A", 0, 3, fragments=((0, 1), (2, 3))),)), "discontinuous"),
        (document("我们在", (0, 1, "A"), tokens=((0, 2), (2, 3))), "does not begin and end at a token"),
        (document("我\n在"), "cannot be read back"),
        (document("我在", (0, 1, "A\tB")), "cannot be read back"),
    ],
)
def test_conll_never_writes_what_would_not_read_back(bad: Document, message: str) -> None:
    with pytest.raises(HanlatticeError, match=message):
        conll.write([bad], io.StringIO())


# JSON lines and its relatives


def test_jsonl_reads_its_own_and_other_shapes() -> None:
    rows = [
        {
            "id": 7,
            "text": "我在渝中",
            "entities": [{"start": 2, "end": 4, "label": "LOC", "score": 0.5}],
            "source": "a",
        },
        {"id": 8, "text": "我在渝中", "label": [[2, 4, "LOC"]]},
        {"text": "我在渝中", "labels": [[2, 4, "LOC"]]},
        {"data": "我在渝中", "label": [[2, 4, "LOC"]]},
        {
            "text": "我在渝中",
            "entities": [{"id": 1, "start_offset": 2, "end_offset": 4, "label": "LOC"}],
            "relations": [],
        },
        ["我在渝中", {"entities": [[2, 4, "LOC"]]}],
    ]
    read = list(jsonl.read([json.dumps(row) for row in rows]))
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 6
    assert read[0].id == "7"
    assert read[0].entities[0].score == 0.5
    assert plain(read[0]).meta == {"source": "a"}
    assert plain(read[4]).meta == {"relations": []}


def test_jsonl_takes_the_utf16_reading_only_where_it_mends_the_whole_text() -> None:
    def row(start: int, end: int, text: str | None = "渝中") -> str:
        entity = {"start": start, "end": end, "label": "LOC", "text": text}
        return json.dumps({"text": "😀在渝中", "entities": [{k: v for k, v in entity.items() if v}]})

    read = jsonl.read([row(2, 4), row(3, 5), row(3, 5, None)])
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 3
    with pytest.raises(
        DataError, match=r"^f:1: LOC \[1, 3\) is '在渝' in the text but '渝中' in the annotation; the nearest"
    ):
        list(jsonl.read([row(1, 3)], "f"))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ('{"text": 3}', "not a document"),
        ('{"text": "\\ud83d"}', "not a document"),
        ('{"text": "我", "entities": [[0.0, 1, "A"]]}', "not a document"),
        ("{", "not JSON"),
        ('{"entities": []}', "not a document"),
        ('{"text": "我", "entities": [{"start": 0}]}', "not a document"),
        ('{"text": "我", "entities": [[0, "x", "A"]]}', "not a document"),
        ('{"text": "我", "entities": [[0, 2, "A"]]}', "misaligned span"),
        ('{"text": "我", "entities": [[1, 1, "A"]]}', "misaligned span"),
        ('{"text": "我", "entities": [[-1, 1, "A"]]}', "misaligned span"),
        ('{"text": "我", "tokens": [[0, 9]]}', "not a document"),
        ("3", "not a document"),
    ],
)
def test_jsonl_defects_name_the_line(row: str, kind: str) -> None:
    with pytest.raises(DataError, match=r"^f:2: .*; "):
        list(jsonl.read(['{"text": "我"}', row], "f"))
    defects: list[Defect] = []
    read = list(jsonl.read([row, '{"text": "我"}'], "f", on_defect=defects.append))
    assert [(defect.line, defect.kind) for defect in defects] == [(1, kind)]
    assert read[-1].text == "我"


@st.composite
def documents(draw: st.DrawFn, flat: bool = False) -> Document:
    """Texts with anything in them, and entities anywhere."""
    text = draw(st.text(st.sampled_from('我们在渝中ab1 \n\t😀\u3000\ufeff"\\'), min_size=1, max_size=12))
    cuts = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).filter(lambda cut: cut[0] != cut[1])
    spans = sorted({(min(cut), max(cut)) for cut in draw(st.lists(cuts, max_size=4))}, key=lambda s: (s[0], -s[1]))
    if flat:
        spans = [span for i, span in enumerate(spans) if all(span[0] >= other[1] for other in spans[:i])]
    labels = [draw(st.sampled_from(["PER", "类 型", "a-b_c"])) for _ in spans]
    return document(text, *((start, end, label) for (start, end), label in zip(spans, labels, strict=True)))


@given(st.lists(documents(), max_size=3))
def test_every_row_format_reads_back_what_it_wrote(given_documents: list[Document]) -> None:
    for name in ("jsonl", "doccano", "label-studio", "cluener"):
        stream = io.StringIO()
        writer = corpus.FORMATS[name].write
        assert writer is not None
        writer(given_documents, stream)
        again = corpus.FORMATS[name].read(stream.getvalue().split("\n"))
        assert [(d.text, sorted(d.spans)) for d in again] == [(d.text, sorted(d.spans)) for d in given_documents]


@given(st.lists(documents(flat=True), max_size=3))
def test_spacy_reads_back_what_it_wrote(given_documents: list[Document]) -> None:
    stream = io.StringIO()
    spacy.write(given_documents, stream)
    json.loads(stream.getvalue())
    assert [plain(document) for document in spacy.read(stream.getvalue().split("\n"))] == given_documents


def test_jsonl_carries_all_that_a_document_has() -> None:
    whole = Document(
        "我 和你",
        (Entity("我 和你", "A", 0, 4, 0.25, ((0, 1), (3, 4))), Entity("和", "B", 2, 3)),
        id="x",
        tokens=((0, 1), (2, 4)),
        meta={"source": {"page": 3}},
    )
    stream = io.StringIO()
    jsonl.write([whole], stream)
    assert [plain(document) for document in jsonl.read(stream.getvalue().split("\n"))] == [whole]


def test_json_arrays_may_be_laid_out_in_any_way_and_must_be_whole() -> None:
    tasks = [["我[{", {"entities": [[0, 1, "A"]]}], ["你", {"entities": []}]]
    for text in (json.dumps(tasks), json.dumps(tasks, indent=2), json.dumps(tasks, indent=0, ensure_ascii=False)):
        assert [document.text for document in spacy.read(text.split("\n"))] == ["我[{", "你"]
    assert list(spacy.read(["[", "]"])) == []
    for broken in (json.dumps(tasks)[:-1], json.dumps(tasks)[:-9], "{}", ""):
        with pytest.raises(DataError, match="not a JSON array"):
            list(spacy.read(broken.split("\n"), "f"))


def test_label_studio_reads_its_exports() -> None:
    value = {"start": 3, "end": 5, "text": "渝中", "labels": ["LOC"]}
    result = [{"type": "labels", "value": value}, {"type": "relation", "from_id": "a", "to_id": "b"}]
    tasks = [
        {"id": 1, "data": {"text": "😀在渝中", "source": "a"}, "annotations": [{"result": result}]},
        {"id": 2, "data": {"text": "😀在渝中"}, "completions": [{"result": result}]},
        {"id": 3, "data": {"text": "😀在渝中"}, "annotations": [], "predictions": [{"result": result}]},
        {"id": 4, "text": "😀在渝中", "label": [value]},
        {"id": 5, "data": {"text": "无"}, "annotations": [{"was_cancelled": True, "result": result}]},
    ]
    read = list(label_studio.read(json.dumps(tasks, indent=1).split("\n")))
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 4 + [[]]
    assert [document.id for document in read] == ["1", "2", "3", "4", "5"]
    assert read[0].meta["source"] == "a"
    two = [{"data": {"text": "😀在渝中"}, "annotations": [{"result": result}, {"result": []}]}]
    with pytest.raises(DataError, match="2 annotations"):
        list(label_studio.read([json.dumps(two)], "f"))


# The corpora's own formats


def test_cluener_ends_are_inclusive_unless_the_surface_says_otherwise() -> None:
    rows = [
        {"text": "渝中区在重庆", "label": {"address": {"渝中区": [[0, 2]], "重庆": [[4, 5]]}}},
        {"text": "渝中区在重庆", "label": {"address": {"渝中区": [[0, 3]], "重庆": [[4, 6]]}}},
        {"text": "渝中区在重庆", "label": {"address": [[0, 3], [4, 6]]}},
    ]
    read = list(cluener.read([json.dumps(row) for row in rows]))
    assert [found(document) for document in read] == [[("渝中区", "address"), ("重庆", "address")]] * 3
    wrong = {"text": "渝中区在重庆", "label": {"address": {"渝中": [[1, 2]]}}}
    with pytest.raises(DataError, match=r"^f:1: address \[1, 3\) is '中区' in the text but '渝中'"):
        list(cluener.read([json.dumps(wrong)], "f"))


def test_cmeee_nested_and_bad_lines() -> None:
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


def test_people_daily_joins_names_and_keeps_nested() -> None:
    line = (
        "19980101-01-001-002/m  [中共中央/nt  办公厅/n]nt  主任/n  江/nr  泽民/nr  、/w  王/nr  芳/nr  李/nr  明/nr"
        "  在/p  [[北京/ns  大学/n]nt  东门/s]ns  克林顿/nr  小平/nr  [/w"
    )
    [read] = people_daily.read(["", line])
    assert read.id == "19980101-01-001-002"
    assert read.text == "中共中央办公厅主任江泽民、王芳李明在北京大学东门克林顿小平["
    assert found(read) == [
        ("中共中央办公厅", "ORG"), ("中共中央", "ORG"), ("江泽民", "PER"), ("王芳", "PER"), ("李明", "PER"),
        ("北京大学东门", "LOC"), ("北京大学", "ORG"), ("北京", "LOC"), ("克林顿", "PER"), ("小平", "PER"),
    ]  # fmt: skip
    assert [read.text[start:end] for start, end in read.tokens or ()][:3] == ["中共中央", "办公厅", "主任"]
    assert read.meta["pos"][:3] == ["nt", "n", "n"]


def test_people_daily_in_gb18030(tmp_path: Path) -> None:
    path = tmp_path / "199801.txt"
    path.write_bytes("19980101-01-001-001/m  江/nr  泽民/nr  镕/Ng\r\r\n\r\n".encode("gb18030") * 2)
    assert corpus.detect(path) == "people-daily"
    assert [found(document) for document in corpus.read(path)] == [[("江泽民", "PER")]] * 2


@pytest.mark.parametrize("line", ["我 在/p", "[北京/ns 在/p", "北京/ns 大学/n]nt"])
def test_people_daily_defects(line: str) -> None:
    with pytest.raises(DataError, match=r"^f:1: .*; "):
        list(people_daily.read([line], "f"))


def test_brat_pairs_with_everything_in_them(tmp_path: Path) -> None:
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


def test_brat_wrong_offsets_are_reported_and_line_breaks_in_annotations_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("我们\n在重庆", encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tX 0 4\t我们\n在\nT2\tLOC 3 5\t重庆\nT3 LOC 4 6\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.ann:4: cannot read"):
        list(brat.read(tmp_path))
    defects: list[Defect] = []
    [read] = brat.read(tmp_path, on_defect=defects.append)
    assert found(read) == [("我们\n在", "X")]
    assert [(defect.line, defect.kind) for defect in defects] == [(4, "not an entity"), (3, "misaligned span")]
    assert "'重庆' is at [4, 6)" in defects[1].fix


@pytest.mark.parametrize("name", ["../x", "", "a"])
def test_brat_ids_must_be_file_names_of_their_own(tmp_path: Path, name: str) -> None:
    with pytest.raises(HanlatticeError, match="brat names its files by ids"):
        brat.write([document("我", id="a"), document("我", id=name)], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# Detection, reading and writing by path


EXAMPLES = {
    "conll": "\ufeff[ O\r\n我 B-PER\r\n",
    "jsonl": '{"text": "我", "entities": []}\n',
    "cluener": '{"text": "我"}\n{"text": "我", "label": {"name": {"我": [[0, 0]]}}}\n',
    "cmeee": "肺炎\n肺炎|||0    1    dis|||\n",
    "people-daily": "19980101-01-001-001/m  [/w  我/r  ]/w\n",
    "spacy": '[\n ["我",\n {"entities": []}]\n]\n',
    "label-studio": '[\n {"data": {"text": "我"}}]\n',
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_detection(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_text(EXAMPLES[name], encoding="utf-8", newline="")
    assert corpus.detect(path) == name
    assert "我" in "".join(document.text for document in corpus.read(path)) or name == "cmeee"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"file: is empty"),
        (b"\n \n", r"file: is empty"),
        ("只有一行".encode(), r"file: no known format begins with '只有一行'; name one of conll"),
        ("我\tO\n渝\tO\n".encode("gb18030"), r"file:1: byte 0xce at position 1 is not UTF-8"),
    ],
)
def test_what_is_no_corpus_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(corpus.read(path))


def test_missing_files_folders_and_formats(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        list(corpus.read(tmp_path / "none"))
    with pytest.raises(DataError, match="folder without"):
        list(corpus.read(tmp_path))
    with pytest.raises(HanlatticeError, match="unknown format 'x'; known are conll"):
        corpus.write([], tmp_path / "none", "x")
    with pytest.raises(HanlatticeError, match="people-daily can be read but not written"):
        corpus.write([], tmp_path / "none", "people-daily")
    with pytest.raises(HanlatticeError, match="overlap"):
        corpus.write([document("我们", (0, 2, "A"), (0, 1, "B"))], tmp_path / "none", "bmes")
    assert list(tmp_path.iterdir()) == []


def test_a_text_may_begin_with_what_looks_like_a_byte_order_mark(tmp_path: Path) -> None:
    for name in ("bmes", "cmeee", "jsonl"):
        corpus.write([document("\ufeff我", (1, 2, "X"))], tmp_path / name, name)
        assert [(read.text, found(read)) for read in corpus.read(tmp_path / name)] == [("\ufeff我", [("我", "X")])]


def test_stdin_is_read_and_torch_is_not_needed() -> None:
    program = (
        "import sys; from hanlattice import corpus; from hanlattice.corpus import checking;"
        "print([d.text for d in corpus.read('-')], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], input="我 O\n们 B-X\n", capture_output=True, text=True)
    assert done.stdout == "['我们'] False\n", done.stderr


def test_readers_stream() -> None:
    def endless():  # type: ignore[no-untyped-def]
        while True:
            yield from ["我 B-X", "们 I-X", ""]

    reader = conll.read(endless())
    assert found(next(reader)) == [("我们", "X")]


# What a format cannot carry


@given(documents(), st.sampled_from([*corpus.FORMATS, *corpus.PATHS]))
def test_what_is_left_after_losses_can_be_written_and_read_back(given_document: Document, name: str) -> None:
    labels = (Entity(e.text, re.sub(r"\s", "", e.label), e.start, e.end) for e in given_document.entities)
    kept, lost = losses.carried(Document(given_document.text, tuple(labels), id="1"), corpus.carries(name))
    writer = corpus.FORMATS[name].write if name in corpus.FORMATS else None
    if kept is None or writer is None:
        return
    stream = io.StringIO()
    writer([kept], stream)
    [again] = corpus.FORMATS[name].read(stream.getvalue().split("\n"))
    assert again.text == kept.text
    assert sorted(again.spans) == sorted(kept.spans)
    assert bool(lost) == (
        (kept.text, kept.entities, kept.id) != (given_document.text, tuple(kept.entities), "1")
        or len(kept.entities) != len(given_document.entities)
    )


def test_losses_are_counted_by_name() -> None:
    whole = Document(
        "我\n和你",
        (
            Entity("我\n和你", "A", 0, 4, 0.5),
            Entity("和", "B", 2, 3),
            Entity("和你", "C", 2, 4, None, ((2, 3), (3, 4))),
        ),
        id="x",
        tokens=((0, 1), (2, 4)),
        meta={"source": 1, "@line": 3},
    )
    kept, lost = losses.carried(whole, corpus.carries("bmes"))
    assert kept is not None
    assert kept.text == "我 和你"
    assert found(kept) == [("我 和你", "A")]
    assert dict(lost) == {
        "discontinuous entities": 1, "overlapping entities": 1, "scores": 1, "ids": 1, "column 'source'": 1,
        "token boundaries that leave gaps or cut entities": 1, "line breaks in texts": 1,
    }  # fmt: skip
    assert losses.carried(whole, corpus.carries("jsonl")) == (whole, {})
    assert losses.carried(document(""), corpus.carries("bmes")) == (None, {"empty texts": 1})


@pytest.mark.parametrize("text", ["[" * 100_000, '{"text": "一", "entities": ' + "[" * 100_000, '[{"a":' * 50_000])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt"])
@pytest.mark.parametrize("format", [None, "jsonl", "doccano", "cluener", "label-studio", "spacy"])
def test_many_brackets_are_one_line(tmp_path: Path, text: str, name: str, format: str | None):  # noqa: A002
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(HanlatticeError) as error:
        list(corpus.read(tmp_path / name, format))
    assert "\n" not in str(error.value)


def test_words_of_the_peoples_daily_in_brackets(tmp_path: Path):
    """As before, brackets and slashes that are words included; and a row of brackets is read at once."""
    before = re.compile(r"(\[*)(.+?)/([A-Za-z]+)((?:\][A-Za-z]*)*)")
    for size in range(1, 7):
        for characters in itertools.product("[/]a1", repeat=size):
            word = "".join(characters)
            old, new = (one.fullmatch(word) for one in (before, people_daily._WORD))
            assert (old and old.groups()) == (new and new.groups()), word
    begin = time.perf_counter()
    for word in ("[" * 100_000, "[" * 100_000 + "/1", "a" + "/a" * 50_000 + "1", "[a/n" + "]a" * 50_000 + "1"):
        assert people_daily._WORD.fullmatch(word) is None
    assert time.perf_counter() - begin < 5
