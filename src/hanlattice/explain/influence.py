"""How much the answer rests on each word: the word is left out, and the text read again.

This asks the model itself instead of looking inside it, so it holds for every encoder and every engine.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from hanlattice.document import Entity, Lattice
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Lexicon, Word

if TYPE_CHECKING:
    from hanlattice.pipeline import NER

LONGEST = 1000  # characters; every word costs one more reading of the whole text
NOTICED = 0.0005  # a change that scores of three digits show


class Influence(NamedTuple):
    """What leaving a word out of the lexicon does to the answer.

    ``strength`` is the largest change of an entity's score, in [0, 1]; an entity that is not found has score 0.
    ``entity`` is the one that changes most, if any does, with its score ``before``, with the word, and ``after``.
    """

    word: str
    strength: float
    entity: Entity | None = None
    before: float = 0.0
    after: float = 0.0

    def __str__(self) -> str:
        if self.entity is None or self.strength < NOTICED:
            return f"{self.word}: without it nothing changes"
        change = f"{_score(self.before)} → {_score(self.after)}"
        return f"{self.word}: without it {self.entity.text} {self.entity.label} {change}"


def influence(ner: "NER", text: str) -> list[Influence]:
    """What each word of the text's lattice does to the answer, in the order of the lattice.

    A word that occurs several times is left out everywhere, as if it were removed from the lexicon. What holds
    by ``ner.using`` holds here too.

    Raises:
        HanlatticeError: the text has more than 1,000 characters.
    """
    if len(text) > LONGEST:
        raise HanlatticeError(
            f"a text of {len(text):,} characters takes too long to read again without each of its words;"
            f" explain a part of at most {LONGEST:,}"
        )
    document = ner(text)
    lattice = document.lattice
    assert lattice is not None
    words = words_of(lattice)
    found: dict[str, Influence] = {}
    for left_out in words:
        with ner.using(lexicon=Lexicon(word for word in words.values() if word.text != left_out)):
            found[left_out] = _change(left_out, document.entities, ner(text).entities)
    return [found[word] for word in lattice.words]


def words_of(lattice: Lattice) -> dict[str, Word]:
    """The words of a lattice, each once: all of the lexicon that its text needs."""
    rows = zip(lattice.words, lattice.labels, strict=True)
    return {word: Word(word, label) for word, label in rows}


def _change(word: str, before: Iterable[Entity], after: Iterable[Entity]) -> Influence:
    scores = [{entity.span: entity for entity in entities} for entities in (before, after)]
    most = Influence(word, 0.0)
    for span in sorted(scores[0].keys() | scores[1].keys()):
        entities = [entities.get(span) for entities in scores]
        with_it, without_it = ((entity.score or 0.0) if entity else 0.0 for entity in entities)
        strength = abs(with_it - without_it)
        if strength > most.strength:
            most = Influence(word, strength, entities[0] or entities[1], with_it, without_it)
    return most


def _score(score: float) -> str:
    return f"{score:.3f}" if score else "not found"
