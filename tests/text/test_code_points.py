"""Texts as arrays of code points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.text.code_points import BOUNDARY, code_points, concatenated, text_of

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=9)


@given(texts)
def test_code_points_are_those_of_the_characters_and_give_the_text_again(text: str) -> None:
    codes = code_points(text)
    assert codes.tolist() == [*map(ord, text)]
    assert text_of(codes) == text_of(codes.astype(np.int64)) == text


@given(st.lists(texts, max_size=4))
def test_concatenated_texts_are_each_followed_by_a_boundary(texts: list[str]) -> None:
    codes, starts = concatenated(texts)
    assert len(starts) == len(texts) + 1
    assert starts[-1] == len(codes)
    for i, text in enumerate(texts):
        part = codes[starts[i] : starts[i + 1]]
        assert text_of(part) == text + BOUNDARY


def test_a_number_beyond_unicode_has_no_text() -> None:
    with pytest.raises(UnicodeDecodeError):
        text_of(np.array([0x110000]))
