"""Write files and folders completely or not at all, and lock folders that one process works on."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hanlattice.errors import ConfigError, DataError, WriteError

try:
    import fcntl
except ImportError:  # Windows
    LOCKS = False
else:
    LOCKS = True

DRAFT_NAME_LENGTH = 40  # maximum number of characters that the temporary name takes from the final name


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]  # text or bytes, by mode
    """Open a file that appears under ``path`` only when it is complete.

    After an error, an existing file is unchanged and no temporary file is left. What a killed process has left is
    removed by the next one that writes the same file. The file takes the permissions of the one that it replaces.
    A link stays, and the file that it leads to is replaced. A device or a pipe is written directly.

    Raises:
        DataError: the path is that of a folder, its folder is missing or not writable, or the disk is full.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError("is a folder; name a file in it", path)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    try:
        if path.exists() and not path.is_file():
            with path.open(mode, encoding=encoding, newline=newline) as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        with _draft(target, _new_file) as (draft, handle):
            opened = os.dup(handle) if LOCKS else draft
            with open(opened, mode, encoding=encoding, newline=newline) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if target.is_file():
                with suppress(OSError):  # a file system without permissions
                    os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
            os.replace(draft, target)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror or error}", path) from error


def refuse_file(folder: Path, what: str) -> None:
    """Check before long work that a folder is there or can be made: nothing on its path is a file.

    Args:
        folder: the folder.
        what: what the folder is for, for the error message.

    Raises:
        ConfigError: the folder, or one above it, is a file.
    """
    first = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if first is not None and not first.is_dir():
        raise ConfigError(f"{first} is a file; name a folder for {what}")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder, renamed to ``path`` (which must not exist) at the end; on an error it is removed.

    What a killed process has left is removed by the next one that writes the same folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _draft(path, _new_folder) as (place, _):
        draft = place / path.name
        draft.mkdir()
        yield draft
        draft.rename(path)


def _new_file(path: Path) -> int:
    # Created with its final permissions: the system applies the umask, so the umask is never changed.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _new_folder(path: Path) -> int:
    path.mkdir(0o700)
    return os.open(path, os.O_RDONLY) if LOCKS else -1


@contextmanager
def _draft(path: Path, make: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """A new file or folder beside ``path``, and its handle, which is closed already where there are no locks.

    The draft is removed at the end, if it is still there. Its name follows from ``path``, so that the draft of a
    killed process is found and removed. Writers lock their drafts: one whose name is locked takes a random name
    instead.
    """
    start = path.with_name(f".{path.name[:DRAFT_NAME_LENGTH]}")
    draft = start.with_name(f"{start.name}.draft")
    handle = _locked_draft(draft, make) if LOCKS else None
    if handle is None:
        draft = start.with_name(f"{start.name}.{os.urandom(8).hex()}")
        handle = make(draft)
        if not LOCKS and handle >= 0:
            os.close(handle)  # Windows neither renames nor removes an open file
    try:
        yield draft, handle
    finally:
        # After a rename, the name may be that of another writer's draft.
        if not LOCKS or _is(handle, draft):
            _remove(draft)
        if LOCKS:
            os.close(handle)  # and with it the lock


def _locked_draft(draft: Path, make: Callable[[Path], int]) -> int | None:
    """The handle of a new, locked draft; None if another process writes it, or the file system has no locks."""
    for _ in range(2):
        try:
            handle = make(draft)
        except FileExistsError:
            if not _removed_stale(draft):
                return None
        except OSError:
            return None
        else:
            try:
                if _has_locked(handle, draft):
                    return handle
            except OSError:  # a file system without locks
                _remove(draft)
            os.close(handle)
            return None
    return None


def _removed_stale(draft: Path) -> bool:
    """Remove the draft of a process that has ended; False if one still holds its lock."""
    kind = os.O_RDONLY if draft.is_dir() else os.O_RDWR
    try:
        handle = os.open(draft, kind | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        is_stale = _has_locked(handle, draft)
        if is_stale:
            _remove(draft)
        return is_stale
    except OSError:
        return False
    finally:
        os.close(handle)


def _has_locked(handle: int, draft: Path) -> bool:
    """Lock an open draft. False if another process has locked it, or has removed or renamed it before.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is(handle, draft)


def _is(handle: int, path: Path) -> bool:
    """Whether an open file or folder is the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove(draft: Path) -> None:
    """Remove a file or folder, if it is still there."""
    if draft.is_dir() and not draft.is_symlink():
        import shutil  # takes longer to import than this module

        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that one process works on, where the system has file locks.

    The system releases it whenever this process ends.

    Args:
        path: the lock, an empty file; it stays.
        folder: the folder, for the error message.

    Raises:
        ConfigError: another process holds the lock.
    """
    stream = path.open("w")
    try:
        if LOCKS:
            while not _holds(stream.fileno(), path, folder):  # another process has removed it meanwhile
                stream.close()
                stream = path.open("w")
        yield
    finally:
        stream.close()


@contextmanager
def taking_turns(folder: Path) -> Iterator[None]:
    """Wait for the lock of a folder and hold it, where the system has file locks: threads and processes take turns.

    Raises:
        OSError: the folder cannot be opened.
    """
    if not LOCKS:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _holds(handle: int, path: Path, folder: Path) -> bool:
    """Lock an open file; whether it is still the one of this name.

    Raises:
        ConfigError: another process holds the lock.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = f"{folder} is in use by another process; wait for it, or name another output"
        raise ConfigError(message) from None
    except OSError:  # a file system without locks
        return True
    return _is(handle, path)
