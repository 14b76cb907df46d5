"""Options of a ``with`` block, which change what a model reads and which entities it returns."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon
from hanlattice.rules import Blocked, Forced

if TYPE_CHECKING:
    from hanlattice.patterns import Patterns


@dataclass(frozen=True)
class Overrides:
    """Options that apply only within a ``with`` block; see :meth:`hanlattice.NER.using`."""

    lexicon: Lexicon | None = None
    force: Forced | None = None
    block: Blocked | None = None
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


def refuse_wrong_types(lexicon: object, force: object, block: object, threshold: object) -> None:
    """Check the types of options, and the range of the threshold.

    Raises:
        HanlatticeError: one is wrong.
    """
    if not (lexicon is None or isinstance(lexicon, Lexicon)):
        raise HanlatticeError(f"lexicon must be a hanlattice.Lexicon, not a {type(lexicon).__name__}")
    if not (force is None or (isinstance(force, Mapping) and _are_texts([*force, *force.values()]))):
        raise HanlatticeError("force must map texts to labels, such as {'鹅厂': 'ORG'}")
    if not (block is None or (isinstance(block, Mapping) and _are_texts(block) and _are_blocked(block.values()))):
        raise HanlatticeError("block must map texts to labels, or to None for all, such as {'大连': None}")
    if not (threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1)):
        raise HanlatticeError(f"threshold must be a number from 0 to 1, not {threshold!r}")


def _are_texts(given: Iterable[object]) -> bool:
    return all(isinstance(each, str) for each in given)


def _are_blocked(given: Iterable[object]) -> bool:
    """Whether each value of ``block`` is a label, several labels, or None."""
    return all(each is None or (isinstance(each, Collection) and _are_texts(each)) for each in given)


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
