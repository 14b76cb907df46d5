"""The tags of some labels in a scheme, as indices of score tensors."""

from collections.abc import Collection, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.spans import ScoredSpan, Span, allowed_transitions, from_tags, tag_names, to_tags
from hanlattice.structs.linear_chain import Chain, segment_probability, viterbi


class TagSet(nn.Module):
    """``names`` of the tags, O first after ``extra`` nameless ones that are read like O.

    ``start``, ``pair`` and ``end`` are 0 where the scheme allows a tag to begin a text, follow another (from, to)
    and end a text, and minus infinity where it does not; all 0 unless ``constrained``.
    """

    start: Float[Tensor, "Y"]
    pair: Float[Tensor, "Y Y"]
    end: Float[Tensor, "Y"]
    joined: Bool[Tensor, "Y Y"]
    of_label: Bool[Tensor, "T Y"]
    begins: Bool[Tensor, "Y"]

    def __init__(self, labels: Sequence[str], scheme: str, *, constrained: bool, extra: int = 0):
        super().__init__()
        self.labels, self.scheme = tuple(labels), scheme
        self.names = [f"<{i}>" for i in range(extra)] + tag_names(labels, scheme)
        self.id_of = {tag: i for i, tag in enumerate(self.names)}
        self._read_as = ["O" if i < extra else tag for i, tag in enumerate(self.names)]
        rules = allowed_transitions(self._read_as, scheme)
        for name, rule in zip(("start", "pair", "end"), rules, strict=True):
            forbidden = ~torch.tensor(rule) & constrained
            self._fixed(name, torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf))
        # Which neighbouring tags are read as one entity, and which tags belong to which label.
        joined = [[Span(0, 2, b[2:]) in from_tags([a, b], scheme) for b in self._read_as] for a in self._read_as]
        of_label = [[Span(0, 1, x) in from_tags([tag], scheme) for tag in self._read_as] for x in self.labels]
        self._fixed("joined", torch.tensor(joined))
        self._fixed("of_label", torch.tensor(of_label).view(-1, len(self.names)))
        self._fixed("begins", torch.tensor([tag[0] in "BSU" for tag in self._read_as]))

    def _fixed(self, name: str, value: Tensor) -> None:
        self.register_buffer(name, value, persistent=False)

    def __len__(self) -> int:
        return len(self.names)

    def targets(self, gold: Sequence[Collection[Span]], n: int) -> Int[Tensor, "B N"]:
        """Ids of the gold tags.

        Raises:
            ValueError: entities of a sentence overlap, which tags cannot express.
        """
        rows = [[self.id_of[tag] for tag in to_tags(spans, n, self.scheme)] for spans in gold]
        return torch.tensor(rows) if n else torch.zeros((len(rows), 0), dtype=torch.long)

    def spans(self, tags: Int[Tensor, "B N"], lengths: Sequence[int]) -> list[list[Span]]:
        """What the tags of each sentence express."""
        rows = zip(tags.tolist(), lengths, strict=True)
        return [from_tags([self._read_as[i] for i in row[:n]], self.scheme) for row, n in rows]

    def best(self, chain: Chain) -> list[list[ScoredSpan]]:
        """The spans of the best sequence, each with its probability: see :meth:`confidence`."""
        found = self.spans(viterbi(chain)[0], chain.mask.sum(1).tolist())
        confidence = iter(self.confidence(chain, found))
        return [[ScoredSpan.of(span, next(confidence)) for span in spans] for spans in found]

    def confidence(self, chain: Chain, found: Sequence[Sequence[Span]]) -> list[float]:
        """The probability, over all sequences, that just these characters are tagged so, span by span."""
        label_id = {label: i for i, label in enumerate(self.labels)}
        places = [(b, s.start, s.end, label_id[s.label]) for b, spans in enumerate(found) for s in spans]
        sentence, start, end, label = (
            torch.tensor(places, dtype=torch.long, device=chain.mask.device).view(-1, 4).unbind(1)
        )
        p = segment_probability(chain, self.joined, sentence, start, end, self.of_label[label])
        confidence: list[float] = p.clamp(0, 1).tolist()
        return confidence
