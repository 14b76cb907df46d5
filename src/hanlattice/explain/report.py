"""A page of a model's scores and errors on a corpus, as one HTML file.

With scripts, the errors can be searched and filtered; without them the page is a plain list.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import get_args

from hanlattice.document import Document, Entity
from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.glyphs import shown
from hanlattice.drawing.html import FOOT, head
from hanlattice.drawing.markup import escaped
from hanlattice.evaluation.scores import Kind, Mistake, Report, Score, errors
from hanlattice.explain import charts
from hanlattice.explain.analysis import (
    Epoch,
    by_coverage,
    by_entity_length,
    by_frequency,
    by_sentence_length,
    confusion,
    is_nested,
    scores_by,
)
from hanlattice.spans import Span

MAX_LISTED = 500  # errors of each kind, so that a browser shows the page quickly
CONTEXT = 40  # characters of text before and after an error

_MEANING: Mapping[Kind, str] = {
    "boundary": "overlap, same label",
    "type": "same characters, another label",
    "both": "overlap, another label",
    "missed": "nothing predicted there",
    "spurious": "nothing annotated there",
}


@dataclass(frozen=True)
class Findings:
    """The content of a report.

    Attributes:
        model: the name of the model, for the title.
        mode: how it was scored, as text for the page.
        report: the scores.
        documents: the annotated documents.
        gold: for each document, the gold spans that were scored.
        predicted: for each document, the predicted entities that were scored.
        words: for each document, the spans ``(start, end)`` of the lexicon words in it.
        seen: how often each text was an entity in training, if known.
        epochs: the epochs of the training run, if known.
    """

    model: str
    mode: str
    report: Report
    documents: Sequence[Document]
    gold: Sequence[Sequence[Span]]
    predicted: Sequence[Sequence[Entity]]
    words: Sequence[Sequence[tuple[int, int]]]
    seen: Mapping[str, int] | None = None
    epochs: Sequence[Epoch] = field(default=())

    @property
    def predicted_spans(self) -> list[list[Span]]:
        return [[entity.span for entity in entities] for entities in self.predicted]


def page(findings: Findings) -> Iterator[str]:
    """The parts of the page, in order."""
    title = f"{findings.model}: scores and errors"
    yield head(title, style=_asset("report.css"), language="en")
    yield from _scores(findings)
    yield from _groups(findings)
    yield from _errors(findings)
    yield f"<script>\n{_asset('report.js')}</script>\n{FOOT}"


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _scores(findings: Findings) -> Iterator[str]:
    micro = findings.report.micro
    yield f"<header>\n<h1>{escaped(findings.model)}</h1>\n<p>{escaped(findings.mode)}</p>\n</header>\n"
    yield '<section aria-label="Scores">\n<div class="numbers">\n'
    for name, value in (("F1", micro.f1), ("precision", micro.precision), ("recall", micro.recall)):
        yield f"<div><b>{100 * value:.2f}</b> {name}</div>\n"
    of = f"of {micro.gold:,} gold and {micro.predicted:,} predicted"
    yield f"<div><b>{micro.correct:,}</b> correct, {of}</div>\n</div>\n"
    names = ("type", "P", "R", "F1", "gold", "predicted", "correct")
    header = "".join(f'<th scope="col">{name}</th>' for name in names)
    yield f'<div class="wide"><table class="scores">\n<tr>{header}</tr>\n'
    for label, score in [*findings.report.per_type.items(), ("micro", micro)]:
        yield _row(label, score)
    yield "</table></div>\n"
    for form, recall in findings.report.forms.items():
        yield f"<p>{escaped(form)}: {recall.correct:,} of {recall.gold:,}, {100 * recall.recall:.2f} %</p>\n"
    yield "</section>\n"


def _row(label: str, score: Score) -> str:
    ratios = "".join(f'<td class="n">{100 * v:.2f}</td>' for v in (score.precision, score.recall, score.f1))
    counts = "".join(f'<td class="n">{n:,}</td>' for n in (score.gold, score.predicted, score.correct))
    colour = "" if label == "micro" else f' style="--c:{colour_of(label)}" class="label"'
    return f'<tr><th scope="row"{colour}>{escaped(label)}</th>{ratios}{counts}</tr>\n'


def _groups(findings: Findings) -> Iterator[str]:
    texts = [document.text for document in findings.documents]
    predicted = findings.predicted_spans
    groupings = [by_sentence_length(texts), by_entity_length(), by_coverage(findings.words)]
    if findings.seen is not None:
        groupings.append(by_frequency(texts, findings.seen))
    yield '<section>\n<h2>F1 by group</h2>\n<div class="groups">\n'
    for grouping in groupings:
        yield charts.bars(grouping.title, scores_by(grouping, findings.gold, predicted))
    yield "</div>\n"
    if findings.seen is None:
        yield '<p class="faint">With --train FILE, also by how often an entity was seen in training.</p>\n'
    yield "</section>\n<section>\n<h2>Confusion of labels</h2>\n"
    yield f'<div class="wide">{charts.counts(confusion(findings.gold, predicted))}</div>\n'
    yield '<p class="faint">Spans that overlap are compared as well as equal ones.</p>\n</section>\n'
    if findings.epochs:
        yield '<section>\n<h2>Training</h2>\n<p><span class="loss">loss</span> on the left, '
        yield f'<span class="f1">F1 on dev</span> on the right</p>\n{charts.curve(findings.epochs)}</section>\n'


def _errors(findings: Findings) -> Iterator[str]:
    predicted = findings.predicted_spans
    by_kind: dict[Kind, list[Mistake]] = {kind: [] for kind in get_args(Kind)}
    for mistake in errors(findings.gold, predicted):
        by_kind[mistake.kind].append(mistake)
    listed = sorted((m for some in by_kind.values() for m in _listed(some)), key=_text_order)
    yield from _error_counts(by_kind, len(listed))
    yield '<p class="key"><mark class="g">gold</mark> <mark class="f">predicted</mark></p>\n'
    nested = [is_nested(m, findings.gold[m.sentence], predicted[m.sentence]) for m in listed]
    yield from _filters(listed, nested)
    yield '<ol class="errors">\n'
    scores = [{entity.span: entity.score for entity in entities} for entities in findings.predicted]
    for mistake, inside in zip(listed, nested, strict=True):
        document = findings.documents[mistake.sentence]
        score = mistake.predicted and scores[mistake.sentence].get(mistake.predicted)
        yield _error(mistake, document, score, inside)
    yield "</ol>\n</section>\n"


def _error_counts(by_kind: Mapping[Kind, Sequence[Mistake]], n_listed: int) -> Iterator[str]:
    """A heading with the number of errors, and a list of their kinds."""
    n = sum(map(len, by_kind.values()))
    yield f"<section>\n<h2>{n:,} errors</h2>\n"
    if n_listed < n:
        yield f"<p>{n_listed:,} of them are listed: at most {MAX_LISTED:,} of each kind, evenly spread.</p>\n"
    yield "<ul>\n"
    for kind, mistakes in by_kind.items():
        listed = f", {MAX_LISTED:,} listed" if len(mistakes) > MAX_LISTED else ""
        yield f"<li><b>{kind}</b> {len(mistakes):,}{listed}: {_MEANING[kind]}</li>\n"
    yield "</ul>\n"


def _text_order(mistake: Mistake) -> tuple[int, Span]:
    span = mistake.gold or mistake.predicted
    assert span is not None
    return mistake.sentence, span


def _listed(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """All mistakes, or ``MAX_LISTED`` of them, evenly spaced."""
    n = min(len(mistakes), MAX_LISTED)
    return [mistakes[i * len(mistakes) // n] for i in range(n)]


def _filters(listed: Sequence[Mistake], nested: Sequence[bool]) -> Iterator[str]:
    """The form that filters errors. It is hidden until the script shows it, as it needs the script."""
    kinds = Counter(mistake.kind for mistake in listed)
    yield "<form hidden>\n<fieldset><legend>kind</legend>\n"
    for kind in get_args(Kind):
        if kinds[kind]:
            yield (
                f'<label class="k {kind}"><input type="checkbox" name="kind" value="{kind}" checked> {kind}'
                f" {kinds[kind]:,}</label>\n"
            )
    yield "</fieldset>\n"
    if any(nested):
        yield f'<label><input type="checkbox" name="nested"> only nested, {sum(nested):,}</label>\n'
    labels = sorted({span.label for m in listed for span in (m.gold, m.predicted) if span is not None})
    options = "".join(f'<option value="{escaped(label)}">{escaped(label)}</option>' for label in labels)
    yield f'<label>label <select name="label"><option value="">all</option>{options}</select></label>\n'
    yield '<label>text <input type="search" name="text"></label>\n<output aria-live="polite"></output>\n</form>\n'


def _error(mistake: Mistake, document: Document, score: float | None, nested: bool) -> str:
    kind, gold, predicted = mistake.kind, mistake.gold, mistake.predicted
    sides = [
        f'<span class="{name}">{escaped(span.label)} <q>{_shown_text(document.text, span)}</q></span>'
        for name, span in (("g", gold), ("f", predicted))
        if span is not None
    ]
    confidence = "" if score is None else f' <span class="faint">{score:.2f}</span>'
    inside = ' <span class="k">nested</span>' if nested else ""
    labels = " ".join(
        f'data-{name}="{escaped(s.label)}"' for name, s in (("gold", gold), ("found", predicted)) if s
    )
    data = f'data-kind="{kind}"{" data-nested" if nested else ""} {labels}'
    file, line = document.meta.get("@file"), document.meta.get("@line")
    where = "" if file is None else Path(file).name if line is None else f"{Path(file).name}:{line}"
    return (
        f'<li {data}><span class="k {kind}">{kind}</span>{inside}'
        f' {" → ".join(sides)}{confidence}<span class="where">{escaped(where)}</span>'
        f"<p>{_context(document.text, gold, predicted)}</p></li>\n"
    )


def _shown_text(text: str, span: Span) -> str:
    return escaped(shown("…".join(text[start:end] for start, end in span.fragments)))


def _context(text: str, gold: Span | None, predicted: Span | None) -> str:
    """The text around both spans, with the characters of each marked."""
    marked = [(name, piece) for name, span in (("g", gold), ("f", predicted)) if span for piece in span.fragments]
    first = max(min(start for _, (start, _) in marked) - CONTEXT, 0)
    last = min(max(end for _, (_, end) in marked) + CONTEXT, len(text))
    borders = sorted({first, last, *(at for _, piece in marked for at in piece)})
    pieces = []
    for start, end in pairwise(borders):
        names = [name for name, (s, e) in marked if s <= start and end <= e]
        inner = escaped(text[start:end])
        pieces.append(f'<mark class="{" ".join(names)}">{inner}</mark>' if names else inner)
    return f"{'…' if first else ''}{''.join(pieces)}{'…' if last < len(text) else ''}"
