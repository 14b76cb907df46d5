"""Where a document is read from and how: every reader passes a `Source` to the code that can find a defect."""

from dataclasses import dataclass, replace
from typing import TypedDict

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.errors import HanlatticeError

ENDS = ("exclusive", "inclusive")
UNITS = ("characters", "utf16", "bytes")
PLACE = frozenset({"@file", "@line"})
"""The keys of ``meta`` under which readers record where a document was read."""


class Options(TypedDict, total=False):
    """The options of a reader; see `Source`."""

    on_defect: OnDefect | None
    ends: str | None
    units: str | None
    scheme: str | None
    strict: bool


class NotReadable(ValueError):
    """A row that does not follow its format. Readers catch it and report a defect with the file and line."""

    def __init__(self, message: str, fix: str, kind: str = "not a document"):
        super().__init__(message)
        self.message, self.fix, self.kind = message, fix, kind


@dataclass(frozen=True, slots=True)
class Source:
    """The place that is being read, the receiver of its defects, and the options of the user.

    Args:
        file: path of the file, ``-`` for standard input.
        line: the current line, from 1.
        on_defect: receives the defects; without it a lossy defect is an error.
        ends: how the ends of entities are given, one of `ENDS`; ``None`` for the convention of the format.
        units: what offsets count, one of `UNITS`; ``None`` for the convention of the format.
        scheme: tag scheme; ``None`` to guess it.
        strict: leave out entities with ill-formed tags.

    Raises:
        HanlatticeError: ``ends`` or ``units`` is not one of the allowed values.
    """

    file: str = "-"
    line: int | None = None
    on_defect: OnDefect | None = None
    ends: str | None = None
    units: str | None = None
    scheme: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.ends is not None and self.ends not in ENDS:
            raise HanlatticeError(f"unknown ends {self.ends!r}; allowed are {', '.join(ENDS)}")
        if self.units is not None and self.units not in UNITS:
            raise HanlatticeError(f"unknown units {self.units!r}; allowed are {', '.join(UNITS)}")

    def at(self, line: int | None) -> "Source":
        """The same source at another line."""
        return replace(self, line=line)

    def defect(self, kind: str, message: str, fix: str, *, line: int | None = None, lossy: bool = True) -> None:
        """Report a defect at ``line``, by default at the current line.

        Raises:
            DataError: the defect is lossy and there is no ``on_defect``.
        """
        report(Defect(self.file, line or self.line, kind, message, fix, lossy), self.on_defect)

    def refuse(self, error: NotReadable) -> None:
        """Report a row that cannot be read.

        Raises:
            DataError: there is no ``on_defect``.
        """
        self.defect(error.kind, error.message, error.fix)
