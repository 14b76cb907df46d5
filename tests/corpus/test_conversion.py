"""``hanlattice convert``: formats are converted without silent losses."""

import json
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from corpus_examples import (
    NAMES,
    ROWS,
    SPANS,
    TEXT,
    TRIPLES,
    columns,
    document,
    found,
    put,
    run,
)
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


def test_convert_between_schemes_and_back(tmp_path: Path) -> None:
    source = columns(tmp_path / "a.bmes", "我/B-X 们/E-X 在/S-Y", "他/O")
    for ending in ("bio", "bioes", "bilou", "jsonl", "cmeee", "bmes"):
        target = tmp_path / f"b.{ending}"
        result = run("convert", source, target)
        assert (result.exit_code, result.output) == (0, f"wrote {target}\n")
        source = target
    assert (tmp_path / "b.bmes").read_text() == (tmp_path / "a.bmes").read_text() + "\n"
    assert "在\tU-Y" in (tmp_path / "b.bilou").read_text()


def test_convert_refuses_losses_unless_drop_is_given(tmp_path: Path) -> None:
    source = put(tmp_path / "a.jsonl", [
        {"text": "你"},
        {"id": 1, "text": "我们", "entities": [[0, 2, "X"], [0, 1, "Y"]]},
        {"id": 2, "text": "我\n", "entities": []},
    ])  # fmt: skip
    target = tmp_path / "b.bmes"
    refused = run("convert", source, target)
    assert isinstance(refused.exception, HanlatticeError)
    assert str(refused.exception) == (
        f"bmes cannot carry 1 overlapping entities (first at {source}:2),"
        f" 1 line breaks in texts (first at {source}:3); --drop leaves them out, or choose --to jsonl"
    )
    assert not target.exists()
    dropped = run("convert", source, target, "--drop")
    assert dropped.exit_code == 0
    assert f"dropped: 1 overlapping entities, first at {source}:2" in dropped.stderr
    assert f"note: bmes holds no ids: 2 left out, first at {source}:2" in dropped.stderr
    assert target.read_text() == "你\tO\n\n我\tB-X\n们\tE-X\n\n我\tO\n \tO\n\n"


def test_convert_stops_at_defects_unless_drop_is_given(tmp_path: Path) -> None:
    source = columns(tmp_path / "a.bio", "我/O 们/I-X", "他/Q")
    refused = run("convert", source, tmp_path / "b.jsonl")
    assert isinstance(refused.exception, HanlatticeError)
    assert str(refused.exception).startswith(f"{source}:4: tag 'Q'")
    dropped = run("convert", source, "-", "--to", "jsonl", "--drop")
    assert dropped.exit_code == 0
    assert f"dropped: 1 × unknown tag, first at {source}:4" in dropped.stderr
    assert f"warning: 1 × ill-formed tags; see hanlattice check {source}" in dropped.stderr
    assert [json.loads(row)["text"] for row in dropped.stdout.splitlines()] == ["我们", "他"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bio"]


def test_convert_names_the_missing_option(tmp_path: Path) -> None:
    source = columns(tmp_path / "a", "我/O")
    assert "name one with --to" in str(run("convert", source, tmp_path / "b").exception)
    assert "brat is a folder" in str(run("convert", source, "-", "--to", "brat").exception)
    assert run("convert", source, tmp_path / "b", "--to", "brat").exit_code == 0
    assert (tmp_path / "b" / "000001.txt").read_text() == "我"


@given(
    texts=st.lists(st.text("我们在 ab\n😀", min_size=1, max_size=6), min_size=1, max_size=4),
    to=st.sampled_from([name for name in corpus.writable() if name != "brat"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_converted_files_convert_back(tmp_path: Path, texts: list[str], to: str) -> None:
    source = put(tmp_path / "a.jsonl", [{"text": text, "entities": [[0, 1, "X"]]} for text in texts])
    there, back = tmp_path / "there", tmp_path / "back.jsonl"
    result = run("convert", source, there, "--to", to)
    if result.exit_code != 0:
        assert "cannot carry" in str(result.exception)
        return
    assert run("convert", there, back, "--from", to).exit_code == 0
    assert [(d.text, d.spans) for d in corpus.read(back)] == [(d.text, d.spans) for d in corpus.read(source)]


@st.composite
def documents_with_nul(draw: st.DrawFn) -> Document:
    """A text with NUL, cut into entities."""
    text = draw(st.text("\0李1 A", min_size=1, max_size=8))
    cuts = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=3))})
    chosen = [pair for pair in pairwise(cuts) if draw(st.booleans())]
    return document(text, *((start, end, "X") for start, end in chosen))


@given(
    documents=st.lists(documents_with_nul(), min_size=1, max_size=3),
    to=st.sampled_from(["bmes", "bio", "conll", "cmeee", "jsonl", "brat"]),
)
@example(documents=[document("李11\0\0")], to="bmes")  # could be UTF-16 without a byte-order mark
@example(documents=[document("A\0 李1", (0, 2, "X"))], to="brat")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_nul_in_a_text_is_written_and_read_back_or_refused(
    tmp_path: Path, documents: list[Document], to: str
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        path = Path(folder) / "file"
        try:
            corpus.write(documents, path, to)
        except HanlatticeError:
            assert to == "cmeee"
            return
        assert [(d.text, d.spans) for d in corpus.read(path, to)] == [(d.text, d.spans) for d in documents]


def test_a_line_that_is_mostly_nul_is_refused(tmp_path: Path) -> None:
    given = Document("李\0\0\0", tokens=((0, 1), (1, 4)))
    with pytest.raises(HanlatticeError, match="cannot be read back as a line of columns; write jsonl instead"):
        corpus.write([given], tmp_path / "a.bmes", "bmes")
    with pytest.raises(HanlatticeError, match="is mostly NUL, as in binary files; write jsonl instead"):
        corpus.write([Document("\0\0\0")], tmp_path / "a.cmeee", "cmeee")
    assert list(tmp_path.iterdir()) == []


def test_convert_drops_ids_and_columns_with_a_note(tmp_path: Path) -> None:
    path = put(
        tmp_path / "doccano.jsonl", [{"id": i, "text": f"{TEXT}{i}", "label": TRIPLES, "by": "a"} for i in range(3)]
    )
    target = tmp_path / "out.bmes"
    result = run("convert", path, target)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        f"wrote {target}",
        f"note: bmes holds no ids: 3 left out, first at {path}:1",
        f"note: bmes holds no column 'by': 3 left out, first at {path}:1",
    ]
    assert [found(document) for document in corpus.read(target)] == [NAMES] * 3
    scored = put(tmp_path / "s.jsonl", [{"text": TEXT, "entities": [{**s, "score": 0.5} for s in SPANS]}])
    assert "note: bmes holds no scores: 2 left out" in run("convert", scored, target).stderr


@pytest.mark.parametrize(
    ("row", "to", "written", "lost"),
    [
        ({"label": "sports", "entities": SPANS}, "doccano", {"label": TRIPLES}, "label"),
        ({"entities": [], "label": TRIPLES}, "doccano", {"label": TRIPLES, "entities": []}, None),
        ({"label": "sports", "entities": []}, "cluener", {"label": {}}, "label"),
        ({"entities": [], "label": []}, "jsonl", {"entities": [], "label": []}, None),
        (
            {"entities": ["x"], "label": [[0, 2, "PER"]]},
            "jsonl",
            {"entities": [{**SPANS[0], "text": "李明"}]},
            "entities",
        ),
        ({"@type": "Doc", "entities": []}, "jsonl", {"@type": "Doc", "entities": []}, None),
    ],
)
def test_a_column_never_takes_the_place_of_the_entities(
    row: dict[str, Any], to: str, written: dict[str, Any], lost: str | None, tmp_path: Path
) -> None:
    source = put(tmp_path / "in.jsonl", [{"text": TEXT, **row}])
    result = run("convert", source, "-", "--to", to)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"text": TEXT, **written}
    note = f"note: {to} holds no column {lost!r}: 1 left out, first at {source}:1"
    assert result.stderr.splitlines() == ([] if lost is None else [note])


def test_convert_refuses_to_lose_entities_or_text(tmp_path: Path) -> None:
    rows = {
        "overlapping entities": {"text": TEXT, "label": [[0, 2, "A"], [1, 3, "B"]]},
        "discontinuous entities": {
            "text": TEXT, "entities": [{"start": 0, "end": 3, "label": "A", "fragments": [[0, 1], [2, 3]]}],
        },
        "line breaks in texts": {"text": "李\n明", "label": [[0, 1, "A"]]},
        "empty texts": {"text": "", "label": []},
    }  # fmt: skip
    for what, row in rows.items():
        result = run("convert", put(tmp_path / "in.jsonl", [row]), tmp_path / "out.bmes")
        assert f"bmes cannot carry 1 {what}" in str(result.exception)
        assert not (tmp_path / "out.bmes").exists()


@pytest.mark.parametrize("name", ROWS)
def test_converted_rows_read_the_same(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / "in", [ROWS[name][1]])
    for target in ("out.jsonl", "out.bmes", "out.cmeee"):
        result = run("convert", path, tmp_path / target)
        assert result.exit_code == 0, result.output
        assert [(d.text, found(d)) for d in corpus.read(tmp_path / target)] == [(TEXT, NAMES)]


@pytest.mark.parametrize("format", ["jsonl", "bmes", "brat", "doccano"])
def test_a_lone_surrogate_is_refused_in_one_line(format: str, tmp_path: Path) -> None:  # noqa: A002
    documents = [Document("好", (), id="a"), Document("好\ud83d的", (), id="b")]
    for bad, what in (
        (Document("李明", id="\ud83d"), "the id"),
        (Document("李明", (Entity("李明", "P\ud83d", 0, 2),)), "a label"),
        (Document("李明", id="b", meta={"title": ["\ud83d"]}), "a column of 'b'"),
    ):
        with pytest.raises(HanlatticeError, match=f"^{what} has a lone surrogate, which UTF-8 cannot hold"):
            corpus.write([Document("好"), bad], tmp_path / "c.jsonl", "jsonl")
        assert not (tmp_path / "c.jsonl").exists()
    message = "^the text of 'b' has a lone surrogate at position 1, which UTF-8 cannot hold; replace it"
    with pytest.raises(HanlatticeError, match=message):
        corpus.write(documents, tmp_path / "out", format)
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_in_a_row_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "好", "entities": []}\n{"text": "\\ud83d", "entities": []}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: the text has a lone surrogate, which UTF-8 cannot hold"):
        list(corpus.read(tmp_path / "a.jsonl"))
