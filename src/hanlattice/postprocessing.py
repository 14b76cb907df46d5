"""Turn the spans that an engine finds into the entities of a document.

The pipeline calls these steps in this order:

1. `merge_windows` merges the spans of all windows of a text.
2. `trim_edges` removes characters that no entity starts or ends with.
3. `apply_rules` drops spans below the threshold and blocked spans, and adds forced ones.
4. `entities_of` maps offsets to the text as given, and resolves overlaps.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence

from hanlattice.document import Entity
from hanlattice.lexicon import Lexicon
from hanlattice.spans import ScoredSpan, Span
from hanlattice.text.edges import Edges, trimmed
from hanlattice.text.normalise import Normalised
from hanlattice.text.windows import Window, merge

Block = Mapping[str, str | Collection[str] | None]
"""Maps a text to the labels that it never has as an entity: one label, several, or None for all labels."""


def merge_windows(
    windows: Sequence[Window], found: Sequence[Sequence[ScoredSpan]], *, nested: bool
) -> list[ScoredSpan]:
    """Spans of the whole text from the spans found in each window; see :func:`hanlattice.text.windows.merge`."""
    if len(windows) == 1:
        return list(found[0])
    scores = {s.span.moved(w.start): s.score for w, spans in zip(windows, found, strict=True) for s in spans}
    merged = merge(windows, [[s.span for s in spans] for spans in found], nested)
    return [ScoredSpan.of(span, scores[span]) for span in merged]


def trim_edges(text: str, spans: Sequence[ScoredSpan], edges: Edges) -> list[ScoredSpan]:
    """The spans, trimmed at both ends to characters that an entity can start or end with.

    See :func:`hanlattice.text.edges.trimmed`. A span of which nothing is left is dropped. Discontinuous spans stay
    as they are. Of spans that become equal, the one with the highest score is kept.
    """
    kept: dict[Span, ScoredSpan] = {}
    for span in spans:
        place = (span.start, span.end) if span.gaps else trimmed(text, span.start, span.end, edges)
        if place is None:
            continue
        span = span._replace(start=place[0], end=place[1])
        if span.span not in kept or kept[span.span].score < span.score:
            kept[span.span] = span
    return sorted(kept.values())


def apply_rules(
    text: str, spans: Sequence[ScoredSpan], *, threshold: float, block: Block | None, force: Lexicon | None
) -> list[ScoredSpan]:
    """Apply threshold, block list and force list to spans.

    ``force`` holds texts with labels. Every occurrence of such a text becomes an entity with score 1, and spans
    that overlap it are dropped. Forced texts are matched from left to right, the longest first.
    """
    kept = [span for span in spans if span.score >= threshold]
    if block is not None:
        kept = [span for span in kept if not _is_blocked(_text_of(text, span.span), span.label, block)]
    if force is None:
        return kept
    forced = _longest_matches(force, text)
    ends = [span.end for span in forced]
    following = [bisect_right(ends, span.start) for span in kept]  # the first forced span that ends after the start
    free = [
        span for span, i in zip(kept, following, strict=True) if i == len(forced) or span.end <= forced[i].start
    ]
    return sorted([*free, *forced])


def entities_of(text: str, plain: Normalised, spans: Sequence[ScoredSpan], *, nested: bool) -> tuple[Entity, ...]:
    """Entities with offsets in the text as given, from spans with offsets in its normalised form ``plain``.

    Unless entities may be ``nested``, overlapping ones are dropped.
    """
    entities = [_entity(text, plain, span) for span in spans]
    return tuple(entities if nested else _without_overlaps(entities))


def _entity(text: str, plain: Normalised, span: ScoredSpan) -> Entity:
    if span.gaps:
        return Entity.of(text, span.span.mapped(plain.original), span.score)
    start, end = plain.original(span.start, span.end)
    return Entity(text[start:end], span.label, start, end, span.score)


def _without_overlaps(entities: Sequence[Entity]) -> list[Entity]:
    """The entities, in order; of two that share a character, only the one with the higher score.

    Normalisation may replace one character by several: ㍿ becomes 株式会社. Several entities found there share the
    character of the given text.
    """
    kept: list[Entity] = []
    for entity in entities:
        if not kept or kept[-1].end <= entity.start:
            kept.append(entity)
        elif (entity.score or 0.0) > (kept[-1].score or 0.0):
            kept[-1] = entity
    return kept


def _text_of(text: str, span: Span) -> str:
    """The text of a span without its gaps."""
    return "".join(text[start:end] for start, end in span.fragments)


def _is_blocked(text: str, label: str, block: Block) -> bool:
    if text not in block:
        return False
    labels = block[text]
    return labels is None or label == labels or (not isinstance(labels, str) and label in labels)


def _longest_matches(words: Lexicon, text: str) -> list[ScoredSpan]:
    """Matches from the left, the longest first, none of which overlap."""
    chosen: list[ScoredSpan] = []
    matches = words.match(text)
    rows = zip(matches.start.tolist(), matches.end.tolist(), matches.word.tolist(), strict=True)
    for start, end, word in sorted(rows, key=lambda row: (row[0], -row[1])):
        if not chosen or chosen[-1].end <= start:
            chosen.append(ScoredSpan(start, end, words.label(word) or "", 1.0))
    return chosen
