"""Generated mutants that change nothing a caller could notice, with the reason.

A key is :attr:`mutation.operators.Mutant.key`. Only these are excused; a mutant that no test notices otherwise is a
test that is missing.
"""

_NEVER = "no random number is exactly that"
_ORDER = "the order of the ranges does not matter, as breaks are counted over all of them"
_SPARED = "spares marks that are not over the piece; looking at them gives the same"

EQUIVALENT: dict[str, str] = {
    "benchmark.py:random_text: draw.random() < WORD_RATE -> (draw.random() <= WORD_RATE) #0": _NEVER,
    "benchmark.py:random_text: draw.random() < 0.02 -> (draw.random() <= 0.02) #0": _NEVER,
    "document.py:Entity.__init__: len(fragments) > 1 -> (len(fragments) >= 1) #0": "it passes the check",
    "document.py:Entity.span: not self.discontinuous -> False #0": "one fragment is the same span",
    "drawing/glyphs.py:_regional_indicators_before: i - first -> (i + first) #0": "only its parity matters",
    "drawing/html.py:_marked: ordered[first].end <= start -> (ordered[first].end < start) #0": _SPARED,
    "drawing/html.py:_marked: mark.start > start -> False #0": _SPARED,
    "drawing/svg.py:_rows: chain(((arc.start, arc.end) for arc in arcs),"
    " ((mark.start, mark.end) for mark in marks)) -> chain("
    "((mark.start, mark.end) for mark in marks), ((arc.start, arc.end) for arc in arcs)) #0": _ORDER,
    "drawing/svg.py:_breaks: 0 -> 1 #0": "counts are compared with one another only",
    "drawing/svg.py:_breaks: 0.0 -> 1.0 #0": "only differences of edges are used",
    "drawing/svg.py:_breaks: 1 -> 2 #0": "the further count is not read",
    "drawing/svg.py:_placed: 0.0 -> 1.0 #0": "the margin is wider",
    "tuning/space.py:_checked: (domain.low + domain.high) / 2 + 0.25"
    " -> ((domain.low + domain.high) / 2 - 0.25) #0": "another number between the two that is not whole",
    "drawing/svg.py:_rows: True -> False #0": "the three lists have one entry for each row",
}
