"""Text becomes content of XML: its markup is escaped, and what XML forbids is replaced, on each side of a range."""

import pytest

from hanlattice.drawing.markup import escaped


@pytest.mark.parametrize(
    "text", ["\t", "\n", "\r", " ", "一", "\ud7ff", "\ue000", "\ufffd", "\U00010000", "\U0010fffd"]
)
def test_allowed(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "\0",
        "\x08",
        "\x0b",
        "\x0c",
        "\x0e",
        "\x1f",
        "\ud800",
        chr(0xDFFF),  # the linter takes two surrogates for the same
        "\ufffe",
        "\uffff",
        "\U0001fffe",
        "\U0010ffff",
    ],
)
def test_forbidden(text: str) -> None:
    assert escaped(f"a{text}b") == "a\ufffdb"


def test_markup() -> None:
    assert escaped("""<a href="b" title='c'>&amp;""") == "&lt;a href=&quot;b&quot; title=&#x27;c&#x27;&gt;&amp;amp;"
