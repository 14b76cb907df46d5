"""Reading lines in blocks of any size, and writing files completely or not at all."""

import os
import threading
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.errors import DataError
from hanlattice.files import atomic_write, read_blocks, read_lines, read_text

lines_of_text = st.lists(st.text("一A\r\t\u2028\x85😀", max_size=6), max_size=10)


@given(lines=lines_of_text, block=st.integers(1, 12), end=st.sampled_from(["", "\n"]), mark=st.booleans())
def test_lines_in_blocks_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int, end: str, mark: bool
) -> None:
    path = tmp_path_factory.mktemp("files") / "text"
    path.write_bytes(b"\xef\xbb\xbf" * mark + ("\n".join(lines) + end).encode())
    with open(path, encoding="utf-8-sig", newline="\n") as stream:
        expected = [line.removesuffix("\n").removesuffix("\r") for line in stream]
    with mock.patch("hanlattice.files.BLOCK", block):
        assert list(read_lines(path)) == expected
        assert [line for lines in read_blocks(path) for line in lines] == expected


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 18])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read_with_a_byte_order_mark(tmp_path: Path, encoding: str, block: int) -> None:
    path, text = tmp_path / "text", "\ufeff重庆\r\n😀\n\nA"
    path.write_bytes(text.encode(encoding))
    with mock.patch("hanlattice.files.BLOCK", block):
        assert list(read_lines(path)) == ["重庆", "😀", "", "A"]
    assert read_text(path) == text[1:]


def refusal(path: Path, raw: bytes) -> str:
    path.write_bytes(raw)
    with pytest.raises(DataError) as error:
        list(read_lines(path))
    return str(error.value)


def test_incomplete_utf16_and_utf32_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    assert "is not complete UTF-16" in refusal(path, "\ufeff重庆".encode("utf-16-le") + b"x")
    assert "is UTF-32" in refusal(path, "\ufeff重庆".encode("utf-32-le"))


@pytest.mark.parametrize(("encoding", "name"), [("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")])
def test_utf16_without_a_mark_is_named(tmp_path: Path, encoding: str, name: str) -> None:
    path = tmp_path / "text"
    for text in ("abc\nd", "重庆 ok\n", "abc\n重"):
        assert f"looks like {name} without a byte-order mark" in refusal(path, text.encode(encoding))
    assert "is binary" in refusal(path, "abcd".encode(encoding)), "without the end of a line it may be anything"


def test_a_few_zeros_are_text_and_many_are_not(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\0bcdefg\0\nh")
    assert list(read_lines(path)) == ["a\0bcdefg\0", "h"]
    path.write_bytes(b"abc\0")
    assert list(read_lines(path)) == ["abc\0"], "a quarter"
    assert "is binary" in refusal(path, b"ab\0"), "a third"
    assert "is binary" in refusal(path, b"abcdef\xff\0\nabc"), "and a byte that is not UTF-8"
    assert "byte 0xff" in refusal(path, b"abcde\0f\nabc\xff"), "in a later line"


@pytest.mark.parametrize("mark", [b"PK\x03\x04", b"\x1f\x8b", b"PAR1"])
def test_files_of_other_kinds_are_named(tmp_path: Path, mark: bytes) -> None:
    assert "name a text file in UTF-8" in refusal(tmp_path / "text", mark + b"\0" * 9)
    assert "is binary" not in refusal(tmp_path / "text", mark + b"\0" * 9)


@pytest.mark.parametrize("block", [4, 7, 1 << 18])
@pytest.mark.parametrize("number", [1, 2, 50])
def test_a_byte_that_is_not_utf8_is_named_with_its_line(tmp_path: Path, block: int, number: int) -> None:
    path = tmp_path / "text"
    good = "重庆\n".encode()
    path.write_bytes(good * (number - 1) + "重".encode() + b"\xff\n" + good * 3)
    read: list[str] = []
    with (
        mock.patch("hanlattice.files.BLOCK", block),
        pytest.raises(DataError, match=rf"text:{number}: byte 0xff at position 4 is not UTF-8"),
    ):
        read.extend(read_lines(path))
    assert all(line == "重庆" for line in read)


def test_lines_of_a_pipe_are_read_while_it_is_written(tmp_path: Path) -> None:
    """Each line is available before the next one is written, as interactive use needs."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answered = threading.Event()

    def write() -> None:
        with open(pipe, "wb", buffering=0) as stream:
            stream.write("一\n二".encode())
            assert answered.wait(10)
            stream.write("三\n".encode())

    writer = threading.Thread(target=write)
    writer.start()
    lines = read_lines(pipe)
    assert next(lines) == "一"
    answered.set()
    assert list(lines) == ["二三"]
    writer.join()


class TestAtomicWrite:
    """A file is complete or absent, and has the permissions of the process."""

    @pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
    def test_permissions_are_those_of_any_other_file(self, tmp_path: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            with atomic_write(tmp_path / "ours") as stream:
                stream.write("text")
            (tmp_path / "plain").touch()
        finally:
            os.umask(before)
        assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_the_umask_of_the_process_is_not_changed(self, tmp_path: Path) -> None:
        """Another thread may create a file at the same time."""
        changed = AssertionError("it was changed")
        with mock.patch("os.umask", side_effect=changed), atomic_write(tmp_path / "a") as stream:
            stream.write("text")
        assert (tmp_path / "a").read_text() == "text"

    def test_nothing_is_left_behind(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("old")
        with pytest.raises(KeyError), atomic_write(tmp_path / "a"):
            raise KeyError
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_text() == "old"

    def test_a_long_name(self, tmp_path: Path) -> None:
        with atomic_write(tmp_path / ("长" * 80)) as stream:
            stream.write("text")
        assert [path.name for path in tmp_path.iterdir()] == ["长" * 80]
