"""Documents that share text with dev or excluded corpora are left out, wherever they share it."""

import pytest

from hanlattice.document import Document
from hanlattice.training.corpora import SHARED_LENGTH, without_shared

DEV = "重庆人和药店昨天在渝中区开业了很多人都去看了热闹非常"


@pytest.mark.parametrize("start", [0, 3, len(DEV) - SHARED_LENGTH], ids=["first", "middle", "last"])
def test_twenty_shared_characters_are_enough(start: int) -> None:
    shared = DEV[start : start + SHARED_LENGTH]
    for text in (shared, f"听说{shared}", f"{shared}吗", f"听说{shared}吗"):
        assert without_shared([Document(DEV, ())], [Document(text, ())]) == []


@pytest.mark.parametrize("start", [0, 3, len(DEV) - SHARED_LENGTH + 1], ids=["first", "middle", "last"])
def test_nineteen_are_not(start: int) -> None:
    document = Document(f"甲{DEV[start : start + SHARED_LENGTH - 1]}乙", ())
    assert without_shared([Document(DEV, ())], [document]) == [document]


def test_case_and_width_do_not_matter() -> None:
    shared = "ＡＢＣＤＥＦＧＨＩＪＫＬＭＮＯＰＱＲＳＴ"
    assert without_shared([Document(shared, ())], [Document("abcdefghijklmnopqrst", ())]) == []
