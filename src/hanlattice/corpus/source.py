"""Where a document is read and how: handed down to whatever may find a defect in it."""

from dataclasses import dataclass, replace

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.errors import HanlatticeError

ENDS = ("exclusive", "inclusive")
UNITS = ("characters", "utf16", "bytes")


class NotReadable(ValueError):
    """A row that is not of its format; readers turn it into a defect with the place."""

    def __init__(self, message: str, fix: str, kind: str = "not a document"):
        super().__init__(message)
        self.message, self.fix, self.kind = message, fix, kind


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a line of it, who takes its defects, and what the user said about it.

    ``ends`` (one of `ENDS`) and ``units`` (one of `UNITS`) are how offsets are counted; ``None`` is the format's
    own way. ``scheme`` and ``strict`` are for tags.

    Raises:
        HanlatticeError: ends or units are none of those known.
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
        """Reports a defect.

        Raises:
            DataError: it is lossy, and the caller takes no defects.
        """
        report(Defect(self.file, line or self.line, kind, message, fix, lossy), self.on_defect)

    def refuse(self, error: NotReadable) -> None:
        """Reports a row that cannot be read.

        Raises:
            DataError: the caller takes no defects.
        """
        self.defect(error.kind, error.message, error.fix)
