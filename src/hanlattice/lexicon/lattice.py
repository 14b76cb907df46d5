"""The words that were read with a text, as users see them."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lattice:
    """The words found in ``text``, ordered by (start, end); spans are half-open, in characters.

    Iterates as ``(start, end, word, label)``; the label is None where the lexicon gives none.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    words: tuple[str, ...]
    labels: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[tuple[int, int, str, str | None]]:
        return zip(self.starts, self.ends, self.words, self.labels, strict=True)

    def to_svg(self) -> str:
        """A picture: the characters in rows, and the words as arcs above them."""
        from hanlattice.explain.svg import lattice_svg

        return lattice_svg(self)
