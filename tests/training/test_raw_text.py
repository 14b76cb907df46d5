"""Lines of raw text are the same from plain and from compressed files."""

import lzma
from pathlib import Path

import pytest

from hanlattice.errors import DataError
from hanlattice.training.raw_text import raw_lines


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", "甲\n乙".encode(), "\ufeff甲\r\n乙\n".encode(), "甲\r乙\n\n丙\u2028丁".encode()],
)
def test_plain_and_compressed_files_have_the_same_lines(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.xz").write_bytes(lzma.compress(content))
    plain = list(raw_lines(tmp_path / "a.txt"))
    assert list(raw_lines(tmp_path / "a.xz")) in (plain, plain[:-1])  # without an empty line after the last end
    assert "\ufeff" not in "".join(plain)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xz", lzma.compress("甲\n乙\n".encode())[:-9], r"a\.xz: cannot be decompressed after line 2"),
        (
            "a.xz",
            lzma.compress("甲\n".encode() + b"\xff\n"),
            r"a\.xz:2: byte 0xff at position 1 is not UTF-8; convert",
        ),
        ("a.xz", lzma.compress(b"\0"), "a\\.xz: is binary"),
        ("a.txt", "甲\n".encode() + b"\xff\n", r"a\.txt:2: byte 0xff"),
        ("a.txt", None, r"a\.txt: cannot be read: No such file"),
        ("a.xz", None, r"a\.xz: cannot be read: No such file"),
    ],
)
def test_errors_name_the_file_and_the_line(name: str, content: bytes | None, reason: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=reason) as error:
        list(raw_lines(tmp_path / name))
    assert "\n" not in str(error.value)
