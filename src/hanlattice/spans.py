"""Spans and tag schemes."""

from typing import NamedTuple


class Span(NamedTuple):
    """Characters ``[start, end)`` carry an entity of ``label``."""

    start: int
    end: int
    label: str
