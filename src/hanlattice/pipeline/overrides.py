"""Options of a ``with`` block, which change what a model reads and which entities it returns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon
from hanlattice.postprocessing import Block

if TYPE_CHECKING:
    from hanlattice.patterns import Patterns


@dataclass(frozen=True)
class Overrides:
    """Options that apply only within a ``with`` block; see :meth:`hanlattice.NER.using`."""

    lexicon: Lexicon | None = None
    force: Lexicon | None = None
    block: Block | None = None
    threshold: float = 0.0
    convention: str = ""
    patterns: "Patterns | Literal[False] | None" = None

    @property
    def has_rules(self) -> bool:
        """Whether they change which of the spans that an engine finds become entities."""
        return self.force is not None or self.block is not None or self.threshold != 0.0


def patterns_or_none(wanted: "Patterns | bool | str | Path | Iterable[str] | None") -> "Patterns | None":
    """The patterns of a setting; see :func:`hanlattice.patterns.patterns_of`, which is imported only if needed.

    Raises:
        ConfigError: there is no such kind of pattern.
        DataError: the file of patterns cannot be read.
    """
    if wanted is None or wanted is False:
        return None
    from hanlattice.patterns import patterns_of

    return patterns_of(wanted)


def refuse_unknown_labels(force: Mapping[str, str], labels: Sequence[str], convention: str) -> None:
    """Check the labels of forced texts.

    Raises:
        HanlatticeError: the convention does not have a label.
    """
    for text, label in force.items():
        if label not in labels:
            raise HanlatticeError(
                f"force: {text!r} has the label {label!r}, which convention {convention!r} lacks; it has"
                f" {', '.join(labels)}"
            )
