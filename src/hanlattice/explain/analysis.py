"""Analysis of a model's errors: scores by groups of entities, a confusion matrix, and learning curves."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hanlattice.document import Document
from hanlattice.evaluation.scores import Mistake, Score, Sentences, errors
from hanlattice.model.log import read_log
from hanlattice.spans import Span


class Grouping(NamedTuple):
    """A division of entities into named groups.

    ``of(i, span)`` is the index in ``names`` of the group of a span in sentence ``i``. It depends on the span
    alone, not on whether it is gold or predicted, so a correct span is in the same group on both sides.
    """

    title: str
    names: Sequence[str]
    of: Callable[[int, Span], int]


def scores_by(grouping: Grouping, gold: Sentences, predicted: Sentences) -> dict[str, Score]:
    """The score of each group that has gold or predicted spans, in the order of the groups."""
    golds: Counter[int] = Counter()
    founds: Counter[int] = Counter()
    correct: Counter[int] = Counter()
    for i, (expected, found) in enumerate(zip(gold, predicted, strict=True)):
        golds.update(grouping.of(i, span) for span in expected)
        founds.update(grouping.of(i, span) for span in found)
        both = Counter(expected) & Counter(found)
        correct.update(grouping.of(i, span) for span in both.elements())
    groups = enumerate(grouping.names)
    return {name: Score(golds[g], founds[g], correct[g]) for g, name in groups if golds[g] or founds[g]}


def by_sentence_length(texts: Sequence[str], last: Sequence[int] = (10, 20, 30, 50, 100)) -> Grouping:
    """Groups by the length of the sentence; ``last`` has the largest length in each group but the last."""
    return Grouping("Characters of the text", _ranges(0, last), lambda i, span: bisect_left(last, len(texts[i])))


def by_entity_length(last: Sequence[int] = (1, 2, 3, 4, 6, 10)) -> Grouping:
    """Groups by the length of the entity, without its gaps; ``last`` as in :func:`by_sentence_length`."""
    return Grouping("Characters of the entity", _ranges(1, last), lambda _, span: bisect_left(last, _length(span)))


def by_frequency(
    texts: Sequence[str], seen: Mapping[str, int], last: Sequence[int] = (0, 1, 5, 20, 100)
) -> Grouping:
    """Groups by how often the text of the entity was an entity in training, from :func:`entity_counts`."""
    names = _ranges(0, last)
    return Grouping(
        "Times in training", names, lambda i, span: bisect_left(last, seen.get(_text_of(texts[i], span), 0))
    )


def by_coverage(words: Sequence[Collection[tuple[int, int]]]) -> Grouping:
    """Groups by how words of the lexicon cover the entity; ``words`` has the words ``(start, end)`` by sentence."""
    names = ("is a word", "consists of words", "contains words", "contains no word")
    matches = [sorted(set(some)) for some in words]
    return Grouping("In the lexicon, the entity", names, lambda i, span: _coverage(span, matches[i]))


def entity_counts(documents: Iterable[Document]) -> Counter[str]:
    """How often each text is an entity, with any label. Gaps are left out."""
    return Counter("".join(entity.parts) for document in documents for entity in document.entities)


def confusion(gold: Sentences, predicted: Sentences) -> Counter[tuple[str | None, str | None]]:
    """The confusion matrix: how often each pair of gold label and predicted label occurs.

    A gold span is paired with the equal predicted span, or else with one of the same range, or else with one that
    overlaps it; see :func:`hanlattice.evaluation.scores.errors`. The predicted label of a missed span is None, and
    so is the gold label of a spurious span.
    """
    gold, predicted = list(gold), list(predicted)
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for expected, found in zip(gold, predicted, strict=True):
        counts.update((span.label, span.label) for span in (Counter(expected) & Counter(found)).elements())
    for mistake in errors(gold, predicted):
        counts[mistake.gold and mistake.gold.label, mistake.predicted and mistake.predicted.label] += 1
    return counts


def is_nested(mistake: Mistake, gold: Collection[Span], predicted: Collection[Span]) -> bool:
    """Whether the gold span of a mistake overlaps another gold span, or its predicted span another predicted."""
    sides = ((mistake.gold, gold), (mistake.predicted, predicted))
    return any(own is not None and any(_overlap(own, other) for other in all_of) for own, all_of in sides)


def _overlap(own: Span, other: Span) -> bool:
    return own != other and own.start < other.end and other.start < own.end


class Epoch(NamedTuple):
    """An epoch in the log of a training run. ``dev_f1`` is in [0, 1], or None if it was not measured."""

    epoch: int
    loss: float
    dev_f1: float | None


def learning_curve(folder: str | Path) -> list[Epoch]:
    """The epochs of the training run in a model folder; empty if the folder has no log, as with packaged models.

    Raises:
        DataError: the log is broken.
    """
    rows = read_log(Path(folder))
    return [Epoch(row["epoch"], row["loss"], row["dev_f1"] / 100 if "dev_f1" in row else None) for row in rows]


def _ranges(first: int, last: Sequence[int]) -> list[str]:
    """The names of groups such as 0–10, 11–20, 21+."""
    starts = [first, *(n + 1 for n in last)]
    closed = [str(b) if a == b else f"{a}–{b}" for a, b in zip(starts, last, strict=False)]
    return [*closed, f"{starts[-1]}+"]


def _length(span: Span) -> int:
    return sum(end - start for start, end in span.fragments)


def _text_of(text: str, span: Span) -> str:
    return "".join(text[start:end] for start, end in span.fragments)


def _coverage(span: Span, words: Sequence[tuple[int, int]]) -> int:
    """The index of the group of a span, in the order of :func:`by_coverage`, from sorted words."""
    starting_inside = words[bisect_left(words, (span.start,)) : bisect_left(words, (span.end,))]
    inside = [word for word in starting_inside if word[1] <= span.end]
    if (span.start, span.end) in inside:
        return 0
    covered = {at for start, end in inside for at in range(start, end)}
    own = {at for start, end in span.fragments for at in range(start, end)}
    return 3 if not own & covered else 1 if own <= covered else 2
