"""What is wrong with a corpus, where, and how to fix it."""

from collections.abc import Callable
from dataclasses import dataclass

from hanlattice.errors import DataError


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing wrong at ``file:line``.

    ``lossy`` marks what cannot be read as it stands, so that going on loses or changes data; the others are
    warnings about a corpus that is usable.
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


def report(defect: Defect, on_defect: OnDefect | None) -> None:
    """Hands the defect over; without a taker a lossy one is an error, and a harmless one passes.

    Raises:
        DataError: the defect is lossy and ``on_defect`` is ``None``.
    """
    if on_defect is not None:
        on_defect(defect)
    elif defect.lossy:
        raise DataError(f"{defect.message}; {defect.fix}", defect.file, defect.line)
