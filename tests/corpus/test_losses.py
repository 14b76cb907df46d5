"""What formats cannot hold of a document."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import (
    SPANS,
    TEXT,
    TRIPLES,
    document,
    documents,
    found,
    plain,
)
from hanlattice import corpus
from hanlattice.corpus import losses
from hanlattice.corpus.json_rows.jsonl import NAMES
from hanlattice.document import Document, Entity
from hanlattice.errors import HanlatticeError
from hanlattice.spans import Span


@given(documents(), st.sampled_from([*corpus.FORMATS, *corpus.PATHS]))
def test_a_reduced_document_can_be_written_and_read_back(given_document: Document, name: str) -> None:
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


@pytest.mark.parametrize("name", ["jsonl", "doccano", "cluener", "label-studio"])
@pytest.mark.parametrize("spans", [(), ((0, 2, "PER"),)])
@pytest.mark.parametrize("column", [*NAMES, "text", "@type"])
@pytest.mark.parametrize(
    "value", ["news", None, 3, [], ["x"], ["R1\tIn Arg1:T1 Arg2:T2"], SPANS, TRIPLES, {"a": 1}]
)
def test_columns_never_hide_the_text_or_the_entities(
    name: str, spans: tuple[tuple[int, int, str], ...], column: str, value: Any, tmp_path: Path
) -> None:
    given_document = document(TEXT, *spans, meta={column: value, "by": "a", "@line": 3, "@file": "b"})
    kept, lost = losses.carried(given_document, corpus.carries(name))
    assert kept is not None
    assert set(lost) <= {f"column {column!r}"}
    corpus.write([kept], tmp_path / "kept", name)
    corpus.write([given_document], tmp_path / "given", name)
    assert (tmp_path / "kept").read_text("utf-8") == (tmp_path / "given").read_text("utf-8")
    for format in (name, None):  # noqa: A001
        [again] = corpus.read(tmp_path / "kept", format, on_defect=lambda defect: None)
        assert (again.text, again.spans) == (TEXT, given_document.spans)
    assert plain(again).meta.keys() | {"@type"} == plain(kept).meta.keys() | {"@type"}
    assert '"@line"' not in (tmp_path / "kept").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "meta", "left_out"),
    [
        ("jsonl", {"label": "news", "spans": ["x"], "@type": "Doc"}, set()),
        (
            "jsonl",
            {"entities": [], "text": "x", "labels": TRIPLES, "tokens": ["x"]},
            {"entities", "text", "labels"},
        ),
        ("doccano", {"label": "news", "entities": SPANS, "labels": ["a"]}, {"label", "entities"}),
        ("cluener", {"label": "news", "entities": [], "spans": TRIPLES}, {"label", "entities"}),
        ("label-studio", {"label": "news", "entities": [], "text": "x"}, {"text"}),
        ("bmes", {"@type": "Doc", "@line": 1, "@file": "a"}, {"@type"}),
        ("bmes", {"columns": [["N"]] * 5, "positions": [0, 1, 0, 0, 1]}, set()),
        ("bmes", {"columns": [1] * 5, "positions": ["a"] * 5}, {"columns", "positions"}),
        ("bmes", {"columns": ["N"] * 5, "positions": [True] * 5}, {"columns", "positions"}),
        ("bmes", {"columns": [["N"]] * 4, "positions": "01001"}, {"columns", "positions"}),
        ("brat", {"ids": ["T7"]}, set()),
        ("brat", {"ids": "T"}, {"ids"}),
    ],
)
def test_columns_that_clash_are_counted(name: str, meta: dict[str, Any], left_out: set[str]) -> None:
    kept, lost = losses.carried(document(TEXT, (0, 2, "PER"), meta=meta), corpus.carries(name))
    assert kept is not None
    assert lost == {f"column {column!r}": 1 for column in left_out}
    assert plain(kept).meta.keys() | {"@type"} == (meta.keys() - left_out - {"@line", "@file"}) | {"@type"}


def test_a_column_clashes_with_ids_and_tokens_if_the_document_has_them() -> None:
    meta = {"id": "y", "tokens": ["x"]}
    clashing = corpus.carries("jsonl").clashing
    assert clashing(document(TEXT, meta=meta)) == set()
    assert clashing(document(TEXT, id="x", meta=meta)) == {"id"}
    assert clashing(document(TEXT, tokens=((0, 5),), meta=meta)) == {"tokens"}


@pytest.mark.parametrize(
    "format", ["doccano", "spacy", "cluener", "label-studio", "cmeee", "bmes", "jsonl", "brat"]
)
def test_what_a_format_cannot_hold_is_an_error(format: str, tmp_path: Path) -> None:  # noqa: A002
    text = "上肢和下肢疼痛"
    document = Document(text, (Entity.of(text, Span(0, 7, "SYM", ((2, 5),))),), id="7")
    if "fragments" in corpus.carries(format).features:
        corpus.write([document], tmp_path / "a", format)
        (read,) = corpus.read(tmp_path / "a", format)
        assert read.entities == document.entities
        return
    with pytest.raises(HanlatticeError, match=f"{format} cannot hold discontinuous entities, which the doc.* '7'"):
        corpus.write([document], tmp_path / "a", format)
    assert not (tmp_path / "a").exists()
