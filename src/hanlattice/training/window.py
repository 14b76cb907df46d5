"""A window of a training text."""

from dataclasses import dataclass

from hanlattice.spans import Span


@dataclass(frozen=True)
class AnnotatedWindow:
    """A window of a normalised text with the gold spans in it."""

    text: str
    spans: tuple[Span, ...]
