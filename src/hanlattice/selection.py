"""What to annotate next: texts of which a model is unsure, and which differ from one another.

Active learning with a committee of two views (Seung et al. 1992, "Query by committee"): the model reads each text
with its lexicon and without. An entity that both views find adds 1 minus its mean confidence to the uncertainty of
the text. An entity of one view only is a disagreement, and adds its confidence. The next text is the one that adds
most: its uncertainty times the share of its bigrams that no chosen text has (greedy
maximisation of a submodular coverage, as in Wei et al. 2015, "Submodularity in data subset selection and active
learning").
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice, pairwise
from pathlib import Path

from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.files import read_lines
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import BATCH_SIZE, NER

CANDIDATES = 20
"""For each text to choose, the number of the most uncertain texts that are compared with one another."""

LEAST_CANDIDATES = 1000
_TEXT_FILES = (".txt", ".text")


@dataclass(frozen=True)
class Selected:
    """A chosen text with the entities that the model finds, and the model's uncertainty about it."""

    document: Document
    uncertainty: float


def read_pool(paths: Iterable[str | Path]) -> Iterator[Document]:
    """The documents of files: one text per line of .txt files, else any format of :mod:`hanlattice.corpus`.

    Blank lines are skipped.

    Raises:
        DataError: a file cannot be read.
    """
    for path in paths:
        if str(path).lower().endswith(_TEXT_FILES):
            yield from (Document(line) for line in read_lines(path) if line.strip())
        else:
            yield from corpus.read(path)


def select(ner: NER, pool: Iterable[Document], n: int, *, batch_size: int = BATCH_SIZE) -> list[Selected]:
    """Choose texts to annotate, the most useful first.

    The pool is read once and not kept: only the most uncertain ``max(20 * n, 1000)`` texts are.

    Args:
        ner: the model that will be trained again with the annotated texts.
        pool: unannotated documents; entities in them are ignored, and texts that repeat count once.
        n: number of texts to choose; all are returned if there are fewer.
        batch_size: texts that the model reads together.

    Raises:
        HanlatticeError: ``n`` is less than 1.
        DataError: the pool has no text.
    """
    if n < 1:
        raise HanlatticeError(f"the number of texts to choose must be at least 1, not {n}")
    most = max(CANDIDATES * n, LEAST_CANDIDATES)
    order = count()  # of two equally uncertain texts the earlier one is kept
    kept: list[tuple[float, int, Document]] = []
    for document, uncertainty in _rated(ner, pool, batch_size):
        row = (uncertainty, -next(order), document)
        if len(kept) < most:
            heapq.heappush(kept, row)
        else:
            heapq.heappushpop(kept, row)
    if not kept:
        raise DataError("the pool has no text to choose from")
    return list(
        _chosen([Selected(document, uncertainty) for uncertainty, _, document in sorted(kept, reverse=True)], n)
    )


def _rated(ner: NER, pool: Iterable[Document], batch_size: int) -> Iterator[tuple[Document, float]]:
    """Each distinct text with predicted entities, and its uncertainty."""
    seen: set[int] = set()
    source = iter(pool)
    without = Lexicon()
    while part := list(islice(source, batch_size * 16)):
        fresh = []
        for document in part:
            if document.text.strip() and (key := hash(document.text)) not in seen:
                seen.add(key)
                fresh.append(document)
        texts = [document.text for document in fresh]
        found = [document.entities for document in ner.pipe(texts, batch_size=batch_size)]
        with ner.using(lexicon=without):
            others = ner.pipe(texts, batch_size=batch_size)
        for document, entities, other in zip(fresh, found, others, strict=True):
            yield replace(document, entities=entities), uncertainty(entities, other.entities, len(document.text))


def uncertainty(first: Sequence[Entity], second: Sequence[Entity], length: int) -> float:
    """The expected number of doubtful entities of a text, per square root of its characters.

    The root keeps long texts, which have more entities and cost more to annotate, from always coming first.

    Args:
        first: the entities of one view, with scores.
        second: those of the other view.
        length: characters of the text.
    """
    views: tuple[Mapping[object, float], ...] = tuple(
        {entity.span: 1.0 if entity.score is None else entity.score for entity in view} for view in (first, second)
    )
    both = views[0].keys() & views[1].keys()
    doubt = sum(1 - (views[0][span] + views[1][span]) / 2 for span in both)
    doubt += sum(view[span] for view in views for span in view.keys() - both)
    return doubt / max(length, 1) ** 0.5


def _chosen(candidates: Sequence[Selected], n: int) -> Iterator[Selected]:
    """Greedy choice. Gains only shrink, so the heap holds upper bounds and few gains are computed again."""
    bigrams = [_bigrams(candidate.document.text) for candidate in candidates]
    covered: set[str] = set()

    def gain(i: int) -> float:
        new = len(bigrams[i] - covered) / len(bigrams[i])
        return (candidates[i].uncertainty + 1e-6) * new  # texts without any doubt are chosen by what is new in them

    heap = [(-gain(i), i) for i in range(len(candidates))]
    heapq.heapify(heap)
    for _ in range(min(n, len(candidates))):
        while True:
            i = heapq.heappop(heap)[1]
            now = -gain(i)
            if not heap or (now, i) <= heap[0]:
                break
            heapq.heappush(heap, (now, i))
        covered |= bigrams[i]
        yield candidates[i]


def _bigrams(text: str) -> frozenset[str]:
    """The bigrams of a text, with one that marks its start, so that no text is without."""
    return frozenset(a + b for a, b in pairwise(f"^{text}"))
