"""Reading text files in blocks of any size, with errors that name the line."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.errors import DataError
from hanlattice.files import read_blocks, read_lines, read_text

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


def test_a_file_is_read_in_blocks(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a\n" * 2**18)
    assert [len(lines) for lines in read_blocks(tmp_path / "text")] == [2**17, 2**17]


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("abcdefgh\n一", True),  # nine of ten zeros are in the upper bytes
        ("abcdefg\n一", False),  # eight of nine
        ("一" * 9, False),
    ],
)
@pytest.mark.parametrize(("encoding", "name"), [("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")])
def test_nearly_all_zeros_of_utf16_are_in_upper_bytes(
    tmp_path: Path, text: str, accepted: bool, encoding: str, name: str
) -> None:
    shown = refusal(tmp_path / "text", text.encode(encoding))
    assert (name if accepted else "is binary") in shown


def test_zeros_beside_a_byte_that_is_not_utf8(tmp_path: Path) -> None:
    """Whole lines decide whether a file is text; the last line may be cut off."""
    assert "is binary" in refusal(tmp_path / "text", b"a\0bcdef\xff\nabcdef")
    assert "text:2: byte 0xff at position 1" in refusal(tmp_path / "text", b"a\0bcdef\n\xffabcdef")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("重庆\n".encode("gb18030"), "text:1: byte 0xd6 at position 1 is not UTF-8; .* iconv -f GB18030 -t UTF-8"),
        ("abc\n重庆\n".encode("gb18030"), "text:2: byte 0xd6 at position 1 is not UTF-8"),
        (b"\xa7@\xffa\n", "byte 0xa7 at position 1 is not UTF-8; the file is not GB18030 or Big5 either"),
        (b"\x1f\x8b\xff\n", "is compressed with gzip; name a text file"),
        (b"BZh91\xff\n", "is compressed with bzip2; name a text file"),
    ],
)
def test_bytes_that_are_not_utf8_are_explained(tmp_path: Path, raw: bytes, message: str) -> None:
    assert re.search(message, refusal(tmp_path / "text", raw))
    with pytest.raises(DataError, match=message):
        read_text(tmp_path / "text")


def test_a_later_block_is_not_taken_for_an_archive(tmp_path: Path) -> None:
    with mock.patch("hanlattice.files.BLOCK", 4):
        assert "text:2: byte 0xff at position 5" in refusal(tmp_path / "text", b"abc\nBZh9\xff\n")


@pytest.mark.parametrize("read", [read_lines, read_text])
def test_a_missing_file_is_named(tmp_path: Path, read: Callable[[Path], Iterable[str]]) -> None:
    with pytest.raises(DataError, match="nothing: cannot be read: No such file or directory"):
        list(read(tmp_path / "nothing"))


READ_STDIN = "import os; from hanlattice.files import *; print([*read_lines(STDIN)]); os.fstat(0)"


def test_standard_input_is_read_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"read before\na\nb\n")
    with open(tmp_path / "text", "rb", buffering=0) as stream:
        stream.read(len(b"read before\n"))
        done = subprocess.run([sys.executable, "-c", READ_STDIN], stdin=stream, capture_output=True, check=True)
    assert done.stdout == b"['a', 'b']\n"


def test_standard_input_may_be_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"a\nb")
        ours.shutdown(socket.SHUT_WR)
        command = [sys.executable, "-c", READ_STDIN]
        done = subprocess.run(command, stdin=theirs.fileno(), capture_output=True, check=True)
    assert done.stdout == b"['a', 'b']\n"


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


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("重庆".encode("utf-32"), "is UTF-32; convert it"),
        (b"PK\3\4\0\0", "is a ZIP archive"),
        (b"a\0\0\0\xff\n", "is binary, not text"),
        ("重庆\n".encode("utf-16-le"), "looks like UTF-16LE without a byte-order mark"),
    ],
)
def test_a_whole_text_is_refused_as_its_lines_are(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(raw)
    for read in (read_text, lambda path: [*read_lines(path)]):
        with pytest.raises(DataError, match=message):
            read(path)
