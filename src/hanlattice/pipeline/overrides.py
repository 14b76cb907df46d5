"""Options of a ``with`` block, which change what a model reads and which entities it returns."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.words import LONGEST
from hanlattice.rules import Block, Blocked, Forced
from hanlattice.text.code_points import BOUNDARY

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
    """Check the types of options, the range of the threshold, and that no forced text is empty.

    Raises:
        HanlatticeError: one is wrong.
    """
    if not (lexicon is None or isinstance(lexicon, Lexicon)):
        raise HanlatticeError(f"lexicon must be a hanlattice.Lexicon, not a {type(lexicon).__name__}")
    if not (force is None or _are_rules(force, lambda label: isinstance(label, str))):
        raise HanlatticeError("force must map texts to labels, such as {'鹅厂': 'ORG'}")
    if isinstance(force, Mapping) and "" in force:
        raise HanlatticeError("force has a text without characters; remove it")
    for text in force if isinstance(force, Mapping) else ():
        if len(text) > LONGEST:
            raise HanlatticeError(f"force: a text has {len(text):,} characters, more than {LONGEST:,}; shorten it")
        if BOUNDARY in text:
            raise HanlatticeError(f"force: {text!r} has a NUL character; remove it")
    if not (block is None or _are_rules(block, _is_blockable)):
        raise HanlatticeError("block must map texts to labels, or to None for all, such as {'大连': None}")
    if not (threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1)):
        raise HanlatticeError(f"threshold must be a number from 0 to 1, not {threshold!r}")


def _are_rules(rules: object, is_right: Callable[[object], bool]) -> bool:
    return isinstance(rules, Mapping) and all(isinstance(text, str) and is_right(x) for text, x in rules.items())


def _is_blockable(labels: object) -> bool:
    return (
        labels is None
        or isinstance(labels, str)
        or (isinstance(labels, Collection) and all(isinstance(label, str) for label in labels))
    )


def refuse_unknown_labels(
    force: Mapping[str, str], labels: Sequence[str], convention: str, patterns: "Patterns | None"
) -> None:
    """Check that the convention or the patterns in use have the labels of forced texts.

    Raises:
        HanlatticeError: neither the convention nor a pattern has a label.
    """
    known = frozenset(labels).union(patterns.labels if patterns else ())
    for text, label in force.items():
        if label not in known:
            raise HanlatticeError(
                f"force: {text!r} has the label {label!r}, which convention {convention!r} lacks; it has"
                f" {', '.join(labels)}"
            )


def refuse_unknown_blocked(
    block: Block, conventions: Mapping[str, Sequence[str]], patterns: "Patterns | None", convention: str
) -> None:
    """Check the labels of blocked texts; see :func:`unknown_blocked`.

    Raises:
        HanlatticeError: no entity has a label.
    """
    if unknown := unknown_blocked(block, conventions, patterns):
        text, label = unknown
        raise HanlatticeError(
            f"block: {text!r} has the label {label!r}, which no entity has; in convention {convention!r} entities"
            f" have {', '.join(conventions[convention])}"
        )


def unknown_blocked(
    block: Block, conventions: Mapping[str, Sequence[str]], patterns: "Patterns | None"
) -> tuple[str, str] | None:
    """A text of ``block`` and a label of it that no entity has; None if there is none.

    Args:
        block: see :data:`hanlattice.rules.Block`.
        conventions: the labels of each convention. All are known, so that one dictionary serves all conventions.
        patterns: patterns in use, whose labels are known too, as are the built-in kinds.
    """
    known = frozenset(patterns.labels if patterns else ()).union(*conventions.values())
    unknown = [(text, label) for text, found in block.items() for label in _labels(found) if label not in known]
    if not unknown:
        return None
    from hanlattice.patterns import KINDS

    return next((pair for pair in unknown if pair[1] not in KINDS), None)


def _labels(found: str | Collection[str] | None) -> Collection[str]:
    return (found,) if isinstance(found, str) else found or ()
