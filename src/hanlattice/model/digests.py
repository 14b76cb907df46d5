"""Digests of the files of a model folder, written when the model is saved.

``hanlattice info MODEL --verify`` compares the files with them. This detects damage and mixed-up files, but not
manipulation: whoever can change the files can change the record too. To detect manipulation, compare the record
with a copy from another source.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from hanlattice.atomic import atomic_write
from hanlattice.errors import ModelError

RECORD = "digests.json"
CHECKPOINT = "checkpoint.safetensors"  # of the training run: not part of the model, and may be deleted


def digest(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        ModelError: the file cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from None


def record(folder: Path) -> None:
    """Write the digests of all files of a folder into it; call this after the last file was written."""
    found = {name: digest(folder / name) for name in _names(folder)}
    with atomic_write(folder / RECORD) as stream:
        json.dump(found, stream, ensure_ascii=False, indent=1)
        stream.write("\n")


def forget(folder: Path) -> None:
    """Remove the record before files are changed."""
    (folder / RECORD).unlink(missing_ok=True)


def faults(folder: Path) -> Iterator[str]:
    """A message for each file that differs from the record, or one message if the record cannot be read."""
    recorded = _recorded(folder)
    if isinstance(recorded, str):
        yield recorded
        return
    there = set(_names(folder))
    for name in sorted(there | recorded.keys()):
        if name not in there:
            yield f"{name}: missing"
        elif name not in recorded:
            yield f"{name}: not there when the model was saved"
        elif digest(folder / name) != recorded[name]:
            yield f"{name}: changed since the model was saved"


def _recorded(folder: Path) -> dict[str, str] | str:
    """The digests by name, or a message if the record cannot be read."""
    path = folder / RECORD
    try:
        if path.exists() and not path.is_file():  # a device or a pipe might never end
            return f"{RECORD}: not a file"
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{RECORD}: missing, so there is nothing to compare with; models of version 0.1.0 have none"
    except (OSError, ValueError, RecursionError) as error:
        return f"{RECORD}: cannot be read ({type(error).__name__})"
    return found if isinstance(found, dict) else f"{RECORD}: not a record of digests"


def _names(folder: Path) -> Iterator[str]:
    """The names of the files of a model, including the files in subfolders, such as language models."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in (RECORD, CHECKPOINT) and not path.name.startswith("."):
            yield name
