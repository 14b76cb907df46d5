"""What is a tag, which tags have their letter last, and how the head of a file shows its format."""

from typing import Any

import pytest

from hanlattice.corpus.defects import Defect
from hanlattice.corpus.source import Source
from hanlattice.corpus.tagged import conll, conllu, decoding, sentences
from hanlattice.corpus.tagged.tags import OTHER_NAMES, canonical, have_letter_last, is_tag, is_tags, scheme_named
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.spans import SCHEMES


@pytest.mark.parametrize("tag", ["O", "B-X", "I_x", "W-a.b", "PER-B", "类_S", "L-B-I"])
def test_tags(tag: str) -> None:
    assert is_tag(tag)
    assert is_tags(["O", tag]) == (tag != "O")


@pytest.mark.parametrize("value", ["", "o", "B", "B-", "-B", "Q-X", "X-Q", "B-a b", "BX", 1, None, ["O"]])
def test_no_tags(value: Any) -> None:
    assert not is_tag(value)
    assert not is_tags(["B-X", value])


@pytest.mark.parametrize("values", ["B-X", (), ("B-X",), None, [], ["O"]])
def test_no_lists_of_tags(values: Any) -> None:
    assert not is_tags(values)


@pytest.mark.parametrize(
    ("tags", "last"),
    [
        ([], False),
        (["O"], False),
        (["PER-B", "O", "PER-I"], True),
        (["A-B"], False),  # a label B with the letter A is possible
        (["A-B", "PER-I"], True),
        (["PER-B", "B-PER"], False),
        (["B-PER"], False),
        (["PER-B", "PER"], False),
        (["B-vitamin-B", "I-vitamin-B"], False),
    ],
)
def test_where_the_letter_is(tags: list[str], last: bool) -> None:
    assert have_letter_last(tags) == last


@pytest.mark.parametrize(
    ("tag", "letter_last", "scheme", "expected"),
    [
        ("PER-B", True, None, "B-PER"),
        ("PER_W", True, None, "S-PER"),
        ("a-b-I", True, None, "I-a-b"),
        ("PER-B", False, None, "PER-B"),
        ("PER-Q", True, None, "PER-Q"),
        ("W-PER", False, None, "S-PER"),
        ("W_PER", False, "BMES", "S_PER"),
        ("W", False, None, "S"),
        ("W-PER", False, "BIOES", "S-PER"),
        ("W-PER", False, "BIO", "W-PER"),
        ("W-PER", False, "BILOU", "W-PER"),
        ("WPER", False, None, "WPER"),
        ("S-PER", False, None, "S-PER"),
        ("O", True, None, "O"),
    ],
)
def test_canonical_tags(tag: str, letter_last: bool, scheme: str | None, expected: str) -> None:
    assert canonical(tag, letter_last=letter_last, scheme=scheme) == expected


def test_names_of_schemes() -> None:
    for name in (*SCHEMES, *OTHER_NAMES):
        expected = OTHER_NAMES.get(name, name)
        assert scheme_named(name) == scheme_named(name.lower()) == expected
    with pytest.raises(HanlatticeError, match="unknown tag scheme 'x'; allowed are BIO"):
        scheme_named("x")


@pytest.mark.parametrize(
    ("head", "known"),
    [
        ([], False),
        (["", " "], False),
        (["李\tB-PER"], True),
        (["李 X"], True),
        (["李\tB-PER", "明"], True),
        (["李\tB-PER", "明", "在"], False),
        (["李\tB-PER", "", "", "明"], True),
        (["B-PER"], False),
        (["李 明"], False),
        (["李\t1 B-X"], False),
        (["李 w\tPER-B"], True),
    ],
)
def test_columns_are_known_by_half_of_their_lines(head: list[str], known: bool) -> None:
    assert (conll.sniff(head) is not None) == known


@pytest.mark.parametrize(
    ("head", "known"),
    [
        ([], False),
        (["\t"], False),
        (["李 明\tB-X I-X"], True),
        (["李明\tB-X I-X"], True),
        (["李\tB-X"], False),
        (["李 明\tB-X"], False),
        (["李 明\tB-X I-X O O"], False),
        (["李 明\tB-X Q"], False),
        (["李 明\tB-X\tI-X"], False),
        (["李 明\tB-X I-X\t"], True),
        (["李 明\tB-X I-X", "在"], True),
        (["李 明\tB-X I-X", "在", "这"], False),
    ],
)
def test_sentences_are_known_by_half_of_their_lines(head: list[str], known: bool) -> None:
    assert (sentences.sniff(head) is not None) == known


@pytest.mark.parametrize(
    ("head", "known"),
    [
        ([], False),
        (["# text = 李"], False),
        (["1\t李\tO"], True),
        (["# text = 李", "", "1\t李\tO", "2\t明\tB-X\t-\tann\tx"], True),
        (["1\t李\tO\t-\t-\t-\t-"], False),
        (["1\t李\tQ"], False),
        (["1\t李"], False),
        (["1\t\tO"], False),
        (["0\t李\tO"], False),
        (["2\t李\tO"], False),
        (["1-2\t李明\tO", "1\t李\tO", "2\t明\tO"], True),
        (["1-3\t李明\tO"], True),
        (["1\t李" + "\t_" * 8], True),
        (["1\t李" + "\t_" * 7], False),
        (["1\t李" + "\t_" * 9], False),
        (["1\t李\tO", "x\t明\tO"], False),
    ],
)
def test_numbered_tokens_are_known_by_all_their_lines(head: list[str], known: bool) -> None:
    assert (conllu.sniff(head) is not None) == known


def test_ranges_and_empty_nodes_of_conllu() -> None:
    def row(number: str, token: str, name: str = "_") -> str:
        return f"{number}\t{token}" + "\t_" * 7 + f"\t{name}"

    rows = [
        "#  sent_id=s1",
        "# text = 李明1.1在",
        row("1-2", "李明", "NER=B-Z"),
        row("1", "李", "x=1"),
        row("2", "明", "a=b|NER=B-PER"),
        row("2.1", "no"),
        row("3", "1.1", "Entity=B-NUM|x=y"),
        row("4-5", "在这", "_"),
        row("4", "在", "NE=B-A"),
        row("5", "这", "NE=B-B"),
        row("6", "里", "NER=X"),
        "",
        "",
        row("1", "好"),
    ]
    told: list[Defect] = []
    first, second = conllu.read(rows, "f", on_defect=told.append)
    assert (first.id, first.text, first.meta["@line"]) == ("s1", "李明1.1在这里", 3)
    names = [(entity.text, entity.label) for entity in first.entities]
    assert names == [("李明", "PER"), ("1.1", "NUM"), ("在这", "A")]
    assert (second.id, second.text, second.meta["@line"]) == (None, "好", 14)
    assert [(d.line, d.kind, d.message) for d in told] == [
        (11, "unknown tag", "NER=X is not a tag"),
        (3, "text unlike its tokens", "the text '李明1.1在' differs from its tokens"),
    ]


@pytest.mark.parametrize(
    ("tokens", "positioned"),
    [
        ([["科0", "技1"]], True),
        ([["科0", "技1"], ["越0"]], True),
        ([["科0", "技0"]], False),
        ([["科1", "技2"]], False),
        ([["科0", "技"]], False),
        ([["科0", "技1"]] * 49 + [["科0", "技2"]], True),
        ([["科0", "技1"]] * 48 + [["科0", "技2"]], False),
        ([["科0", "技1"] * 3 + ["科1"]], False),
        ([], False),
    ],
)
def test_when_tokens_end_in_positions(tokens: list[list[str]], positioned: bool) -> None:
    given = (decoding.Sentence(1, list(row), ["O"] * len(row)) for row in tokens)
    read = list(decoding.documents(given, Source(), positions=None))
    assert all(("positions" in document.meta) == positioned for document in read)
    assert [document.text for document in read if positioned] == [
        "".join(token[0] for token in row) for row in tokens if positioned
    ]


def test_a_position_that_is_missing() -> None:
    told: list[Defect] = []
    given = [decoding.Sentence(7, ["科0", "技"], ["O", "O"])]
    [read] = decoding.documents(given, Source("f", on_defect=told.append), positions=True)
    assert (read.text, read.meta["positions"]) == ("科技", [0, 0])
    assert [(d.line, d.kind) for d in told] == [(8, "missing position")]


def test_lines_of_tags_that_share_a_line() -> None:
    """Each token of columns has its own line, those of a tagged sentence have one."""
    for in_columns, expected in ((True, [8, 9]), (False, [7, 7])):
        told: list[Defect] = []
        given = [decoding.Sentence(7, list("一二三"), ["O", "I-X", "Q"], in_columns=in_columns)]
        list(decoding.documents(given, Source("f", on_defect=told.append)))
        assert sorted(d.line or 0 for d in told) == expected
    in_order: list[Defect] = []
    list(sentences.read(["", "一 二\tO I-X"], "f", on_defect=in_order.append))
    assert [(d.line, d.kind) for d in in_order] == [(2, "ill-formed tags")]


def test_how_ill_formed_tags_are_told() -> None:
    told: list[Defect] = []
    rows = ["一 M-X", "二 O", "三 E-X", "", "四 B-X"]
    list(conll.read(rows, "f", scheme="BMES", on_defect=told.append))
    assert [(d.line, d.message) for d in told] == [
        (1, "the sentence starts with M-X (BMES)"),
        (2, "O after M-X (BMES)"),
        (3, "E-X after O (BMES)"),
        (5, "the sentence ends after B-X, which leaves the entity open (BMES)"),
    ]


def test_unknown_tags_leave_the_known_ones() -> None:
    told: list[Defect] = []
    rows = ["一 B-X", "二 Q", "三 I-X", "四 Q", "五 B-Y", "六 Z-Z"]
    [read] = conll.read(rows, "f", on_defect=told.append)
    assert [(e.text, e.label) for e in read.entities] == [("一", "X"), ("三", "X"), ("五", "Y")]
    assert [d.line for d in told if d.kind == "unknown tag"] == [2, 4, 6]
    with pytest.raises(DataError, match=r"^f:2: tag 'Q'"):
        list(conll.read(rows, "f"))


def test_strict_reading_needs_a_scheme_that_stays() -> None:
    later = ["一 B-X", ""] * 2000 + ["二 B-X", "三 I-X", "四 E-X"]
    with pytest.raises(DataError, match="tags before this line are BIO, but the tags here are BIOES"):
        list(conll.read(later, strict=True))
    assert len(list(conll.read(later, strict=True, scheme="BIOES"))) == 2001
    again = ["一 B-X", ""] * 2001 + ["二 B-Y", "三 I-Y"]
    *_, last = conll.read(again, strict=True)
    assert [e.label for e in last.entities] == ["Y"]
    early = ["一 B-X", ""] * 1999 + ["二 B-X", "三 I-X", "四 E-X"]
    *_, last = conll.read(early, strict=True)
    assert [e.text for e in last.entities] == ["二三四"], "all tags of the head decide before any is read"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("李\tB-X", ("李", [], "B-X")),
        ("李\tn\t\tB-X", ("李", ["n", ""], "B-X")),
        ("李  n   B-X ", ("李", ["n"], "B-X")),
        ("李\t B-X", ("李", [], "B-X")),
        ("\t\tB-X", ("\t", [], "B-X")),
        ("\tB-X", (" ", [], "B-X")),
        ("  B-X", (" ", [], "B-X")),
        (" the B-X", (" the", [], "B-X")),
    ],
)
def test_the_columns_of_a_line(row: str, expected: Any) -> None:
    [read] = conll.read([row], on_defect=lambda defect: None)
    token, between, tag = expected
    assert read.text == token
    assert read.meta.get("columns", [[]]) == [between]
    assert [e.label for e in read.entities] == [tag.removeprefix("B-")]


def test_a_line_of_another_separator_than_its_file() -> None:
    told: list[Defect] = []
    [read] = conll.read(["李\tB-X", "明 I-X", "在 O"], "f", on_defect=told.append)
    assert (read.text, [(e.text, e.label) for e in read.entities]) == ("李明在", [("李明", "X")])
    assert not told


def test_columns_and_positions_are_written_only_if_there_is_one_for_each_token() -> None:
    assert conll._line(["李", "n", "O"]) == "李\tn\tO\n"
    assert conll._line(["\t", "O"]) == "\t\tO\n"
    for row in (["", "O"], ["a\tb", "O"], ["\t", "a\tb"], ["李\n", "O"], ["-DOCSTART-", "O"]):
        with pytest.raises(HanlatticeError, match="cannot be read back"):
            conll._line(row)


@pytest.mark.parametrize("n", [999, 1000])
def test_the_first_thousand_lines_show_the_separator(n: int) -> None:
    told: list[Defect] = []
    [read] = conll.read([*["一 二\tO"] * n, "三 O"], "f", on_defect=told.append)
    assert (" " in read.text) == (n == 1000)
    assert read.text.endswith("三")
