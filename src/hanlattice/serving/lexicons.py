"""Stored lexicons: one file each, replaced as a whole. All workers use a new version from their next request on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hanlattice.atomic import atomic_write, taking_turns
from hanlattice.errors import ConfigError, DataError
from hanlattice.serving.schema import ID, Edits

_SUFFIX = ".json"
_NAME = re.compile(ID.removeprefix("^").removesuffix("$"))


class UnknownLexicon(Exception):
    """No lexicon with this name is stored."""

    def __init__(self, name: str):
        super().__init__(f"there is no lexicon {name}")


class LexiconFault(Exception):
    """The file of a stored lexicon cannot be used. The message has no path, as clients read it.

    Attributes:
        path: the file
        reason: what the operator of the service has to know, for the log
    """

    def __init__(self, problem: str, path: Path, reason: str):
        super().__init__(problem)
        self.path, self.reason = path, reason


class TooManyLexicons(Exception):
    """The maximum number of lexicons is stored already."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a stored lexicon; replacing the lexicon makes another version.

    ``stamp`` has the inode, the modification time (ns) and the size of the file.
    """

    name: str
    stamp: tuple[int, int, int]


class Lexicons:
    """A folder of at most ``most`` lexicons, which any number of processes may share.

    Raises:
        ConfigError: the folder cannot be created or written to.
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
        """The current version of a lexicon, without reading it.

        Raises:
            UnknownLexicon: it is not stored.
        """
        try:
            found = self._path(name).stat()
        except OSError:
            raise UnknownLexicon(name) from None
        return Version(name, (found.st_ino, found.st_mtime_ns, found.st_size))

    def read(self, name: str) -> Edits:
        """Read a lexicon.

        Raises:
            UnknownLexicon: it is not stored.
            LexiconFault: the file cannot be read, or was not written by this service.
        """
        path = self._path(name)
        problem = f"the lexicon {name} is damaged; store it again, or delete it"
        try:
            return Edits.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise UnknownLexicon(name) from None
        except OSError as error:
            raise LexiconFault(problem, path, f"cannot be read: {error.strerror or error}") from None
        except ValidationError:
            raise LexiconFault(problem, path, "is not a lexicon of this service") from None

    def write(self, name: str, edits: Edits) -> bool:
        """Create or replace a lexicon, and return whether it is new.

        Raises:
            TooManyLexicons: it is new, and the maximum number is stored already.
            LexiconFault: the file cannot be written.
        """
        path = self._path(name)
        try:
            with taking_turns(self._folder):  # workers share the folder
                is_new = not path.exists()
                if is_new and sum(1 for _ in self._names()) >= self._most:
                    raise TooManyLexicons(f"there are {self._most:,} lexicons already; delete one, or replace it")
                with atomic_write(path) as stream:
                    stream.write(edits.model_dump_json())
        except (OSError, DataError) as error:
            problem = f"the lexicon {name} cannot be stored; ask the operator of this service"
            reason = error.strerror if isinstance(error, OSError) else str(error).removeprefix(f"{path}: ")
            advice = "make space, or correct the folder and its permissions"
            raise LexiconFault(problem, path, f"{reason}; {advice}") from None
        return is_new

    def remove(self, name: str) -> None:
        """Remove a lexicon.

        Raises:
            UnknownLexicon: it is not stored.
            LexiconFault: the file cannot be removed.
        """
        path = self._path(name)
        try:
            path.unlink()
        except FileNotFoundError:
            raise UnknownLexicon(name) from None
        except OSError as error:
            problem = f"the lexicon {name} cannot be deleted; ask the operator of this service"
            reason = f"cannot be removed: {error.strerror or error}; remove it by hand, or correct its permissions"
            raise LexiconFault(problem, path, reason) from None

    def names(self) -> list[str]:
        return sorted(self._names())

    def _names(self) -> Iterator[str]:
        for path in self._folder.glob(f"*{_SUFFIX}"):
            if _NAME.fullmatch(path.stem):
                yield path.stem

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name):  # checked again; requests are validated before
            raise UnknownLexicon(name)
        return self._folder / f"{name}{_SUFFIX}"
