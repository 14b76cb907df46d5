"""The rules of a tag scheme, on arrays: which tags may follow which, and which spans they express."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hanlattice.decoders.structs.decoding import Potentials, segment_probability, viterbi
from hanlattice.spans import ScoredSpan, Span, allowed_transitions, from_tags, joined_pairs, tag_names

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Maximum number of labels. The number of transitions between tags grows with its square.
MAX_LABELS = 1000


class TagScores(NamedTuple):
    """The scores of a linear chain other than emissions; minus infinity for what the scheme does not allow.

    Attributes:
        start: The score of each tag as the first one, ``[Y]``.
        pair: The score of each transition from a tag (row) to the next one (column), ``[Y, Y]``.
        end: The score of each tag as the last one, ``[Y]``.
    """

    start: Float[np.ndarray, Y]
    pair: Float[np.ndarray, "Y Y"]
    end: Float[np.ndarray, Y]


class TagRules:
    """The rules of a scheme for some labels.

    For one label with BMES tags, ``pair`` allows the transitions marked x or J, and ``joined`` is true for J::

                     to  O    B-X  M-X  E-X  S-X
        from  O          x    x    .    .    x
              B-X        .    .    J    J    .
              M-X        .    .    J    J    .
              E-X        x    x    .    .    x
              S-X        x    x    .    .    x

    Args:
        labels: The T entity labels.
        scheme: The tag scheme.
        extra: Number of additional tags without a meaning, which are read as O.

    Attributes:
        names: The names of the Y tags: the additional tags, O, then the tags of the labels.
        start: Whether a text may begin with a tag, ``[Y]``.
        pair: Whether a tag (column) may follow another one (row), ``[Y, Y]``.
        end: Whether a text may end with a tag, ``[Y]``.
        joined: Whether two neighbouring tags (row, then column) belong to one entity, ``[Y, Y]``.
        of_label: Whether a tag belongs to a label, ``[T, Y]``.
        begins: Whether a tag begins an entity, ``[Y]``.

    Raises:
        ValueError: There are more than :data:`MAX_LABELS` labels.
    """

    start: Bool[np.ndarray, Y]
    pair: Bool[np.ndarray, "Y Y"]
    end: Bool[np.ndarray, Y]
    joined: Bool[np.ndarray, "Y Y"]
    of_label: Bool[np.ndarray, "T Y"]
    begins: Bool[np.ndarray, Y]

    def __init__(self, labels: Sequence[str], scheme: str, *, extra: int = 0):
        self.labels, self.scheme = tuple(labels), scheme
        if len(labels) > MAX_LABELS:
            raise ValueError(
                f"{len(labels):,} labels are more than the limit of {MAX_LABELS:,} for a decoder with transitions"
                " between tags: have fewer labels, or a decoder without transitions like 'cascade_pointer'"
            )
        self.names = [f"<{i}>" for i in range(extra)] + tag_names(labels, scheme)
        self._read_as = read_as = ["O" if i < extra else tag for i, tag in enumerate(self.names)]
        self.start, self.pair, self.end = map(np.array, allowed_transitions(read_as, scheme))
        self.joined = np.array(joined_pairs(read_as, scheme))
        of_label = [[tag != "O" and tag[2:] == label for tag in read_as] for label in self.labels]
        self.of_label = np.array(of_label, np.bool_).reshape(-1, len(read_as))
        self.begins = np.array([tag[0] in "BSU" for tag in read_as])

    def spans(self, tags: Int[np.ndarray, "B N"], lengths: Sequence[int]) -> list[list[Span]]:
        """The spans of each sentence.

        Args:
            tags: Ids of the tags, ``[B, N]``.
            lengths: The number of characters of each of the B sentences.
        """
        rows = zip(tags.tolist(), lengths, strict=True)
        return [from_tags([self._read_as[i] for i in row[:n]], self.scheme) for row, n in rows]

    def best(self, potentials: Potentials) -> list[list[ScoredSpan]]:
        """The spans of the best tag sequence of each sentence, with their :meth:`confidence`."""
        found = self.spans(viterbi(potentials)[0], potentials.lengths.tolist())
        confidence = iter(self.confidence(potentials, found))
        return [[ScoredSpan.of(span, next(confidence)) for span in spans] for spans in found]

    def confidence(self, potentials: Potentials, found: Sequence[Sequence[Span]]) -> list[float]:
        """The probability that each span is tagged as exactly this entity, over all tag sequences.

        Args:
            potentials: The scores of the B sentences.
            found: The spans of each sentence.

        Returns:
            One probability per span, in the order of the sentences and their spans.
        """
        with_spans = [b for b, spans in enumerate(found) if spans]
        if not with_spans:
            return []
        label_id = {label: i for i, label in enumerate(self.labels)}
        rows = [(i, s.start, s.end, label_id[s.label]) for i, b in enumerate(with_spans) for s in found[b]]
        sentence, start, end, label = np.array(rows, np.int64).T
        chosen = potentials.of(np.array(with_spans))
        p = segment_probability(chosen, self.joined, sentence, start, end, self.of_label[label])
        confidence: list[float] = p.clip(0, 1).tolist()
        return confidence
