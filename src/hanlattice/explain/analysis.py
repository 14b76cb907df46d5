"""Where a model is good and where not: scores of groups of entities, confused types, the course of a training."""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.evaluation.scores import Mistake, Score, Sentences, errors
from hanlattice.files import read_lines
from hanlattice.model.folder import LOG
from hanlattice.spans import Span


class Grouping(NamedTuple):
    """A way to divide entities: ``of(i, span)`` is the place in ``names`` of the group of a span of sentence i.

    It tells of a span whether it is gold or predicted, so that a correct one is in one group as both.
    """

    title: str
    names: Sequence[str]
    of: Callable[[int, Span], int]


def scores_by(grouping: Grouping, gold: Sentences, predicted: Sentences) -> dict[str, Score]:
    """Scores of each group that has a gold or a predicted span, in the order of its names."""
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
    """Groups by the characters of the sentence; ``last`` are the largest numbers of all groups but the last."""
    return Grouping("Characters of the text", _ranges(0, last), lambda i, span: bisect_left(last, len(texts[i])))


def by_entity_length(last: Sequence[int] = (1, 2, 3, 4, 6, 10)) -> Grouping:
    """Groups by the characters of the entity, those in gaps not counted."""
    return Grouping("Characters of the entity", _ranges(1, last), lambda _, span: bisect_left(last, _length(span)))


def by_frequency(
    texts: Sequence[str], seen: Mapping[str, int], last: Sequence[int] = (0, 1, 5, 20, 100)
) -> Grouping:
    """Groups by how often the entity's characters were an entity in training: see :func:`entity_counts`."""
    names = _ranges(0, last)
    return Grouping(
        "Times in training", names, lambda i, span: bisect_left(last, seen.get(_said(texts[i], span), 0))
    )


def by_coverage(words: Sequence[Collection[tuple[int, int]]]) -> Grouping:
    """Groups by what a lexicon has of an entity; ``words`` are the matches ``(start, end)`` of each sentence."""
    names = ("is a word", "made up of words", "partly of words", "holds no word")
    matches = [sorted(set(some)) for some in words]
    return Grouping("In the lexicon, the entity", names, lambda i, span: _coverage(span, matches[i]))


def entity_counts(documents: Iterable[Document]) -> Counter[str]:
    """How often each text is an entity, of whatever label."""
    return Counter("".join(entity.parts) for document in documents for entity in document.entities)


def confusion(gold: Sentences, predicted: Sentences) -> Counter[tuple[str | None, str | None]]:
    """How often each gold label was given each label.

    A gold span counts with the predicted span that was coupled with it (see
    :func:`hanlattice.evaluation.scores.errors`): the same, or else one of the same range, or one that overlaps.
    What is missed was given None, and what is spurious was None.
    """
    gold, predicted = list(gold), list(predicted)
    counts: Counter[tuple[str | None, str | None]] = Counter()
    for expected, found in zip(gold, predicted, strict=True):
        counts.update((span.label, span.label) for span in (Counter(expected) & Counter(found)).elements())
    for mistake in errors(gold, predicted):
        counts[mistake.gold and mistake.gold.label, mistake.predicted and mistake.predicted.label] += 1
    return counts


def is_nested(mistake: Mistake, gold: Collection[Span], predicted: Collection[Span]) -> bool:
    """Whether its gold span overlaps another gold one there, or its predicted span another predicted one."""
    sides = ((mistake.gold, gold), (mistake.predicted, predicted))
    return any(own is not None and any(_overlap(own, other) for other in all_of) for own, all_of in sides)


def _overlap(own: Span, other: Span) -> bool:
    return own != other and own.start < other.end and other.start < own.end


class Epoch(NamedTuple):
    """What the log of a training run says of an epoch; F1 on dev is a fraction, None where it was not measured."""

    epoch: int
    loss: float
    dev_f1: float | None


def learning_curve(folder: str | Path) -> list[Epoch]:
    """The epochs of the run that made a model; none where the folder holds no log, as that of a packaged model.

    Raises:
        DataError: the log is broken.
    """
    path = Path(folder) / LOG
    return list(_epochs(path)) if path.is_file() else []


def _epochs(path: Path) -> Iterator[Epoch]:
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            f1 = row.get("dev_f1")
            yield Epoch(int(row["epoch"]), float(row["loss"]), None if f1 is None else float(f1) / 100)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError("is no line of a training log; train again, or remove the file", path, number) from None


def _ranges(first: int, last: Sequence[int]) -> list[str]:
    starts = [first, *(n + 1 for n in last)]
    closed = [str(b) if a == b else f"{a}–{b}" for a, b in zip(starts, last, strict=False)]
    return [*closed, f"{starts[-1]}+"]


def _length(span: Span) -> int:
    return sum(end - start for start, end in span.fragments)


def _said(text: str, span: Span) -> str:
    return "".join(text[start:end] for start, end in span.fragments)


def _coverage(span: Span, words: Sequence[tuple[int, int]]) -> int:
    inside = [word for word in words if span.start <= word[0] and word[1] <= span.end]
    if (span.start, span.end) in inside:
        return 0
    covered = {at for start, end in inside for at in range(start, end)}
    own = {at for start, end in span.fragments for at in range(start, end)}
    return 3 if not own & covered else 1 if own <= covered else 2
