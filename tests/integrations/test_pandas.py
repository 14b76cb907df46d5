"""Data frames of pandas, with pandas."""

import numpy as np
import pytest

import hanlattice
from hanlattice.errors import DataError

pd = pytest.importorskip("pandas", reason="pandas is not installed (scripts/integrations)")
from hanlattice.integrations import pandas as hl  # noqa: E402


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_cells_have_no_entities(ner: hanlattice.NER, missing: object) -> None:
    frame = pd.DataFrame({"text": ["雷军在北京", missing, "央视直播"]}, index=[7, 3, 9], dtype=object)
    out = hl.annotate(frame, ner)
    assert out.index.tolist() == [7, 3, 9]
    assert [[e["text"] for e in row] for row in out["entities"]] == [["雷军", "北京"], [], ["央视"]]
    assert "entities" not in frame
    documents = hl.documents(frame["text"], ner)
    assert [(d.text, len(d.entities)) for d in documents] == [("雷军在北京", 2), ("", 0), ("央视直播", 1)]


def test_rows_of_entities(ner: hanlattice.NER) -> None:
    frame = pd.DataFrame({"id": [1, 2], "title": pd.array(["雷军在北京", "央视直播"], dtype="string")})
    out = hl.annotate(frame, ner, text="title", entities="found").explode("found")
    assert out["id"].tolist() == [1, 1, 2]
    assert out["found"].str["label"].tolist() == ["PER", "LOC", "ORG"]
    assert [*out["found"].iloc[0]] == ["start", "end", "text", "label", "score", "fragments", "value"]


def test_values_of_patterns_are_kept() -> None:
    ner = hanlattice.load(patterns=["DATE"])
    (row,) = hl.annotate(pd.DataFrame({"text": ["2024年3月5日开业"]}), ner)["entities"]
    assert [(e["text"], e["label"], e["value"]) for e in row] == [("2024年3月5日", "DATE", "2024-03-05")]


def test_wrong_columns_are_one_line(ner: hanlattice.NER) -> None:
    frame = pd.DataFrame({"text": ["雷军", 12.5]})
    with pytest.raises(DataError, match=r"row 1 of 'text' is 12\.5, not a text"):
        hl.annotate(frame, ner)
    with pytest.raises(DataError, match="there is no column 'title'; there are 'text'"):
        hl.annotate(frame, ner, text="title")
    with pytest.raises(DataError, match="there is a column 'text' already"):
        hl.annotate(frame, ner, entities="text")
    assert hl.annotate(frame.iloc[:0], ner)["entities"].tolist() == []
    twice = pd.DataFrame([["雷军", "北京"], ["央视", "直播"]], columns=["text", "text"])
    with pytest.raises(DataError, match="there are 2 columns 'text'"):
        hl.annotate(twice, ner)
    with pytest.raises(DataError, match="there is no column '0'; there are 0"):
        hl.annotate(pd.DataFrame([["雷军"]]), ner, text="0")  # a frame without a header has numbers as names
