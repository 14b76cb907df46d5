"""What the tags of some labels in a scheme mean: which may follow which, and which spans they express."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from hanlattice.decoders.structs.decoding import Potentials, segment_probability, viterbi
from hanlattice.spans import ScoredSpan, Span, allowed_transitions, from_tags, tag_names

# Types that tags are made for at most: transitions between their tags grow with the square.
LARGEST = 1000


class TagScores(NamedTuple):
    """What a linear chain adds to emissions: for the first tag, for going from one (row) to another (column), and
    for the last; minus infinity where that is forbidden."""

    start: Float[np.ndarray, "Y"]
    pair: Float[np.ndarray, "Y Y"]
    end: Float[np.ndarray, "Y"]


class TagRules:
    """``names`` of the tags, O first after ``extra`` nameless ones that are read like O.

    ``start``, ``pair`` and ``end`` tell which tags may begin a text, follow another (from, to) and end a text;
    ``joined`` which neighbours (before, after) are read as one entity, ``of_label`` which tags belong to which
    label, and ``begins`` which begin an entity.

    Raises:
        ValueError: there are too many labels.
    """

    start: Bool[np.ndarray, "Y"]
    pair: Bool[np.ndarray, "Y Y"]
    end: Bool[np.ndarray, "Y"]
    joined: Bool[np.ndarray, "Y Y"]
    of_label: Bool[np.ndarray, "T Y"]
    begins: Bool[np.ndarray, "Y"]

    def __init__(self, labels: Sequence[str], scheme: str, *, extra: int = 0):
        self.labels, self.scheme = tuple(labels), scheme
        if len(labels) > LARGEST:
            raise ValueError(
                f"{len(labels):,} types are more than the {LARGEST:,} whose transitions between tags are meant to"
                " fit in memory: have fewer types, or a decoder without transitions like 'cascade_pointer'"
            )
        self.names = [f"<{i}>" for i in range(extra)] + tag_names(labels, scheme)
        self._read_as = read_as = ["O" if i < extra else tag for i, tag in enumerate(self.names)]
        self.start, self.pair, self.end = map(np.array, allowed_transitions(read_as, scheme))
        joined = [[Span(0, 2, b[2:]) in from_tags([a, b], scheme) for b in read_as] for a in read_as]
        of_label = [[Span(0, 1, x) in from_tags([tag], scheme) for tag in read_as] for x in self.labels]
        self.joined, self.of_label = np.array(joined), np.array(of_label).reshape(-1, len(read_as))
        self.begins = np.array([tag[0] in "BSU" for tag in read_as])

    def spans(self, tags: Int[np.ndarray, "B N"], lengths: Sequence[int]) -> list[list[Span]]:
        """What the tags of each sentence express."""
        rows = zip(tags.tolist(), lengths, strict=True)
        return [from_tags([self._read_as[i] for i in row[:n]], self.scheme) for row, n in rows]

    def best(self, potentials: Potentials) -> list[list[ScoredSpan]]:
        """The spans of the best sequence, each with its probability: see :meth:`confidence`."""
        found = self.spans(viterbi(potentials)[0], potentials.lengths.tolist())
        confidence = iter(self.confidence(potentials, found))
        return [[ScoredSpan.of(span, next(confidence)) for span in spans] for spans in found]

    def confidence(self, potentials: Potentials, found: Sequence[Sequence[Span]]) -> list[float]:
        """The probability, over all sequences, that just these characters are tagged so, span by span."""
        with_spans = [b for b, spans in enumerate(found) if spans]
        if not with_spans:
            return []
        label_id = {label: i for i, label in enumerate(self.labels)}
        places = [(i, s.start, s.end, label_id[s.label]) for i, b in enumerate(with_spans) for s in found[b]]
        sentence, start, end, label = np.array(places, np.int64).T
        chosen = potentials.of(np.array(with_spans))
        p = segment_probability(chosen, self.joined, sentence, start, end, self.of_label[label])
        confidence: list[float] = p.clip(0, 1).tolist()
        return confidence
