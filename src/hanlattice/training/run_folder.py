"""The folder of a training run: one process at a time uses it, and no file of anything else is replaced."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hanlattice.atomic import locked, refuse_file
from hanlattice.errors import ConfigError

LOCK = ".lock"  # of a run, while it is trained


@contextmanager
def alone_in(output: Path) -> Iterator[None]:
    """Hold the lock of the folder of a run. The folder is removed again if it stays empty.

    Raises:
        ConfigError: another process trains in this folder.
    """
    output.mkdir(parents=True, exist_ok=True)
    lock = output / LOCK
    with locked(lock, output):
        try:
            yield
        finally:
            with suppress(OSError):  # an open file, on some systems, or a folder with files
                lock.unlink()
                output.rmdir()


def refuse_other_files(output: Path, names: Iterable[str]) -> None:
    """Check that a new run replaces no file.

    Args:
        output: the folder of the run; it need not exist.
        names: the files and folders that the run writes into it.

    Raises:
        ConfigError: the folder is a file or in one, or has something with one of the names.
    """
    refuse_file(output, "the run")
    if found := [name for name in names if (output / name).exists()]:
        raise ConfigError(f"{output} has {', '.join(found)}, which a run would replace; name an empty folder")
