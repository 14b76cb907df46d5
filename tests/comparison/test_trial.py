"""Tests of the saved result of a run."""

from pathlib import Path

import pytest

from compared import systems
from hanlattice.comparison import compare
from hanlattice.comparison.trial import RESULT
from hanlattice.errors import DataError


@pytest.mark.parametrize("text", ["", "{", "[]", '{"dev": 3}'])
def test_broken_result_file_is_an_error(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "slow" / "1"
    folder.mkdir(parents=True)
    (folder / RESULT).write_text(text)
    with pytest.raises(DataError, match=r"result\.json: is not the result of a run; remove it"):
        compare(systems(), tmp_path, seeds=(1,))
