"""Formats with tags: CoNLL columns, CoNLL-U and tagged sentences."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import (
    NAMES,
    TAGS,
    TEXT,
    document,
    found,
    kinds,
    lines,
    plain,
    put,
    refusal,
)
from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.tagged import conll
from hanlattice.corpus.tagged.conll import _columns
from hanlattice.corpus.tagged.conllu import _is_row
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


@pytest.mark.parametrize("other", ["-DOCSTART-", "-DOCSTART- -X- O", ""])
def test_lines_without_columns_do_not_change_the_separator(other: str) -> None:
    given = [other, "", "李 明\tB-PER", " \tO", "在\tO", ""]
    (read,) = conll.read(given, "f", scheme="BIO")
    assert read.tokens is not None
    assert found(read) == [("李 明", "PER")]


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


def test_conll_reads_an_empty_token_as_a_stripped_space_and_reports_it() -> None:
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


def test_conll_puts_a_space_only_between_latin_words() -> None:
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


@pytest.mark.parametrize(
    "meta", [{"columns": [1, 2]}, {"columns": ["ab", "cd"]}, {"positions": ["x", "y"]}, {"positions": 5}]
)
def test_conll_leaves_out_columns_that_are_not_its_own(meta: dict[str, object]) -> None:
    stream = io.StringIO()
    conll.write([document("李明", (0, 2, "PER"), meta=meta)], stream)
    assert stream.getvalue() == "李\tB-PER\n明\tE-PER\n\n"


def test_conll_words_with_numbers_are_not_weibo_positions() -> None:
    [read] = conll.read(["A1 O", "A2 O", "我 O"])
    assert read.text == "A1 A2我"
    [named] = conll.read(["我0 O", "们1 O"], positions=False)
    assert named.text == "我0们1"
    [zeros] = conll.read(["A0 O", "我0 O", "们0 O"])
    assert zeros.text == "A0我0们0"
    assert "positions" not in zeros.meta


def test_conll_reads_ill_formed_tags_leniently_or_strictly_and_reports_them() -> None:
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
    with pytest.raises(DataError, match=r"^f:2: tag 'X-Y' does not belong to any scheme"):
        list(conll.read(rows[:2], "f"))
    with pytest.raises(DataError, match=r"^f:1: tag 'M-X' does not belong to BIO"):
        list(conll.read(["我 M-X"], "f", scheme="BIO"))
    with pytest.raises(HanlatticeError, match=r"unknown tag scheme 'BIX'; allowed are BIO"):
        list(conll.read(["我 M-X"], "f", scheme="BIX"))
    defects: list[Defect] = []
    [read] = conll.read(rows, "f", on_defect=defects.append)
    assert found(read) == [("我", "X")]
    assert sorted((defect.line, defect.kind) for defect in defects) == [
        (2, "unknown tag"), (3, "missing tag"), (4, "unknown tag"),
    ]  # fmt: skip


def test_conll_guesses_the_scheme_again_when_a_tag_does_not_fit() -> None:
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
def test_conll_reads_back_what_it_wrote(sentences: list[list[tuple[str, str]]], scheme: str) -> None:
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
        (document("我们在", (0, 1, "A"), tokens=((0, 2), (2, 3))), "does not start and end at a token"),
        (document("我\n在"), "cannot be read back"),
        (document("我在", (0, 1, "A\tB")), "cannot be read back"),
        (document("我在", (0, 1, "A ")), "cannot be read back"),
    ],
)
def test_conll_refuses_to_write_documents_that_columns_cannot_hold(bad: Document, message: str) -> None:
    with pytest.raises(HanlatticeError, match=message):
        conll.write([bad], io.StringIO())


def test_readers_do_not_read_ahead_to_the_end() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield from ["我 B-X", "们 I-X", ""]

    reader = conll.read(endless())
    assert found(next(reader)) == [("我们", "X")]


@pytest.mark.parametrize("text", ["李 明 在 北 京", "李明在北京"])
@pytest.mark.parametrize("form", [None, "sentences"])
def test_a_line_of_tokens_and_tags_is_a_sentence(tmp_path: Path, text: str, form: str | None) -> None:
    line = f"{text}\t{' '.join(TAGS)}\n"
    path = put(tmp_path / "file", line + "\n" + line)
    assert corpus.detect(path) == "sentences"
    assert [(document.text, found(document)) for document in corpus.read(path, form)] == [(TEXT, NAMES)] * 2
    assert "2 tags on one line" in refusal(put(tmp_path / "other", "李 O\n李 明\tB-PER I-PER\n"), format="conll")
    assert "5 tokens but 4 tags" in refusal(put(tmp_path / "third", line + f"{text}\t{' '.join(TAGS[:-1])}\n"))


@pytest.mark.parametrize(
    "tags",
    [
        "PER-B PER-I O LOC-B LOC-I",
        "PER_B PER_E O LOC_B LOC_E",
        "B-PER E-PER O B-LOC E-LOC",
        "a-b-B a-b-I O LOC-B LOC-I",
    ],
)
def test_tags_with_the_letter_after_the_label(tmp_path: Path, tags: str) -> None:
    path = put(tmp_path / "file", "".join(f"{c}\t{tag}\n" for c, tag in zip(TEXT, tags.split(), strict=True)))
    assert corpus.detect(path) == "conll"
    [document] = corpus.read(path)
    assert [text for text, _ in found(document)] == ["李明", "北京"]
    assert document.entities[1].label == "LOC"
    assert document.entities[0].label in ("PER", "a-b")


def test_labels_that_end_in_a_tag_letter_are_not_cut(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "李\tB-vitamin-B\n明\tI-vitamin-B\n在\tO\n")
    assert [found(document) for document in corpus.read(path)] == [[("李明", "vitamin-B")]]


@pytest.mark.parametrize("scheme", [None, "BMEWO", "BMES"])
def test_bmewo_is_read_as_bmes(tmp_path: Path, scheme: str | None) -> None:
    path = put(tmp_path / "file", "李\tW-PER\n在\tO\n北\tB-LOC\n京\tM-LOC\n市\tE-LOC\n")
    [document] = corpus.read(path, "conll", scheme=scheme)
    assert found(document) == [("李", "PER"), ("北京市", "LOC")]
    assert not kinds(path).keys() - {"label with blanks"}


def test_conllu_and_uner(tmp_path: Path) -> None:
    uner = (
        "# sent_id = n1\n# text = 李明 在北京\n1\t李明\tB-PER\t-\tann\n2\t在\tO\t-\tann\n3\t北京\tB-LOC\t-\tann\n\n"
        "# sent_id = n2\n1\t无\tO\t-\tann\n"
    )
    path = put(tmp_path / "zh.iob2", uner)
    assert corpus.detect(path) == "conllu"
    one, two = corpus.read(path)
    assert (one.id, one.text, found(one)) == ("n1", "李明 在北京", NAMES)
    assert (two.id, two.text, found(two)) == ("n2", "无", [])
    words = [("1-2", "李明", "_"), ("1", "李", "NER=B-PER"), ("2", "明", "NER=I-PER"), ("3", "在", "SpaceAfter=No"),
             ("4", "北京", "SpaceAfter=No|NER=B-LOC")]  # fmt: skip
    rows = "".join(f"{i}\t{form}\t_\tX\t_\t_\t0\t_\t_\t{misc}\n" for i, form, misc in words)
    [document] = corpus.read(put(tmp_path / "zh.conllu", rows))
    assert (document.text, found(document)) == (TEXT, NAMES)
    unnamed = "1\t李明\t_\tX\t_\t_\t0\t_\t_\t_\n"
    assert "no token has an entity tag" in refusal(put(tmp_path / "b.conllu", unnamed))
    assert "not a line of CoNLL-U" in refusal(put(tmp_path / "c.iob2", "1\t李\tO\n明\tO\n"), format="conllu")


@pytest.mark.parametrize(
    ("line", "separator", "columns"),
    [
        ("重\tB-LOC", "\t", ("重", [], "B-LOC")),
        ("重\tNN\tB-LOC", "\t", ("重", ["NN"], "B-LOC")),
        ("重\tNN\t\tB-LOC", "\t", ("重", ["NN", ""], "B-LOC")),  # an empty column stays
        ("重 NN   B-LOC", " ", ("重", ["NN"], "B-LOC")),  # columns that are aligned by spaces
        ("重  B-LOC ", " ", ("重", [], "B-LOC")),
        ("重\tB-LOC", " ", ("重", [], "B-LOC")),
        ("重 B-LOC", "\t", ("重", [], "B-LOC")),
        ("重", "\t", ("重", [], None)),
        ("重\t", "\t", ("重", [], None)),
        ("\t\tO", "\t", ("\t", [], "O")),
        ("  O", " ", (" ", [], "O")),
        (" 重 O", " ", (" 重", [], "O")),
    ],
)
def test_columns_of_a_line(line: str, separator: str, columns: tuple[str, list[str], str | None]) -> None:
    assert _columns(line, separator) == columns


@pytest.mark.parametrize(
    ("row", "is_row"),
    [
        (["1", "李", "B-PER"], True),
        (["1", "李"], False),
        (["1", "李", "NR"], False),  # no tag
        (["1", "", "O"], False),
        (["1", "李", "O", "", "-", "-"], True),
        (["1", "李", "O", "", "-", "-", "-"], False),
        (["1-2", "李明", "O"], True),
        (["1.1", "李", "O"], True),
        (["x", "李", "O"], False),
        (["1", "李", *["_"] * 8], True),
        (["1", "", *["_"] * 8], False),
        (["1", "李", "", *["_"] * 7], True),
        (["1", "李", *["_"] * 7], False),
        (["1", "李", *["_"] * 9], False),
    ],
)
def test_rows_of_uner_and_conllu(row: list[str], is_row: bool) -> None:
    assert _is_row(row) == is_row
