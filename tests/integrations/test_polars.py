"""Data frames of polars, with polars."""

import pytest

import hanlattice
from hanlattice.errors import DataError

pl = pytest.importorskip("polars", reason="polars is not installed (scripts/integrations)")
from hanlattice.integrations import polars as hl  # noqa: E402


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def test_nulls_have_no_entities(ner: hanlattice.NER) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "text": ["雷军在北京", None, "央视直播"]})
    out = hl.annotate(frame, ner)
    assert out.schema["entities"] == hl.ENTITIES
    assert [[e["text"] for e in row] for row in out["entities"].to_list()] == [["雷军", "北京"], [], ["央视"]]
    rows = out.explode("entities").drop_nulls("entities")  # versions differ in what an empty list gives
    assert rows["id"].to_list() == [1, 1, 3]
    assert [d.text for d in hl.documents(frame["text"], ner)] == ["雷军在北京", "", "央视直播"]


def test_nothing_found_has_the_same_type(ner: hanlattice.NER) -> None:
    out = hl.annotate(pl.DataFrame({"text": [None, ""]}, schema={"text": pl.String}), ner)
    assert out.schema["entities"] == hl.ENTITIES
    assert out["entities"].to_list() == [[], []]


def test_wrong_columns_are_one_line(ner: hanlattice.NER) -> None:
    with pytest.raises(DataError, match="row 0 of 'text' is 3, not a text"):
        hl.annotate(pl.DataFrame({"text": [3]}), ner)
    with pytest.raises(DataError, match="there is no column 'title'"):
        hl.annotate(pl.DataFrame({"text": ["雷军"]}), ner, text="title")
    with pytest.raises(DataError, match=r"a LazyFrame has no texts yet; annotate frame\.collect\(\)"):
        hl.annotate(pl.LazyFrame({"text": ["雷军"]}), ner)  # type: ignore[arg-type, unused-ignore]
