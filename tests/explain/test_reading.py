"""Readings: what they contain, as JSON, as a picture and as a page."""

import json
from html import escape
from typing import Any

import pytest

import tiny
from hanlattice.document import Document, Lattice
from hanlattice.errors import ConfigError
from hanlattice.explain import attention, reading
from hanlattice.explain.reading import Reading

TEXT = "昨天王小红去了长江大桥局,王小红说很好"


@pytest.mark.parametrize("by", ["influence", "attention", "none"])
def test_to_dict_is_json(by: Any) -> None:
    ner = tiny.ner()
    text = "𠮷王小红👍去了北京ＡＢ"
    row = json.loads(json.dumps(reading(ner, text, by=by).to_dict()))
    assert row["by"] == by
    assert "".join(row["characters"]) == row["text"] == text
    assert len(row["characters"]) == len(text)
    assert {(w["start"], w["end"], w["text"]) for w in row["words"]} >= {(1, 4, "王小红"), (7, 9, "北京")}
    assert row["entities"] == ner(text).to_dict()["entities"]
    for word in row["words"]:
        assert ("strength" in word) == ("reason" in word) == (by != "none")
        assert 0 <= word.get("strength", 0) <= 1


def test_by_attention_the_strengths_are_the_shares_of_words() -> None:
    found = reading(tiny.ner(), TEXT, by="attention")
    assert list(found.strengths) == attention(tiny.ner(), TEXT).of_words()
    assert f"{found.strengths[0]:.1%}" in found.reasons[0]


def test_strengths_have_six_digits_in_json() -> None:
    lattice = Lattice("重庆", (0,), (2,), ("重庆",), (None,))
    (word,) = Reading(Document("重庆"), lattice, "influence", (0.12345678,), ("why",)).to_dict()["words"]
    assert word == {"start": 0, "end": 2, "text": "重庆", "label": None, "strength": 0.123457, "reason": "why"}


def test_an_unknown_measure() -> None:
    with pytest.raises(ConfigError, match="not 'magic'"):
        reading(tiny.ner(), TEXT, by="magic")  # type: ignore[arg-type]


def test_a_page_has_the_picture_and_the_words_by_strength() -> None:
    found = reading(tiny.ner(), TEXT)
    html = found.to_html()
    assert found.to_svg() in html
    order = sorted(range(len(found.reasons)), key=lambda i: -found.strengths[i])
    places = [html.index(f"<td>{found.strengths[i]:.3f}</td><td>{escape(found.reasons[i])}</td>") for i in order]
    assert places == sorted(places)
    assert "<table>" not in reading(tiny.ner(), TEXT, by="none").to_html()
