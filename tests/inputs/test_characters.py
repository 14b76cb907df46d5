"""Rows of characters and bigrams: the kernel and numpy look up the same."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.inputs.characters import FIRST_ROW, CharacterRows
from hanlattice.inputs.vocabulary import UNKNOWN
from hanlattice.kernels.library import kernels
from hanlattice.text.code_points import BOUNDARY, concatenated

CHARS = tuple("京在工作aBé\N{GOTHIC LETTER AHSA}")
BIGRAMS = ("在京", "京" + BOUNDARY, "ab", "Bé", "AB", "工作", "京a", "\N{GOTHIC LETTER AHSA}在", BOUNDARY + "在")
ALPHABET = "京在工作aAbBéÉＡ\N{GOTHIC LETTER AHSA}\0店"


def expected(names: tuple[str, ...], name: str) -> int:
    """The row of a name as it is, or else in lower case."""
    rows = {one: row for row, one in enumerate(names, FIRST_ROW)}
    return rows.get(name, rows.get(name.lower(), UNKNOWN))


needs_kernels = pytest.mark.skipif(kernels() is None, reason="the kernels are not compiled")
engines = pytest.mark.parametrize(
    "rows",
    [
        CharacterRows(CHARS, BIGRAMS, None),
        pytest.param(CharacterRows(CHARS, BIGRAMS, kernels()), marks=needs_kernels),
    ],
    ids=["numpy", "kernel"],
)


@engines
@given(texts=st.lists(st.text(ALPHABET, max_size=150), min_size=1, max_size=4))
def test_rows_are_those_of_the_names(rows: CharacterRows, texts: list[str]) -> None:
    chars, bigrams = rows.read(*concatenated(texts))
    pairs = [pair for text in texts for pair in pairwise(text + BOUNDARY)]
    assert chars.tolist() == [expected(CHARS, first) for first, _ in pairs]
    assert bigrams.tolist() == [expected(BIGRAMS, first + second) for first, second in pairs]


@engines
def test_no_texts_and_empty_texts_have_no_rows(rows: CharacterRows) -> None:
    for texts in ([], [""], ["", ""]):
        assert [array.tolist() for array in rows.read(*concatenated(texts))] == [[], []]


@pytest.mark.parametrize("library", [None, pytest.param(kernels(), marks=needs_kernels)])
def test_without_bigrams_all_are_unknown(library: object) -> None:
    _, bigrams = CharacterRows(CHARS, (), library).read(*concatenated(["在京", "Ab"]))  # type: ignore[arg-type]
    assert bigrams.tolist() == [UNKNOWN] * 4


@needs_kernels
def test_many_bigrams_share_a_table_and_the_first_of_equal_ones_counts() -> None:
    draw = np.random.default_rng(1)
    codes = draw.integers(0x4E00, 0x4E00 + 300, (20_000, 2))  # many occur twice
    bigrams = tuple(chr(a) + chr(b) for a, b in codes.tolist())
    text = "".join(chr(code) for code in codes[:3_000].ravel().tolist())
    found, other = (
        CharacterRows((), bigrams, library).read(*concatenated([text]))[1] for library in (None, kernels())
    )
    assert np.array_equal(found, other)
    rows: dict[str, int] = {}
    for row, pair in enumerate(bigrams, FIRST_ROW):
        rows.setdefault(pair, row)
    assert found[::2].tolist() == [rows[pair] for pair in bigrams[:3_000]]
