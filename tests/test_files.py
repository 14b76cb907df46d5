"""Reading lines in blocks of any size, and writing files completely or not at all."""

import errno
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.errors import ConfigError, DataError
from hanlattice.files import atomic_folder, atomic_write, locked, read_blocks, read_lines, read_text

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

    def test_a_link_stays_and_its_file_keeps_its_permissions(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        target, link = tmp_path / "real" / "a.txt", tmp_path / "b.txt"
        link.symlink_to(target)
        for content in ("one", "two"):  # the first of them creates the file
            with atomic_write(link) as stream:
                stream.write(content)
            assert (link.is_symlink(), target.read_text()) == (True, content)
            target.chmod(0o600)
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.txt", "b.txt", "real"]

    @pytest.mark.parametrize(("mode", "content"), [("w", "李\n"), ("wb", "李\n".encode())])
    def test_a_pipe_is_written(self, mode: str, content: str | bytes, tmp_path: Path) -> None:
        pipe, read = tmp_path / "pipe", list[bytes]()
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
        reader.start()
        with atomic_write(pipe, mode) as stream:
            stream.write(content)
        reader.join(10)
        assert (read, pipe.is_fifo()) == (["李\n".encode()], True)

    def test_a_device_stays_a_device(self) -> None:
        with atomic_write(os.devnull) as stream:
            stream.write("a")
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)

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


def killed_inside(what: str, path: Path, then: str) -> None:
    """Run ``with WHAT(path) as it: THEN`` in a process that is killed at the end of it."""
    program = f"""
import os, signal
from pathlib import Path
from hanlattice.files import {what}
with {what}(Path({str(path)!r})) as it:
    {then}
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ended = subprocess.run([sys.executable, "-c", program], env=environment)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(path.parent.iterdir())) == 1  # the draft


class TestDraftsOfKilledProcesses:
    """They are removed by the next process that writes the same file or folder."""

    def test_of_a_file(self, tmp_path: Path) -> None:
        killed_inside("atomic_write", tmp_path / "a", "it.write('half'); it.flush()")
        with atomic_write(tmp_path / "a") as stream:
            stream.write("whole")
            assert [path.name for path in tmp_path.iterdir()] == [
                ".a.draft"
            ]  # of the same name, which is locked again
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_text() == "whole"

    def test_of_a_file_that_is_not_written_after_all(self, tmp_path: Path) -> None:
        killed_inside("atomic_write", tmp_path / "a", "it.write('half'); it.flush()")
        with pytest.raises(KeyError), atomic_write(tmp_path / "a"):
            raise KeyError
        assert list(tmp_path.iterdir()) == []

    def test_of_a_folder(self, tmp_path: Path) -> None:
        killed_inside("atomic_folder", tmp_path / "a", "(it / 'file').write_text('half')")
        with atomic_folder(tmp_path / "a") as draft:
            (draft / "other").write_text("whole")
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["other"]


class TestWritersOfOneName:
    """A draft that is still written belongs to its writer."""

    def test_of_a_file(self, tmp_path: Path) -> None:
        with atomic_write(tmp_path / "a") as first:
            first.write("first")
            with atomic_write(tmp_path / "a") as second:
                second.write("second")
            assert (tmp_path / "a").read_text() == "second"
        assert (tmp_path / "a").read_text() == "first"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_of_a_folder(self, tmp_path: Path) -> None:
        def write_twice() -> None:
            with atomic_folder(tmp_path / "a") as first:
                (first / "first").touch()
                with atomic_folder(tmp_path / "a") as second:
                    (second / "second").touch()
                assert (first / "first").exists()

        with pytest.raises(OSError, match="not empty"):
            write_twice()
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["second"]

    @pytest.mark.parametrize("how", [("LOCKS", False), ("fcntl.flock", mock.Mock(side_effect=OSError("no locks")))])
    def test_without_locks(self, tmp_path: Path, how: tuple[str, object]) -> None:
        with mock.patch(f"hanlattice.files.{how[0]}", how[1]):
            self.test_of_a_file(tmp_path)
            (tmp_path / "a").unlink()
            self.test_of_a_folder(tmp_path)

    def test_by_many_threads(self, tmp_path: Path) -> None:
        def write(text: str) -> None:
            for _ in range(50):
                with atomic_write(tmp_path / "a") as stream:
                    stream.write(text * 1000)
                assert len(set((tmp_path / "a").read_text())) == 1

        threads = [threading.Thread(target=write, args=(text,)) for text in "123"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        assert len((tmp_path / "a").read_text()) == 1000

    @pytest.mark.parametrize(("mode", "content"), [("w", "一\n"), ("wb", b"\xff\r\n")])
    def test_the_content_is_on_the_disk_before_the_file_appears(
        self, tmp_path: Path, mode: str, content: str | bytes
    ) -> None:
        path, synced = tmp_path / ("n" * 60), []

        def fsync(handle: int) -> None:
            (draft,) = tmp_path.iterdir()
            synced.append((draft.name[:42], len(draft.name), draft.read_bytes(), os.fstat(handle).st_ino))

        with mock.patch("os.fsync", fsync), atomic_write(path, mode) as stream:
            stream.write(content)
        written = content if isinstance(content, bytes) else content.encode()
        assert synced == [(f".{'n' * 40}.", 42 + len("draft"), written, path.stat().st_ino)]
        assert path.read_bytes() == written

    def test_a_folder_that_is_missing_is_named(self, tmp_path: Path) -> None:
        with (
            pytest.raises(DataError, match="b: cannot be written: No such file"),
            atomic_write(tmp_path / "a" / "b"),
        ):
            raise AssertionError("it cannot be opened")


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / "new" / "folders" / name
        with atomic_folder(folder) as draft:
            (draft / "a").write_text("text")
            assert not folder.exists()
            assert draft.parent.name.startswith(f".{name}.")
        assert (folder / "a").read_text() == "text"
    with pytest.raises(KeyError), atomic_folder(folder.with_name("third")):
        raise KeyError
    assert sorted(path.name for path in folder.parent.iterdir()) == ["first", "second"]


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            locked(tmp_path / "lock", tmp_path),
            pytest.raises(ConfigError, match="is in use by another process"),
            locked(tmp_path / "lock", tmp_path),
        ):
            raise AssertionError("it is held twice")


def test_a_file_system_without_locks_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", flock)
    with locked(tmp_path / "lock", tmp_path):
        pass


def test_a_lock_that_was_removed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    flock = fcntl.flock
    calls: list[int] = []

    def late(handle: int, how: int) -> None:
        if not calls:
            (tmp_path / "lock").unlink()  # by the process that held it
        calls.append(handle)
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path / "lock", tmp_path):
        assert len(calls) == 2
        assert (tmp_path / "lock").exists()
