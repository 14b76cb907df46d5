"""A Python file of the user decides which texts are held out; what is wrong with it is one line that names it."""

from pathlib import Path

import pytest

from hanlattice.errors import ConfigError
from hanlattice.training.held_out import load_held_out


def test_a_file_decides(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("class HeldOut:\n    def __call__(self, text):\n        return '秘' in text\n", "utf-8")
    is_held_out = load_held_out(path)
    assert [is_held_out(text) for text in ("秘密", "公开")] == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.py", "class Other: pass\n", "AttributeError: module 'hanlattice_held_out' has no attribute 'HeldOut'"),
        ("a.py", "class HeldOut:\n    def __call__(self): pass\n", "TypeError: "),
        ("a.py", "class HeldOut: pass\n", "TypeError: 'HeldOut' object is not callable"),
        ("a.py", "1 / 0\n", "ZeroDivisionError: division by zero"),
        ("a.py", "def\n", "SyntaxError: "),
        ("a.txt", "", "ImportError: not a Python file"),
    ],
)
def test_what_is_wrong_is_one_line(name: str, content: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=rf"{name}: gives no object of a class HeldOut \({reason}") as error:
        load_held_out(tmp_path / name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("error", ["ValueError", "OSError", "DataError"])
def test_an_error_for_some_text_names_the_file_and_the_text(error: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from hanlattice.errors import DataError\n"
        "class HeldOut:\n"
        "    def __call__(self, text):\n"
        f"        if text != '中文':\n            raise {error}('wrong')\n",
        "utf-8",
    )
    is_held_out = load_held_out(path)
    with pytest.raises(ConfigError) as found:
        is_held_out("秘密")
    assert str(found.value) == f"{path}: HeldOut fails for the text '秘密' ({error}: wrong); correct it"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.py: gives no object of a class HeldOut \(FileNotFoundError: "):
        load_held_out(tmp_path / "no.py")
