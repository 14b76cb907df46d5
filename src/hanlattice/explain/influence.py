"""The influence of each word on the answer: the word is left out of the lexicon, and the text is read again.

This looks at the model's answers only, not inside the model, so it works with every encoder and every engine.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from hanlattice.document import Entity
from hanlattice.errors import HanlatticeError

if TYPE_CHECKING:
    from hanlattice.pipeline import NER

MAX_CHARS = 1000  # the whole text is read once more for each of its words
SMALLEST_CHANGE = 0.0005  # the smallest change that is visible in a score of three digits


class Influence(NamedTuple):
    """How the answer changes when a word is left out of the lexicon.

    Attributes:
        word: the word that is left out.
        strength: the largest change of an entity's score, in [0, 1]. An entity that is not found has score 0.
        entity: the entity whose score changes most, or None if no score changes.
        before: the score of that entity with the word.
        after: its score without the word.
    """

    word: str
    strength: float
    entity: Entity | None = None
    before: float = 0.0
    after: float = 0.0

    def __str__(self) -> str:
        if self.entity is None or self.strength < SMALLEST_CHANGE:
            return f"{self.word}: without it nothing changes"
        change = f"{_score(self.before)} → {_score(self.after)}"
        return f"{self.word}: without it {self.entity.text} {self.entity.label} {change}"


def influence(ner: "NER", text: str) -> list[Influence]:
    """The influence of each word of the text's lattice, in the order of the lattice.

    A word that occurs several times is left out everywhere. Settings made by ``ner.using`` apply.

    Raises:
        HanlatticeError: the text has more than 1,000 characters.
    """
    if len(text) > MAX_CHARS:
        raise HanlatticeError(
            f"a text of {len(text):,} characters takes too long to read again without each of its words;"
            f" explain a part of at most {MAX_CHARS:,}"
        )
    document = ner(text)
    lattice = document.lattice
    assert lattice is not None
    found: dict[str, Influence] = {}
    for left_out in dict.fromkeys(lattice.words):
        lexicon = ner.active_lexicon.copy()
        lexicon.remove(left_out)
        with ner.using(lexicon=lexicon):
            found[left_out] = _largest_change(left_out, document.entities, ner(text).entities)
    return [found[word] for word in lattice.words]


def _largest_change(word: str, before: Iterable[Entity], after: Iterable[Entity]) -> Influence:
    """Compare the entities found with a word and without it."""
    entities_before, entities_after = ({entity.span: entity for entity in side} for side in (before, after))
    largest = Influence(word, 0.0)
    for span in sorted(entities_before.keys() | entities_after.keys()):
        old, new = entities_before.get(span), entities_after.get(span)
        old_score, new_score = ((entity.score or 0.0) if entity else 0.0 for entity in (old, new))
        strength = abs(old_score - new_score)
        if strength > largest.strength:
            largest = Influence(word, strength, old or new, old_score, new_score)
    return largest


def _score(score: float) -> str:
    return f"{score:.3f}" if score else "not found"
