"""From the spans found in windows to the entities of texts: the steps of :mod:`hanlattice.postprocessing`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hanlattice.document import Entity
from hanlattice.pipeline.overrides import Overrides
from hanlattice.pipeline.reading import Reading
from hanlattice.postprocessing import (
    apply_rules,
    entities_of,
    join_at_brackets,
    merge_patterns,
    merge_windows,
    overlapping,
    plain_entities,
    trim_edges,
)
from hanlattice.spans import ScoredSpan, rows_of
from hanlattice.text.edges import Edges
from hanlattice.text.normalise import Normalised, Normaliser

if TYPE_CHECKING:
    from hanlattice.patterns import Patterns


def entities_of_texts(
    reading: Reading,
    found: Sequence[Sequence[ScoredSpan]],
    overrides: Overrides,
    *,
    edges: Edges,
    nested: bool,
) -> dict[int, tuple[Entity, ...]]:
    """The entities of each text that has any, by index, from the spans found in each window."""
    texts, cut = reading.texts, reading.windows
    if overrides.has_rules:
        touched = range(len(texts)) if overrides.force else (cut.owner[row[0]] for row in rows_of(found))
        plain: dict[int, list[Entity] | None] = dict.fromkeys(touched)
    else:
        plain = plain_entities(texts, reading.normalised, cut, found)
    return {
        i: _entities(reading, i, found, overrides, edges, nested) if own is None else tuple(own)
        for i, own in plain.items()
    }


def _entities(
    reading: Reading,
    index: int,
    found: Sequence[Sequence[ScoredSpan]],
    overrides: Overrides,
    edges: Edges,
    nested: bool,
) -> tuple[Entity, ...]:
    """The entities of one text from the spans found in each of its windows."""
    text, plain, cut = reading.texts[index], reading.normalised[index], reading.windows
    spans_of_windows = found[cut.first[index] : cut.first[index + 1]]
    spans = merge_windows(cut.of(index), spans_of_windows, nested=nested)
    if edges == "punctuation" and not nested:
        spans = join_at_brackets(plain.text, spans)
    spans = trim_edges(plain.text, spans, edges)
    if overrides.has_rules:
        threshold, block, force = overrides.threshold, overrides.block, overrides.force
        spans = apply_rules(text, plain, spans, threshold=threshold, block=block, force=force)
    return entities_of(text, plain, spans, nested=nested)


def with_patterns(
    text: str,
    plain: Normalised,
    entities: tuple[Entity, ...],
    patterns: "Patterns",
    overrides: Overrides,
    *,
    normaliser: Normaliser,
    nested: bool,
) -> tuple[Entity, ...]:
    """The entities with those of patterns, which neither overlap forced texts nor are blocked."""
    regular: Sequence[Entity] = patterns.find(text)
    if (block := overrides.block) is not None:
        regular = [e for e in regular if not block.blocks(e.text, normaliser(e.text).text, e.label)]
    if overrides.force is not None:
        taken = {id(entity) for entity in overlapping(regular, overrides.force.ranges(text, plain))}
        regular = [entity for entity in regular if id(entity) not in taken]
    return merge_patterns(entities, regular, priority=patterns.priority, nested=nested)
