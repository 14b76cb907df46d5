"""Spans of windows merged, by the package and by the definition."""

from collections.abc import Iterable, Sequence

from hanlattice.postprocessing import merge_windows
from hanlattice.spans import ScoredSpan, Span
from hanlattice.text.windows import Window


def merged(windows: Sequence[Window], found: Iterable[Iterable[Span]], nested: bool = False) -> list[Span]:
    """What the package makes of the spans that were found in each window."""
    scored = [[ScoredSpan.of(span, 1.0) for span in spans] for spans in found]
    return [span.span for span in merge_windows(windows, scored, nested=nested)]


def merged_by_definition(
    windows: Sequence[Window], found: Iterable[Iterable[Span]], nested: bool = False
) -> list[Span]:
    """Each span from the window whose core has its middle character, and the first of those that overlap."""
    moved = [[span.moved(w.start) for span in spans] for w, spans in zip(windows, found, strict=True)]
    in_cores = (
        span
        for w, spans in zip(windows, moved, strict=True)
        for span in spans
        if w.core_start <= (span.start + span.end - 1) // 2 < w.core_end
    )
    kept: list[Span] = []
    for span in sorted(in_cores):
        if nested or not kept or kept[-1].end <= span.start:
            kept.append(span)
    return kept
