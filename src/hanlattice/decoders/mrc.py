"""Machine reading comprehension: a text for each label, its query, describes the entities to find."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, linear

from hanlattice.decoders.base import Decoder, Gold, divide, log_odds, probability
from hanlattice.decoders.candidates import Candidates, TopCandidates, at_least_float32, gold_positions
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.pairing import nearest_end, pairs
from hanlattice.decoders.structs.spans import resolve_overlaps
from hanlattice.spans import ScoredSpan

# Pairs of a start and an end in a block, and elements of the hidden layer that are computed at once to score them.
PAIR_BLOCK, HIDDEN_BLOCK = 1 << 16, 1 << 19


class Queries(nn.Module):
    """One vector for each query: a convolution of width 3 over its characters, tanh, and the mean over them.

    A character's row in the embedding table is its code point modulo ``buckets``, so a query may contain any
    character. Notation: T queries, Q characters of the longest one.

    Args:
        buckets: Rows of the embedding table.
        d_query: Width of the vectors.

    Raises:
        ValueError: ``buckets`` is less than 1.
    """

    codes: Int[Tensor, "T Q"]
    mask: Bool[Tensor, "T Q"]

    def __init__(self, buckets: int, d_query: int):
        super().__init__()
        if buckets < 1:
            raise ValueError(f"buckets must be at least 1, not {buckets}")
        self.d_out = d_query
        self.letter_table = nn.Embedding(buckets, d_query)
        self.convolution = nn.Conv1d(d_query, d_query, 3, padding=1)
        for name in ("codes", "mask"):
            self.register_buffer(name, None, persistent=False)

    def set(self, texts: list[str]) -> None:
        """Replace the queries."""
        rows = [torch.tensor([ord(c) % self.letter_table.num_embeddings for c in text]) for text in texts]
        device = self.letter_table.weight.device
        self.codes = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
        self.mask = nn.utils.rnn.pad_sequence([torch.ones_like(r) for r in rows], batch_first=True).to(device) > 0

    def forward(self) -> Float[Tensor, "T D"]:
        """The vectors of the queries."""
        real = self.mask.unsqueeze(-1)
        x = torch.tanh(self.convolution((self.letter_table(self.codes) * real).mT).mT)
        return (x * real).sum(1) / real.sum(1)


class LossWeights(NamedTuple):
    """Weights of the three parts of the loss of :class:`MRC`."""

    starts: float = 1.0
    ends: float = 1.0
    matches: float = 0.1


class StartsEndsMatches(Decoder):
    """Starts, ends and matches of both for each label: the loss and the decoding of :class:`MRC`.

    A subclass gives the scores of starts and ends, and those of pairs. Notation: see :class:`MRC`.

    Args:
        labels: The T entity labels.
        d_hidden: Width of the hidden layer of matches.
        weights: Weights of the parts of the loss.
        threshold: An entity is predicted if the probabilities of its start, its end and their match are all
            above it.
        nested: Whether overlapping spans may be predicted.

    Raises:
        ValueError: The threshold is not between 0 and 1.
    """

    ends: nn.Linear
    match: nn.Linear

    def __init__(
        self, labels: tuple[str, ...], d_hidden: int, weights: LossWeights, threshold: float, nested: bool
    ):
        super().__init__()
        self.labels, self.nested, self.d_hidden = tuple(labels), nested, d_hidden
        self.min_score = log_odds(threshold)
        self.weights = weights

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.ends.parameters(), *self.match.parameters())
        self.min_score /= temperature
        return {"threshold": probability(self.min_score)}

    @abstractmethod
    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "S B T N"], Tensor]:
        """The log-odds of starts and ends, and what :meth:`_matches` reads."""

    @abstractmethod
    def _hidden(self, parts: Tensor) -> Callable[[Int[Tensor, "W 4"]], Float[Tensor, "W H"]]:
        """A function that gives the hidden layer of pairs before its GELU."""

    def _matches(self, parts: Tensor, candidates: Int[Tensor, "W 4"]) -> Float[Tensor, "W"]:
        """The log-odds that the start and the end of each pair belong together."""
        hidden = self._hidden(parts)
        blocks = torch.split(candidates, max(1, HIDDEN_BLOCK // self.d_hidden))
        # Kernels of the exact GELU cache memory for every number of rows that they have seen.
        scores = [self.match(gelu(hidden(block), approximate="tanh")).squeeze(-1) for block in blocks]
        return torch.cat(scores)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        with torch.autocast(scores.device.type, enabled=False):
            ends, parts = self._split(scores)
            entities = gold_positions(gold, self.labels).to(mask.device)
            targets = self._targets(ends, entities)
            end_losses = binary_cross_entropy_with_logits(ends, targets, reduction="none")
            start_loss, end_loss = end_losses.masked_fill(~mask[:, None], 0.0).flatten(1).sum(1)
            candidates = self._training_pairs(ends.detach(), targets > 0, mask, entities)
            correct = torch.isin(self._keys(candidates, mask), self._keys(entities, mask)).to(ends.dtype)
            matches = self._matches(parts, candidates)
            match_loss = binary_cross_entropy_with_logits(matches, correct, reduction="sum")
        return self._weighted(start_loss, end_loss, match_loss) / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N E"],
        second: Float[Tensor, "B N E"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        """Its parts are weighted like those of the loss; the pairs are those of the mean scores of both passes."""
        with torch.autocast(first.device.type, enabled=False):
            (ends, parts), (other_ends, other_parts) = self._split(first), self._split(second)
            entities = gold_positions(gold, self.labels).to(mask.device)
            mean = (ends + other_ends).detach() / 2
            candidates = self._training_pairs(mean, self._targets(mean, entities) > 0, mask, entities)
            cells = divergence.bernoulli(ends, other_ends).masked_fill(~mask[:, None], 0.0)
            matches = (self._matches(each, candidates) for each in (parts, other_parts))
            of_starts, of_ends = cells.flatten(1).sum(1)
            return self._weighted(of_starts, of_ends, divergence.bernoulli(*matches).sum()) / len(mask)

    def _weighted(self, starts: Tensor, ends: Tensor, matches: Tensor) -> Float[Tensor, ""]:
        parts = zip(self.weights, (starts, ends, matches), strict=True)
        return torch.stack([weight * part for weight, part in parts]).sum()

    def _targets(self, ends: Float[Tensor, "S B T N"], gold: Int[Tensor, "G 4"]) -> Float[Tensor, "S B T N"]:
        """1 for the starts and the ends of gold entities, 0 elsewhere."""
        sentence, first, last, label = gold.unbind(1)
        targets = torch.zeros_like(ends)
        targets[0, sentence, label, first] = 1
        targets[1, sentence, label, last] = 1
        return targets

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        with torch.autocast(scores.device.type, enabled=False):
            ends, parts = self._split(scores)
            p = ends.sigmoid()
            top = TopCandidates(mask, ends.dtype)
            for candidates in self._decoding_pairs((ends > self.min_score) & mask[:, None]):
                sentence, first, last, label = candidates.unbind(1)
                p_ends = p[0, sentence, label, first] * p[1, sentence, label, last]
                possible = p_ends > top.min_ranks[sentence]
                candidates, p_ends = candidates[possible], p_ends[possible]
                matches = self._matches(parts, candidates)
                ranks = p_ends * matches.sigmoid()
                above = (matches > self.min_score) & (ranks > top.min_ranks[candidates[:, 0]])
                top.add(Candidates(candidates[above], ranks[above], ranks[above]))
        found = top.spans(self.labels)
        return [resolve_overlaps(spans, nested=self.nested) for spans in found]

    def _training_pairs(
        self,
        ends: Float[Tensor, "S B T N"],
        gold_ends: Bool[Tensor, "S B T N"],
        mask: Bool[Tensor, "B N"],
        gold: Int[Tensor, "G 4"],
    ) -> Int[Tensor, "W 4"]:
        """All gold pairs, and the top candidates of the other pairs of gold or predicted starts and ends."""
        gold_keys = self._keys(gold, mask)
        top = TopCandidates(mask, ends.dtype)
        for candidates in self._blocks(((ends > self.min_score) & mask[:, None]) | gold_ends):
            sentence, first, last, label = candidates.unbind(1)
            ranks = torch.minimum(ends[0, sentence, label, first], ends[1, sentence, label, last])
            ranks = ranks.masked_fill(torch.isin(self._keys(candidates, mask), gold_keys), torch.inf)
            possible = ranks > top.min_ranks[sentence]
            top.add(Candidates(candidates[possible], ranks[possible], ranks[possible]))
        return top.top().positions

    def _decoding_pairs(self, above: Bool[Tensor, "S B T N"]) -> Iterator[Int[Tensor, "W 4"]]:
        """The pairs of predicted starts and ends whose match decides, block by block."""
        if self.nested:
            yield from self._blocks(above)
        else:
            starts, ends = above
            nearest = nearest_end(ends)
            sentence, label, first = index = (starts & (nearest < starts.shape[-1])).nonzero(as_tuple=True)
            yield from torch.split(torch.stack([sentence, first, nearest[index], label], 1), PAIR_BLOCK)

    def _blocks(self, above: Bool[Tensor, "S B T N"]) -> Iterator[Int[Tensor, "W 4"]]:
        """All pairs of a start and an end at or after it, block by block."""
        n_labels = len(self.labels)
        starts, ends = above.flatten(1, 2)
        for block in pairs(starts, ends, PAIR_BLOCK):
            group, first, last = block.unbind(1)
            yield torch.stack([group // n_labels, first, last, group % n_labels], 1)

    def _keys(self, candidates: Int[Tensor, "W 4"], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "W"]:
        """A unique number for each pair."""
        sentence, first, last, label = candidates.unbind(1)
        n = mask.shape[1]
        return ((sentence * n + first) * n + last) * len(self.labels) + label


class MRC(StartsEndsMatches):
    r"""Each label has a query. For it, characters are scored as starts and as ends, and pairs of both as matches.

    .. math:: s_t(i) = [h_i; 1] \cdot A q_t, \quad e_t(j) = [h_j; 1] \cdot B q_t, \quad
              m_t(i, j) = v \cdot \mathrm{GELU}(U [h_i; h_j; q_t] + b) + c

    The method follows Li et al. 2020, https://aclanthology.org/2020.acl-main.519. There a language model reads the
    query before the text, once for each label. Here :class:`Queries` reads the query, and its vector gives the
    weights of the classifiers, so a text is read once. GELU is the usual approximation by tanh.

    The loss is a weighted sum of three binary cross-entropies, each summed over the sentence: of the starts, of the
    ends, and of the matches of pairs of a start and an end at or after it, gold or predicted. Nested decoding finds
    the pairs whose start, end and match are all above the threshold. Flat decoding pairs each start only with the
    nearest end, under the same condition, and keeps the most confident of overlapping spans. In training and in
    decoding only the top pairs of each sentence are kept, see
    :data:`hanlattice.decoders.candidates.MAX_PER_CHARACTER`. A span's confidence is the product of its three
    probabilities.

    Notation: S is 2, starts and ends; H is ``d_hidden``; W is the number of pairs. A pair is a row of sentence,
    first character, last character (inclusive) and label, ``[W, 4]``.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        queries: Reads the queries. Each label is its own query until :meth:`set_queries` is called.
        d_hidden: Width of the hidden layer of matches.
        weights: Weights of the parts of the loss.
        threshold: An entity is predicted if the probabilities of its start, its end and their match are all
            above it.
        nested: Whether overlapping spans may be predicted.

    Raises:
        ValueError: The threshold is not between 0 and 1.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        queries: Queries,
        *,
        d_hidden: int = 128,
        weights: LossWeights = LossWeights(),  # noqa: B008  # immutable
        threshold: float = 0.5,
        nested: bool = True,
    ):
        super().__init__(labels, d_hidden, weights, threshold, nested)
        self.queries = queries
        self.ends = nn.Linear(queries.d_out, 2 * (d_in + 1))
        self.parts = nn.Linear(d_in, 2 * d_hidden)
        self.asked = nn.Linear(queries.d_out, d_hidden, bias=False)
        self.match = nn.Linear(d_hidden, 1)
        self.set_queries({})

    def set_queries(self, queries: Mapping[str, str]) -> None:
        """Replace the queries. A label without one is its own query.

        Raises:
            ValueError: A query is empty, or its label does not exist.
        """
        for label, query in queries.items():
            if label not in self.labels:
                raise ValueError(f"there is no label {label!r} to query; there are {', '.join(self.labels)}")
            if not query.strip():
                raise ValueError(
                    f"the query of {label!r} is empty: write one, or leave it out for the label itself"
                )
        self.queries.set([queries.get(label, label) for label in self.labels])

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character the log-odds of a start and of an end for each label, and its two parts of a match."""
        classifiers = self.ends(self.queries()).view(2 * len(self.labels), -1)  # starts and ends alternate
        starts_and_ends = linear(h, classifiers[:, :-1], classifiers[:, -1])
        return torch.cat([starts_and_ends, self.parts(h)], -1)

    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "S B T N"], Float[Tensor, "S B N H"]]:
        """The log-odds of starts and ends, and the parts of matches of first and last characters."""
        n_labels = len(self.labels)
        ends, parts = torch.split(at_least_float32(scores), [2 * n_labels, 2 * self.match.in_features], -1)
        by_label = ends.view(*ends.shape[:2], n_labels, 2).permute(3, 0, 2, 1)
        return by_label, torch.stack(parts.chunk(2, -1))

    def _hidden(self, parts: Float[Tensor, "S B N H"]) -> Callable[[Int[Tensor, "W 4"]], Float[Tensor, "W H"]]:
        query = self.asked(self.queries())

        def of(pairs: Int[Tensor, "W 4"]) -> Float[Tensor, "W H"]:
            sentence, first, last, label = pairs.unbind(1)
            return parts[0, sentence, first] + parts[1, sentence, last] + query[label]

        return of


class JointMRC(StartsEndsMatches):
    r"""The decoder of the paper: queries are read together with the text.

    The embedding :class:`~hanlattice.embeddings.queried.Queried` does that.

    .. math:: s_t(i) = a \cdot h^t_i, \quad e_t(j) = b \cdot h^t_j, \quad
              m_t(i, j) = v \cdot \mathrm{GELU}(U [h^t_i; h^t_j] + u) + c

    Li et al. 2020, https://aclanthology.org/2020.acl-main.519. The vector :math:`h_i` of a character has T parts of
    equal width; :math:`h^t_i` was read together with the query of label t. All labels share the weights. Loss and
    decoding are those of :class:`MRC`. GELU is the usual approximation by tanh.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels, in the order of the parts.
        d_hidden, weights, threshold, nested: See :class:`StartsEndsMatches`.

    Raises:
        ValueError: The width is not a multiple of T, or the threshold is not between 0 and 1.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_hidden: int = 1536,
        weights: LossWeights = LossWeights(),  # noqa: B008  # immutable
        threshold: float = 0.5,
        nested: bool = True,
    ):
        super().__init__(labels, d_hidden, weights, threshold, nested)
        if d_in % len(self.labels):
            raise ValueError(
                f"its input needs one part for each of the {len(self.labels)} labels, but its width is {d_in}: use"
                " it with the embedding 'queried'"
            )
        width = d_in // len(self.labels)
        self.ends, self.parts = nn.Linear(width, 2), nn.Linear(width, 2 * d_hidden)
        self.match = nn.Linear(d_hidden, 1)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character and label the log-odds of a start and of an end, and the two parts of a match."""
        of_labels = h.unflatten(-1, (len(self.labels), self.ends.in_features))  # [B N T d]
        return torch.cat([self.ends(of_labels), self.parts(of_labels)], -1).flatten(2)

    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "S B T N"], Float[Tensor, "S B N T H"]]:
        of_labels = at_least_float32(scores).unflatten(-1, (len(self.labels), 2 + 2 * self.d_hidden))
        ends, parts = of_labels[..., :2], of_labels[..., 2:]
        return ends.permute(3, 0, 2, 1), torch.stack(parts.chunk(2, -1))

    def _hidden(self, parts: Float[Tensor, "S B N T H"]) -> Callable[[Int[Tensor, "W 4"]], Float[Tensor, "W H"]]:
        def of(pairs: Int[Tensor, "W 4"]) -> Float[Tensor, "W H"]:
            sentence, first, last, label = pairs.unbind(1)
            return parts[0, sentence, first, label] + parts[1, sentence, last, label]

        return of


def build_joint_mrc(
    d_in: int,
    labels: tuple[str, ...],
    *,
    d_hidden: int = 1536,
    start_weight: float = 1.0,
    end_weight: float = 1.0,
    match_weight: float = 0.1,
    threshold: float = 0.5,
    nested: bool = True,
) -> JointMRC:
    """A :class:`JointMRC` by its settings; the weights are :class:`LossWeights`."""
    weights = LossWeights(start_weight, end_weight, match_weight)
    return JointMRC(d_in, labels, d_hidden=d_hidden, weights=weights, threshold=threshold, nested=nested)


def build_mrc(
    d_in: int,
    labels: tuple[str, ...],
    *,
    queries: Mapping[str, str] = MappingProxyType({}),
    d_query: int = 64,
    d_hidden: int = 128,
    buckets: int = 4096,
    start_weight: float = 1.0,
    end_weight: float = 1.0,
    match_weight: float = 0.1,
    threshold: float = 0.5,
    nested: bool = True,
) -> MRC:
    """An :class:`MRC` by its settings.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        queries: A text for each label. A label without one is its own query.
        d_query, buckets: Arguments of :class:`Queries`.
        start_weight, end_weight, match_weight: See :class:`LossWeights`.
        d_hidden, threshold, nested: Arguments of :class:`MRC`.

    Raises:
        ValueError: A query is empty, or its label does not exist, or the threshold is not between 0 and 1.
    """
    # Weights are drawn in the order of construction: changing it changes what a seed gives.
    reader = Queries(buckets, d_query)
    weights = LossWeights(start_weight, end_weight, match_weight)
    decoder = MRC(d_in, labels, reader, d_hidden=d_hidden, weights=weights, threshold=threshold, nested=nested)
    decoder.set_queries(queries)
    return decoder
