"""Tokens and their offsets: joined into a text, found in a text, and checked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import document
from hanlattice.corpus.source import NotReadable
from hanlattice.corpus.tokens import aligned, bounds_or_none, checked, fits_tokens, joined

TOKENS = st.lists(st.text("李a1é\u024f\u0250。 ", min_size=1, max_size=3), max_size=6)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([], ""),
        (["a", "b"], "ab"),
        (["ab", "c"], "ab c"),
        (["a", "bc"], "a bc"),
        (["ab", "李", "cd"], "ab李cd"),
        (["12", "ab"], "12 ab"),
        (["ab", "。", "cd"], "ab。cd"),
        (["ab.", "cd"], "ab.cd"),
        (["a\u024f", "b"], "a\u024f b"),
        (["a\u0250", "b"], "a\u0250b"),
    ],
)
def test_a_space_stands_between_latin_words_only(tokens: list[str], text: str) -> None:
    found, bounds = joined(tokens)
    assert found == text
    assert [found[start:end] for start, end in bounds] == tokens


@given(TOKENS)
def test_joined_tokens_are_found_again(tokens: list[str]) -> None:
    text, bounds = joined(tokens)
    assert fits_tokens(document(text, tokens=bounds))
    stripped = [token.strip() for token in tokens if token.strip()]
    found = aligned(text, stripped)
    assert found is not None
    assert [text[start:end] for start, end in found] == stripped


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("", [], ()),
        (" 李 明 ", ["李", "明"], ((1, 2), (3, 4))),
        ("李在明", ["李", "明"], None),
        ("李明在", ["李", "明"], None),
        ("在李", ["李"], None),
        ("李", ["李", ""], None),
        ("李", ["明"], None),
        ("明李明", ["明", "李", "明"], ((0, 1), (1, 2), (2, 3))),
        ("  ", [], ()),
    ],
)
def test_tokens_in_a_text(text: str, tokens: list[str], expected: Any) -> None:
    assert aligned(text, tokens) == expected


@pytest.mark.parametrize(
    ("tokens", "spans", "fits"),
    [
        (None, [(0, 1)], True),
        (((0, 2), (2, 3)), [], True),
        (((0, 2), (2, 3)), [(0, 2), (0, 3), (2, 3)], True),
        (((0, 2), (2, 3)), [(0, 1)], False),
        (((0, 2), (2, 3)), [(1, 3)], False),
        (((0, 2),), [], False),
        (((0, 1), (2, 3)), [], False),
        (((0, 2), (2, 2), (2, 3)), [], False),
    ],
)
def test_whether_tokens_fit_a_document(tokens: Any, spans: list[tuple[int, int]], fits: bool) -> None:
    assert fits_tokens(document("李明在", *((*span, "A") for span in spans), tokens=tokens)) == fits


def test_offsets_are_left_out_where_every_character_is_a_token() -> None:
    characters = ((0, 1), (1, 2))
    assert bounds_or_none([], ()) is None
    assert bounds_or_none(["李", "明"], characters) is None
    assert bounds_or_none(["李", "明"], ((0, 1), (2, 3))) == ((0, 1), (2, 3)), "white space stands between them"
    assert bounds_or_none(["李明"], ((0, 2),)) == ((0, 2),)


@pytest.mark.parametrize("tokens", ["李明", None, ["李", ""], ["李", 1], [["李"]], ("李",)])
def test_what_is_no_list_of_tokens(tokens: object) -> None:
    with pytest.raises(NotReadable, match="'words' is not a list of non-empty tokens"):
        checked(tokens, "words")


def test_what_is_a_list_of_tokens() -> None:
    assert checked(["李", "在 "], "words") == ["李", "在 "]
    assert checked([], "words") == []
