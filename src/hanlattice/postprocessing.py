"""Turn the spans that an engine finds into the entities of a document.

The pipeline calls these steps in this order:

1. `merge_windows` merges the spans of all windows of a text.
2. `join_at_brackets` joins the two parts of a name that was cut at a bracket.
3. `trim_edges` removes characters that no entity starts or ends with.
4. `apply_rules` drops spans below the threshold and blocked spans, and adds forced ones.
5. `entities_of` maps offsets to the text as given, and resolves overlaps.
6. `merge_patterns` adds the entities of patterns.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hanlattice.document import Entity
from hanlattice.rules import Blocked, Forced
from hanlattice.spans import Ranges, ScoredSpan, Span, first_of_overlapping, rows_of
from hanlattice.text.edges import MARKERS, ROUND, Edges, closes_early, is_never_trimmed, trimmed
from hanlattice.text.normalise import Normalised, NormalisedTexts
from hanlattice.text.windows import Window, WindowsOfTexts

if TYPE_CHECKING:
    from hanlattice.patterns import Priority


def plain_entities(
    texts: Sequence[str],
    normalised: NormalisedTexts,
    windows: WindowsOfTexts,
    found: Sequence[Sequence[ScoredSpan]],
) -> dict[int, list[Entity] | None]:
    """What the steps up to `entities_of` return for each text with spans; None if they have to be called.

    Nearly all texts need no call: entities begin and end with characters that are never trimmed, do not overlap and
    have no gaps, none follows a bracket after another one, and a text that is longer than a window keeps its
    offsets when it is normalised.

    Args:
        texts: texts as given.
        normalised: their normalised forms.
        windows: the windows of the normalised texts.
        found: the spans of each window.
    """
    plain: dict[int, list[Entity] | None] = {}
    own: list[Entity] = []
    owner, starts, normal = windows.owner, windows.start, normalised.texts
    here, last, by, cut, origin = -1, 0, 0, None, None
    for window, start, end, label, score, gaps in rows_of(found):
        if owner[window] != here:
            here, last, cut = owner[window], 0, windows.several.get(owner[window])
            text, rewritten, own = texts[here], normal[here], []
            origin = normalised.moved.get(here)
            plain[here] = own if origin is None or cut is None else None
        if plain[here] is None:
            continue
        if cut is not None:
            by, core = starts[window], cut[window - windows.first[here]]
            middle = (start + end - 1) // 2 + by
            if not core.core_start <= middle < core.core_end:
                if middle < core.core_start and not gaps:
                    _rescore(own, start + by, end + by, label, score)
                continue
            start, end = start + by, end + by
        first, final = rewritten[start], rewritten[end - 1]
        is_kept = ("\u3400" <= first <= "\u9fff" and "\u3400" <= final <= "\u9fff") or (
            is_never_trimmed(first) and is_never_trimmed(final)
        )
        if origin is not None:
            start, end = origin.original(start, end)
        is_marked = (first.isdigit() and text[start] in MARKERS) or (final.isdigit() and text[end - 1] in MARKERS)
        if gaps or start < last or not is_kept or is_marked or (start == last + 1 and text[last] in ROUND):
            plain[here] = None
        last = end
        own.append(Entity(text[start:end], label, start, end, score))
    return plain


def _rescore(entities: list[Entity], start: int, end: int, label: str, score: float) -> None:
    """Give an entity the score of the last window that finds it, as `merge_windows` does."""
    for i in reversed(range(len(entities))):
        one = entities[i]
        if one.end <= start:
            return
        if (one.start, one.end, one.label) == (start, end, label):
            entities[i] = Entity(one.text, label, start, end, score)


def merge_windows(
    windows: Sequence[Window], found: Sequence[Sequence[ScoredSpan]], *, nested: bool
) -> list[ScoredSpan]:
    """Spans of the whole text from the spans found in each window, whose offsets are relative to the window.

    A span is taken from the window whose core has its middle character, so a span that two windows find counts
    once. If windows disagree at their border, spans can overlap; unless spans can be ``nested``, the one that
    starts first is kept. The score is that of the last window that finds the span.
    """
    if len(windows) == 1:
        return list(found[0])
    moved = [
        [
            ScoredSpan(s.start + w.start, s.end + w.start, s.label, s.score) if not s.gaps else _moved(s, w.start)
            for s in spans
        ]
        for w, spans in zip(windows, found, strict=True)
    ]
    merged = sorted(
        s
        for w, spans in zip(windows, moved, strict=True)
        for s in spans
        if w.core_start <= (s.start + s.end - 1) // 2 < w.core_end
    )
    if any(w.start != w.core_start or w.end != w.core_end for w in windows):  # two may find the same span
        scores = {(s.start, s.end, s.label, s.gaps): s.score for spans in moved for s in spans}
        merged = [ScoredSpan(*s[:3], scores[(*s[:3], s.gaps)], s.gaps) for s in merged]
    return merged if nested else first_of_overlapping(merged)


def _moved(span: ScoredSpan, by: int) -> ScoredSpan:
    return ScoredSpan.of(span.span.moved(by), span.score)


def join_at_brackets(text: str, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
    """The spans, where a bracket opens between two of them and closes inside the second one as one span.

    So 腾讯科技（深圳）有限公司 is one name. Its label is that of the second part, as the head of a name is at its
    end, and its score is the lower one. Spans with gaps stay as they are.
    """
    joined: list[ScoredSpan] = []
    for span in sorted(spans):
        before = joined[-1] if joined else None
        if (
            before is not None
            and span.start == before.end + 1
            and text[before.end] in ROUND
            and not (before.gaps or span.gaps)
            and closes_early(text, span.start, span.end)
        ):
            score = min(before.score, span.score)
            joined[-1] = ScoredSpan(before.start, span.end, span.label, score)
        else:
            joined.append(span)
    return joined


def trim_edges(text: str, spans: Sequence[ScoredSpan], edges: Edges) -> list[ScoredSpan]:
    """The spans, trimmed at both ends to characters that an entity can start or end with.

    See :func:`hanlattice.text.edges.trimmed`. A span of which nothing is left is dropped. Discontinuous spans stay
    as they are. Of spans that become equal, the one with the highest score is kept.
    """
    for span in spans:
        if not ("\u3400" <= text[span.start] <= "\u9fff" and "\u3400" <= text[span.end - 1] <= "\u9fff"):
            break
    else:  # all begin and end with common Chinese characters, which are never trimmed
        return sorted(spans)
    places = [(s.start, s.end) if s.gaps else trimmed(text, s.start, s.end, edges) for s in spans]
    if all(place == span[:2] for place, span in zip(places, spans, strict=True)):
        return sorted(spans)
    kept: dict[Span, ScoredSpan] = {}
    for span, place in zip(spans, places, strict=True):
        if place is None:
            continue
        span = span._replace(start=place[0], end=place[1])
        if span.span not in kept or kept[span.span].score < span.score:
            kept[span.span] = span
    return sorted(kept.values())


def apply_rules(
    text: str,
    plain: Normalised,
    spans: Sequence[ScoredSpan],
    *,
    threshold: float,
    block: Blocked | None,
    force: Forced | None,
) -> list[ScoredSpan]:
    """Apply threshold, blocked texts and forced texts to spans.

    Every occurrence of a forced text becomes an entity with score 1, and spans that overlap it are dropped.

    Args:
        text: the text as given.
        plain: its normal form, to which the spans refer.
        spans: the spans, in order.
        threshold: spans with a lower score are dropped.
        block: the blocked texts.
        force: the forced texts.
    """
    kept = [span for span in spans if span.score >= threshold]
    if block is not None:
        kept = [span for span in kept if not _is_blocked(text, plain, span, block)]
    if force is None:
        return kept
    forced = force.spans(text, plain)
    ends = [span.end for span in forced]
    following = [bisect_right(ends, span.start) for span in kept]  # the first forced span that ends after the start
    free = [
        span for span, i in zip(kept, following, strict=True) if i == len(forced) or span.end <= forced[i].start
    ]
    return sorted([*free, *forced])


def _is_blocked(text: str, plain: Normalised, span: ScoredSpan, block: Blocked) -> bool:
    """Whether the text of a span, without its gaps, is blocked."""
    pieces = [(plain.text[a:b], plain.original(a, b)) for a, b in span.span.fragments]
    return block.blocks("".join(text[a:b] for _, (a, b) in pieces), "".join(p for p, _ in pieces), span.label)


def entities_of(text: str, plain: Normalised, spans: Sequence[ScoredSpan], *, nested: bool) -> tuple[Entity, ...]:
    """Entities with offsets in the text as given, from spans with offsets in its normalised form ``plain``.

    Markers of footnotes and lists at their ends are trimmed. Unless entities may be ``nested``, overlapping ones
    are dropped.
    """
    if plain.is_aligned:
        entities = [
            Entity(text[start:end], label, start, end, score)
            if not gaps
            else Entity.of(text, Span(start, end, label, gaps), score)
            for start, end, label, score, gaps in spans
        ]
    else:
        entities = [_entity(text, plain, span) for span in spans]
    entities = [kept for entity in entities if (kept := _without_markers(text, entity)) is not None]
    return tuple(_without_repetitions(entities) if nested else _without_overlaps(entities))


def _without_markers(text: str, entity: Entity) -> Entity | None:
    """The entity without `MARKERS` at its ends; None if it has nothing else."""
    start, end = entity.start, entity.end
    while start < end and text[start] in MARKERS:
        start += 1
    while start < end and text[end - 1] in MARKERS:
        end -= 1
    if (start, end) == (entity.start, entity.end) or len(entity.fragments) > 1:
        return entity
    return Entity(text[start:end], entity.label, start, end, entity.score) if start < end else None


def _without_repetitions(entities: Sequence[Entity]) -> list[Entity]:
    """The entities, of several of the same characters and label the one with the highest score.

    Two spans of a normalised text may lie in a single character of the text as given, such as ㍿, or differ in
    markers only.
    """
    best: dict[tuple[str, Ranges], Entity] = {}
    for entity in entities:
        key = (entity.label, entity.fragments)
        if key not in best or (best[key].score or 0) < (entity.score or 0):
            best[key] = entity
    return list(best.values())


def merge_patterns(
    entities: Sequence[Entity], regular: Sequence[Entity], *, priority: "Priority", nested: bool
) -> tuple[Entity, ...]:
    """The entities of a model and those of patterns, in order.

    Of an entity of each that overlap, ``priority`` decides which is kept: the longer one (of equal ones that of the
    pattern), the one of the pattern, or the one of the model. If entities may be ``nested``, an entity inside a
    longer one does not count as overlapping.

    Args:
        entities: entities of a model, sorted by their start.
        regular: entities of patterns, sorted by their start and without overlaps.
    """
    if not regular:
        return tuple(entities)
    rivals = _rivals(entities, regular, nested)
    n = len(entities)
    every = [*entities, *regular]

    def rank(i: int) -> tuple[int, bool]:
        length = every[i].end - every[i].start
        return (-length, i < n) if priority == "longest" else (0, (i < n) == (priority == "patterns"))

    kept: set[int] = set()
    for i in sorted(range(len(every)), key=rank):
        if not kept.intersection(rivals.get(i, ())):
            kept.add(i)
    return tuple(sorted((every[i] for i in kept), key=lambda entity: (entity.start, entity.end)))


def _rivals(entities: Sequence[Entity], regular: Sequence[Entity], nested: bool) -> dict[int, list[int]]:
    """For each entity that overlaps one of the other list, their numbers.

    Those of ``regular`` follow ``entities``.
    """
    rivals: dict[int, list[int]] = {}
    ends = [other.end for other in regular]
    for i, entity in enumerate(entities):
        for k in range(bisect_right(ends, entity.start), len(regular)):
            if regular[k].start >= entity.end:
                break
            if not (nested and _is_inside(entity, regular[k])):
                rivals.setdefault(i, []).append(len(entities) + k)
                rivals.setdefault(len(entities) + k, []).append(i)
    return rivals


def _is_inside(one: Entity, other: Entity) -> bool:
    """Whether one of two entities lies inside the other and is shorter."""
    inner, outer = sorted((one, other), key=lambda entity: entity.end - entity.start)
    return (
        outer.start <= inner.start and inner.end <= outer.end and inner.end - inner.start < outer.end - outer.start
    )


def overlapping(entities: Sequence[Entity], ranges: Sequence[tuple[int, int]]) -> list[Entity]:
    """The entities that overlap one of some ranges, which are sorted and do not overlap each other."""
    ends = [end for _, end in ranges]
    following = [bisect_right(ends, entity.start) for entity in entities]
    return [e for e, i in zip(entities, following, strict=True) if i < len(ranges) and ranges[i][0] < e.end]


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
