"""Copy the folder of a model."""

import re
import shutil
from pathlib import Path

from hanlattice.atomic import refuse_file
from hanlattice.config.files import read_toml
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.model.folder import CARD, CASCADE, CONFIG, EDITS, ENSEMBLE, LEXICON, PACKAGED, VOCABULARY, WEIGHTS

_NAMING = (CASCADE, ENSEMBLE)  # files that name a second model
# Only these files of a second model are copied: its folder is named by the model, and could be any other.
_OF_SECOND = (CARD, CONFIG, EDITS, LEXICON, VOCABULARY, WEIGHTS)


def check_new(folder: Path, what: str) -> None:
    """Check before long work that a new folder can be made.

    Args:
        folder: the new folder.
        what: what it is for, for the error message.

    Raises:
        ConfigError: a folder above it is a file.
        ModelError: it exists.
    """
    if folder.exists() or folder.is_symlink():
        raise ModelError(f"{folder} exists already; name a new folder for {what}")
    refuse_file(folder, what)


def copy_files(folder: Path, target: Path, *without: str) -> None:
    """Copy the files of a model folder and of its subfolders, except those with the names ``without``.

    Links to files are followed. Devices, pipes and links to folders are left out, as copying them might never end.
    A second model outside of the folder, which an ensemble or a cascade names, becomes a subfolder of the
    copy, without files that are not part of a model.

    Raises:
        DataError: a file cannot be read, or the disk is full.
        ModelError: ``target`` is inside ``folder``, so that copying would never end.
    """
    if target.resolve().is_relative_to(folder.resolve()):
        raise ModelError(f"{folder} cannot be copied into itself; name a new folder outside of it")

    def left_out(place: str, names: list[str]) -> set[str]:
        paths = {name: Path(place) / name for name in names}
        kept = {name for name, path in paths.items() if path.is_file() or (path.is_dir() and not path.is_symlink())}
        return (paths.keys() - kept) | {*without}

    try:
        shutil.copytree(folder, target, dirs_exist_ok=True, ignore=left_out)
    except shutil.Error as error:  # it has a list of all files with their errors
        source, copy, reason = error.args[0][0]
        reason = reason.partition("] ")[2].partition(": ")[0] or reason  # without the error number and the paths
        raise DataError(f"cannot be copied to {Path(copy).name}: {reason}", source) from None
    for name in _NAMING:
        if (second := _second_outside(folder, name)) is not None:
            own = add_second(second, target, name)
            text = (target / name).read_text(encoding="utf-8")
            line = re.compile(r"^second\s*=.*$", re.MULTILINE)
            (target / name).write_text(line.sub(f'second = "{own}"', text), encoding="utf-8", newline="\n")


def add_second(second: Path, target: Path, name: str) -> str:
    """Copy a second model into a model folder, without files that are not part of a model.

    Args:
        second: the folder of the second model.
        target: the folder of the first one.
        name: the file that will name it, such as ``ensemble.toml``.

    Returns:
        the name of the copy in ``target``.
    """
    own = f"{Path(name).stem}-second"
    (target / own).mkdir(exist_ok=True)
    for file in _OF_SECOND:
        (target / own / file).unlink(missing_ok=True)
        if (second / file).is_file():
            shutil.copyfile(second / file, target / own / file)
    return own


def _second_outside(folder: Path, name: str) -> Path | None:
    """The folder of a second model that is not packaged, and not inside ``folder``; None if there is none."""
    try:
        second = read_toml(folder / name).get("second") if (folder / name).is_file() else None
    except ConfigError:  # the copy is as broken as the model
        return None
    if not isinstance(second, str) or second in PACKAGED:
        return None
    path = (folder / second).resolve()
    return path if (path / CONFIG).is_file() and not path.is_relative_to(folder.resolve()) else None
