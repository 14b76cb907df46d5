"""Named lexicons: one file each, replaced as a whole, and seen by every worker from its next request on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hanlattice.errors import ConfigError, DataError
from hanlattice.files import atomic_write
from hanlattice.serving.schema import ID, Edits

_SUFFIX = ".json"


class UnknownLexicon(Exception):
    """There is no lexicon of this name."""

    def __init__(self, name: str):
        super().__init__(f"there is no lexicon {name}")
        self.name = name


class TooManyLexicons(Exception):
    """There are as many as may be stored."""


@dataclass(frozen=True, slots=True)
class Version:
    """A lexicon as it is in one moment; a replaced one is another version."""

    name: str
    stamp: tuple[int, int, int]


class Lexicons:
    """A folder of at most ``most`` lexicons; any number of processes may share it.

    Raises:
        ConfigError: the folder cannot be made or written to.
    """

    def __init__(self, folder: Path, most: int):
        self._folder, self._most = folder, most
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(folder / ".writable") as stream:
                stream.write("")
            (folder / ".writable").unlink(missing_ok=True)
        except (OSError, DataError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(
                f"{folder}: named lexicons cannot be kept here ({reason}); name another folder with --lexicons"
            ) from None

    def version(self, name: str) -> Version:
        """What is there now, without reading it.

        Raises:
            UnknownLexicon: nothing is there.
        """
        try:
            found = self._path(name).stat()
        except OSError:
            raise UnknownLexicon(name) from None
        return Version(name, (found.st_ino, found.st_mtime_ns, found.st_size))

    def read(self, name: str) -> Edits:
        """
        Raises:
            UnknownLexicon: nothing is there.
            DataError: the file was not written by this service.
        """
        path = self._path(name)
        try:
            return Edits.model_validate_json(path.read_bytes())
        except OSError:
            raise UnknownLexicon(name) from None
        except ValidationError:
            raise DataError("is not a lexicon of this service; put it anew, or delete it", path) from None

    def write(self, name: str, edits: Edits) -> bool:
        """Create or replace a lexicon; was there none before?

        Raises:
            TooManyLexicons: it would be one more than there may be.
        """
        path = self._path(name)
        is_new = not path.exists()
        if is_new and sum(1 for _ in self._names()) >= self._most:
            raise TooManyLexicons(f"there are {self._most:,} lexicons already; delete one, or replace it")
        with atomic_write(path) as stream:
            stream.write(edits.model_dump_json())
        return is_new

    def remove(self, name: str) -> None:
        """
        Raises:
            UnknownLexicon: nothing is there.
        """
        try:
            self._path(name).unlink()
        except OSError:
            raise UnknownLexicon(name) from None

    def names(self) -> list[str]:
        return sorted(self._names())

    def _names(self) -> Iterator[str]:
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if re.fullmatch(ID[1:-1], path.stem):
                yield path.stem

    def _path(self, name: str) -> Path:
        if not re.fullmatch(ID[1:-1], name):  # the last line of defence; requests are checked before
            raise UnknownLexicon(name)
        return self._folder / f"{name}{_SUFFIX}"
