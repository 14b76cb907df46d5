"""Precision, recall and F1 of predicted spans, and a list of all errors.

A prediction is correct if its label and its fragments equal those of a gold span of its sentence; for a span
without gaps, these are start and end. A gold span makes at most one prediction correct. Precision, recall and F1
are fractions in [0, 1]; only printed tables show percentages.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, zip_longest
from math import inf
from typing import Any, Literal, NamedTuple

from hanlattice.errors import HanlatticeError
from hanlattice.spans import Span

Sentences = Iterable[Collection[Span]]
Kind = Literal["type", "boundary", "both", "missed", "spurious"]


@dataclass(frozen=True, slots=True)
class Score:
    """The numbers of gold, predicted and correct spans, and the ratios of them; a ratio with denominator 0 is 0."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        return 2 * self.correct / (self.gold + self.predicted) if self.gold + self.predicted else 0.0

    def to_dict(self) -> dict[str, Any]:
        counts = {"gold": self.gold, "predicted": self.predicted, "correct": self.correct}
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, **counts}

    def __str__(self) -> str:
        p, r, f1, *counts = _cells(self)
        return "P {} R {} F1 {} (gold {}, predicted {}, correct {})".format(p, r, f1, *counts)


class Recall(NamedTuple):
    """The number of gold spans of one form, and how many of them were predicted."""

    gold: int
    correct: int

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"recall": self.recall, **self._asdict()}


class Average(NamedTuple):
    """Unweighted means over the labels."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Report:
    """Scores over all spans and for each label, in alphabetical order.

    Attributes:
        partial: whether predictions that only overlap a gold span of their label were counted as correct.
        forms: recall of special gold spans, by exact matches, where there are any: ``nested`` spans, which overlap
            another one, and ``discontinuous`` spans. ``reachable`` is the upper bound on recall, if below 1.
    """

    micro: Score
    per_type: Mapping[str, Score]
    partial: bool = False
    forms: Mapping[str, Recall] = field(default_factory=dict)

    @property
    def macro(self) -> Average:
        """The mean over all labels that are gold or predicted, as in seqeval."""
        scores, n = self.per_type.values(), max(len(self.per_type), 1)
        return Average(
            sum(score.precision for score in scores) / n,
            sum(score.recall for score in scores) / n,
            sum(score.f1 for score in scores) / n,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "micro": self.micro.to_dict(),
            "macro": self.macro._asdict(),
            "per_type": {label: score.to_dict() for label, score in self.per_type.items()},
            "partial": self.partial,
            **{form: recall.to_dict() for form, recall in self.forms.items()},
        }

    def to_markdown(self) -> str:
        """A Markdown table in percent, with aligned columns."""
        head, *rows = _aligned(self._rows())
        rule = ["-" * _width(head[0]), *("-" * (_width(cell) - 1) + ":" for cell in head[1:])]
        return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *rows])

    def _repr_html_(self) -> str:
        """The scores as a table, for notebooks."""
        from hanlattice.drawing.html import fragment, table

        return fragment(table(self._rows()))

    def __str__(self) -> str:
        return "\n".join("  ".join(row) for row in _aligned(self._rows()))

    def _rows(self) -> list[list[str]]:
        title = "partial" if self.partial else "type"
        return [
            [title, "P", "R", "F1", "gold", "predicted", "correct"],
            *([label, *_cells(score)] for label, score in self.per_type.items()),
            ["macro", *(percent(value) for value in self.macro), "", "", ""],
            ["micro", *_cells(self.micro)],
            *(
                [form, "", percent(recall.recall), "", str(recall.gold), "", str(recall.correct)]
                for form, recall in self.forms.items()
            ),
        ]


def evaluate_spans(gold: Sentences, predicted: Sentences, *, partial: bool = False) -> Report:
    """Score the predicted spans of sentences; duplicates count as often as they occur.

    Args:
        partial: a prediction is also correct if it overlaps a gold span with its label. Every span is matched at
            most once: first exact pairs, then from left to right.

    Raises:
        HanlatticeError: the numbers of sentences differ.
    """
    golds: Counter[str] = Counter()
    predictions: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    forms = {form: Recall(0, 0) for form in _FORMS}
    for expected, found in sentence_pairs(gold, predicted):
        golds.update(span.label for span in expected)
        predictions.update(span.label for span in found)
        correct.update(span.label for span in (Counter(expected) & Counter(found)).elements())
        if partial:
            correct.update(span.label for span, _ in _couple(*_differences(expected, found), _boundary))
        for form, those in _FORMS.items():
            if some := those(expected):
                gold_so_far, correct_so_far = forms[form]
                forms[form] = Recall(gold_so_far + len(some), correct_so_far + n_correct(some, found))
    labels = sorted(golds | predictions)
    per_type = {label: Score(golds[label], predictions[label], correct[label]) for label in labels}
    micro = Score(golds.total(), predictions.total(), correct.total())
    return Report(micro, per_type, partial, {form: recall for form, recall in forms.items() if recall.gold})


def _nested(spans: Collection[Span]) -> list[Span]:
    """The spans that overlap another span."""
    ordered = sorted(spans)
    ends_before = [0, *accumulate((span.end for span in ordered), max)]  # the largest end of all earlier spans
    next_starts = [*(span.start for span in ordered[1:]), inf]
    rows = zip(ordered, ends_before, next_starts, strict=False)
    return [span for span, end_before, next_start in rows if span.start < end_before or next_start < span.end]


def _discontinuous(spans: Collection[Span]) -> list[Span]:
    return [span for span in spans if span.gaps]


_FORMS: dict[str, Callable[[Collection[Span]], list[Span]]] = {"nested": _nested, "discontinuous": _discontinuous}


class Mistake(NamedTuple):
    """An error: a gold span, a predicted span, or a pair of them, in one sentence (counted from 0).

    Kinds: ``type``, the right range with another label; ``boundary``, an overlap with the right label; ``both``, an
    overlap with another label; ``missed``, a gold span without a prediction; ``spurious``, a prediction without a
    gold span.
    """

    sentence: int
    kind: Kind
    gold: Span | None
    predicted: Span | None


def errors(gold: Sentences, predicted: Sentences) -> Iterator[Mistake]:
    """All errors, in the order of the text. Each wrong or missed span belongs to exactly one error.

    Raises:
        HanlatticeError: the numbers of sentences differ.
    """
    for sentence, (expected, found) in enumerate(sentence_pairs(gold, predicted)):
        missed, spurious = _differences(expected, found)
        mistakes = [
            Mistake(sentence, kind, *couple)
            for kind, agree in _KINDS.items()
            for couple in _couple(missed, spurious, agree)
        ]
        mistakes += [Mistake(sentence, "missed", span, None) for span in missed]
        mistakes += [Mistake(sentence, "spurious", None, span) for span in spurious]
        yield from sorted(mistakes, key=lambda mistake: mistake.gold or mistake.predicted or ())


def sentence_pairs(gold: Sentences, predicted: Sentences) -> Iterator[tuple[Collection[Span], Collection[Span]]]:
    """The gold and predicted spans of each sentence.

    Raises:
        HanlatticeError: the numbers of sentences differ.
    """
    for i, (expected, found) in enumerate(zip_longest(gold, predicted)):
        if expected is None or found is None:
            longer, shorter = ("predicted", "gold") if expected is None else ("gold", "predicted")
            raise HanlatticeError(
                f"there are {i} {shorter} sentences but more {longer} ones; both need the same sentences"
            )
        yield expected, found


def n_correct(gold: Collection[Span], predicted: Collection[Span]) -> int:
    return (Counter(gold) & Counter(predicted)).total()


def _differences(gold: Collection[Span], predicted: Collection[Span]) -> tuple[list[Span], list[Span]]:
    expected, found = Counter(gold), Counter(predicted)
    return sorted((expected - found).elements()), sorted((found - expected).elements())


def _same_range(a: Span, b: Span) -> bool:
    return (a.start, a.end, a.gaps) == (b.start, b.end, b.gaps)


def _overlap(a: Span, b: Span) -> bool:
    return a.start < b.end and b.start < a.end


def _boundary(a: Span, b: Span) -> bool:
    return a.label == b.label and _overlap(a, b)


_KINDS: dict[Kind, Callable[[Span, Span], bool]] = {
    "type": _same_range,
    "boundary": _boundary,
    "both": _overlap,
}


def _couple(
    gold: list[Span], predicted: list[Span], agree: Callable[[Span, Span], bool]
) -> list[tuple[Span, Span]]:
    """From left to right, pair each gold span with the first prediction that agrees; both leave their lists.

    The lists are sorted, and only spans that overlap can agree.
    """
    couples: dict[int, int] = {}  # places of gold spans, and those of their predictions
    starts = [span.start for span in predicted]
    longest = max((span.end - span.start for span in predicted), default=0)
    left = set(range(len(predicted)))
    for i, expected in enumerate(gold):
        near = range(bisect_left(starts, expected.start - longest), bisect_right(starts, expected.end))
        found = next((k for k in near if k in left and agree(expected, predicted[k])), None)
        if found is not None:
            left.remove(found)
            couples[i] = found
    pairs = [(gold[i], predicted[k]) for i, k in couples.items()]
    gold[:] = [span for i, span in enumerate(gold) if i not in couples]
    predicted[:] = [predicted[k] for k in sorted(left)]
    return pairs


def percent(value: float) -> str:
    return f"{100 * value:.2f}"


def _cells(score: Score) -> list[str]:
    ratios = [percent(value) for value in (score.precision, score.recall, score.f1)]
    return [*ratios, str(score.gold), str(score.predicted), str(score.correct)]


def _width(text: str) -> int:
    """The number of terminal columns of a text; Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _aligned(rows: list[list[str]]) -> list[list[str]]:
    """Cells padded with spaces: the first column aligned to the left, numbers to the right."""
    widths = [max(3, *map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        [
            cell + " " * (width - _width(cell)) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
