"""Files and folders that appear complete or not at all, and locks of folders."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from unittest import mock

import pytest

from hanlattice.atomic import atomic_folder, atomic_write, locked
from hanlattice.errors import ConfigError, DataError


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
from hanlattice.atomic import {what}
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
        with mock.patch(f"hanlattice.atomic.{how[0]}", how[1]):
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
