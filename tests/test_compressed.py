"""Lines of raw text are the same from plain and from compressed files."""

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest

from hanlattice.compressed import decompressed_lines
from hanlattice.errors import ConfigError, DataError


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", "甲\n乙".encode(), "\ufeff甲\r\n乙\n".encode(), "甲\r乙\n\n丙\u2028丁".encode()],
)
def test_plain_and_compressed_files_have_the_same_lines(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.xz").write_bytes(lzma.compress(content))
    plain = list(decompressed_lines(tmp_path / "a.txt"))
    assert list(decompressed_lines(tmp_path / "a.xz")) == plain
    assert "\ufeff" not in "".join(plain)


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".XZ", lzma.compress)]
)
def test_all_kinds_and_the_position_in_the_file(suffix: str, compress: Any, tmp_path: Path) -> None:
    content = "\n".join(str(i) for i in range(100_000)).encode()
    path = tmp_path / f"a{suffix}"
    path.write_bytes(compress(content))
    positions: list[int] = []
    assert "\n".join(decompressed_lines(path, positions.append)).encode() == content
    assert positions == sorted(positions)
    assert positions[-1] == path.stat().st_size


def test_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "a.zst").write_bytes(pyarrow.compress("甲\n乙".encode(), "zstd", asbytes=True))
    assert list(decompressed_lines(tmp_path / "a.zst")) == ["甲", "乙"]
    monkeypatch.setattr("hanlattice.compressed.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"a\.zst: decompressing \.zst needs pyarrow"):
        list(decompressed_lines(tmp_path / "a.zst"))


def test_a_file_of_zstd_that_is_cut_or_broken_names_the_remedy(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    whole = pyarrow.compress("甲\n乙".encode() * 99, "zstd", asbytes=True)
    for content in (whole[:-3], whole[:8] + bytes(9) + whole[17:]):
        (tmp_path / "a.zst").write_bytes(content)
        with pytest.raises(DataError, match=r"a\.zst: cannot be decompressed: .*; download or compress it again"):
            list(decompressed_lines(tmp_path / "a.zst"))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.xz", lzma.compress("甲\n乙\n".encode())[:-9], r"a\.xz: cannot be decompressed"),
        (
            "a.xz",
            lzma.compress("甲\n".encode() + b"\xff\n"),
            r"a\.xz:2: byte 0xff at position 1 is not UTF-8; ",
        ),
        ("a.bz2", b"BZh9" + bytes(20), r"a\.bz2: cannot be decompressed: .*; download or compress it again"),
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
        list(decompressed_lines(tmp_path / name))
    assert "\n" not in str(error.value)
