"""A defect: one thing that is wrong in a corpus file, with its place and how to fix it."""

from collections.abc import Callable
from dataclasses import dataclass

from hanlattice.errors import DataError


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that is wrong at ``file:line``.

    Args:
        file: path of the file, ``-`` for standard input.
        line: line number, from 1; ``None`` if the defect concerns the whole file.
        kind: short name of the kind of defect, such as ``"misaligned span"``.
        message: what is wrong.
        fix: what the user can do about it.
        lossy: ``True`` if reading past the defect loses or changes data, ``False`` for a warning.
    """

    file: str
    line: int | None
    kind: str
    message: str
    fix: str
    lossy: bool = True

    @property
    def where(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.fix}"


OnDefect = Callable[[Defect], None]
"""Receives every defect that a reader finds."""


def report(defect: Defect, on_defect: OnDefect | None) -> None:
    """Pass the defect to ``on_defect``. Without ``on_defect``, raise a lossy defect and ignore a warning.

    Raises:
        DataError: the defect is lossy and ``on_defect`` is ``None``.
    """
    if on_defect is not None:
        on_defect(defect)
    elif defect.lossy:
        raise DataError(f"{defect.message}; {defect.fix}", defect.file, defect.line)
