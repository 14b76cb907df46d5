"""The plain data that pictures are drawn from: entities as marks, words as arcs."""

from typing import NamedTuple


class Mark(NamedTuple):
    """An entity to draw over the characters ``[start, end)`` of a text.

    ``text`` is the text of the entity. ``fragments`` lists the parts ``(start, end)`` of a discontinuous entity, in
    order; without them, the entity is one part.
    """

    start: int
    end: int
    label: str
    text: str
    score: float | None = None
    fragments: tuple[tuple[int, int], ...] = ()

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """The ranges of characters to mark, in order."""
        return self.fragments or ((self.start, self.end),)


class Arc(NamedTuple):
    """A word to draw as an arc over the characters ``[start, end)`` of a text.

    ``hint`` is shown when the pointer rests on the arc. ``strength`` in [0, 1] sets the thickness of the arc; arcs
    without a strength all look alike.
    """

    start: int
    end: int
    text: str
    hint: str
    strength: float | None = None
