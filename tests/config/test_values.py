"""Values of settings become values of their types, or errors of one line."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from hanlattice.config.values import coerced
from hanlattice.errors import ConfigError


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3, float, 3.0),
        (3, str, "3"),
        ("none", int | None, None),
        (3, int | None, 3),
        (3, float | None, 3.0),
        ("a", int | str, "a"),
        (3, str | int, 3),
        (3, str | float, "3"),  # the first type that it fits
        (1, Literal[1, 2], 1),
        ("b", Literal["a", "b"], "b"),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        (1, tuple[float, ...], (1.0,)),
        ([1, 2], list[float], [1.0, 2.0]),
        ([1], Sequence[int], (1,)),
        ({"a": 1}, Mapping[str, float], {"a": 1.0}),
        ({"a": [1]}, dict[str, list[int]], {"a": [1]}),
    ],
)
def test_a_value_becomes_one_of_its_type(value: Any, hint: Any, expected: Any) -> None:
    found = coerced(value, hint, "decoder.k")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        ("a", int, "decoder.k must be of type int, not 'a'"),
        (True, int, "decoder.k must be of type int, not True"),
        ("a", int | float, "decoder.k must be of type int, not 'a'"),
        (3, Literal[1, 2], "decoder.k must be one of 1, 2, not 3"),
        (["a"], list[int], "decoder.k must be of type int, not 'a'"),
        ([1], Mapping[str, int], r"decoder.k must be a table of settings, not \[1\]"),
        ([1], set[int], r"decoder.k has the type set\[int\], which settings cannot have; declare bool, int"),
        (float("inf"), float, "decoder.k must be a finite number, not inf"),
    ],
)
def test_a_value_that_does_not_fit(value: Any, hint: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        coerced(value, hint, "decoder.k")
