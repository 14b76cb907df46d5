"""Named entities by questions: a text about each label says what to look for."""

from collections.abc import Iterator, Mapping
from math import log
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, gelu, linear

from hanlattice.decoders.base import Decoder, Gold, divide, probability
from hanlattice.decoders.candidates import Found, Surest, places_of, precise
from hanlattice.decoders.structs.pairing import nearest_end, pairs
from hanlattice.decoders.structs.spans import select
from hanlattice.spans import ScoredSpan

# Pairs that are listed at once, and numbers that are formed at once to score them.
LISTED, BLOCK = 1 << 16, 1 << 19


class Queries(nn.Module):
    """A vector for each of some texts, all at once: the mean of a convolution over three characters.

    Characters are told apart by their code points modulo ``buckets``, so a query may hold any.
    """

    codes: Int[Tensor, "T Q"]
    mask: Bool[Tensor, "T Q"]

    def __init__(self, buckets: int, d_query: int):
        super().__init__()
        if buckets < 1:
            raise ValueError(f"buckets must be at least 1, not {buckets}")
        self.letter_table = nn.Embedding(buckets, d_query)
        self.convolution = nn.Conv1d(d_query, d_query, 3, padding=1)
        for name in ("codes", "mask"):
            self.register_buffer(name, None, persistent=False)

    def set(self, texts: list[str]) -> None:
        rows = [torch.tensor([ord(c) % self.letter_table.num_embeddings for c in text]) for text in texts]
        device = self.letter_table.weight.device
        self.codes = nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
        self.mask = nn.utils.rnn.pad_sequence([torch.ones_like(r) for r in rows], batch_first=True).to(device) > 0

    def forward(self) -> Float[Tensor, "T D"]:
        real = self.mask.unsqueeze(-1)
        x = torch.tanh(self.convolution((self.letter_table(self.codes) * real).mT).mT)
        return (x * real).sum(1) / real.sum(1)


class MRC(Decoder):
    r"""Each label is asked for by a query; starts, ends and their match are scored under every query.

    .. math:: s_t(i) = [h_i; 1] \cdot A q_t, \quad e_t(j) = [h_j; 1] \cdot B q_t, \quad
              m_t(i, j) = v \cdot \mathrm{GELU}(U [h_i; h_j; q_t] + b) + c

    where GELU is the usual approximation by tanh.

    After Li et al. 2020, https://aclanthology.org/2020.acl-main.519. There a language model reads the query before
    the text, once for each label; here :class:`Queries` reads it, so a text is read once, and the query's part is
    to make the classifiers. ``queries`` maps labels to any texts; a label without one is its own query.

    The loss is ``start_weight`` times the binary cross-entropy of the starts, ``end_weight`` times that of the ends
    and ``match_weight`` times that of candidates: all pairs of a start with an end at or after it, gold or
    predicted; each is a sum over the sentence. Nested decoding takes the pairs whose start, end and match are all
    above ``threshold``, a probability; flat decoding pairs each start with the nearest end only, asks for the same,
    and keeps the surest of spans that overlap. Of a long text's pairs the surest are kept, see
    :data:`hanlattice.decoders.candidates.PER_CHARACTER`. A span's confidence is the product of its three
    probabilities.

    Raises:
        ValueError: a query is empty, or of a label that does not exist; the threshold is not between 0 and 1.
    """

    def __init__(
        self,
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
    ):
        super().__init__()
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
        self.labels, self.nested = tuple(labels), nested
        self.lowest = log(threshold / (1 - threshold))
        self.weights = (start_weight, end_weight, match_weight)
        self.queries = Queries(buckets, d_query)
        self.ends = nn.Linear(d_query, 2 * (d_in + 1))
        self.parts = nn.Linear(d_in, 2 * d_hidden)
        self.asked = nn.Linear(d_query, d_hidden, bias=False)
        self.match = nn.Linear(d_hidden, 1)
        self.set_queries(queries)

    def set_queries(self, queries: Mapping[str, str]) -> None:
        """Ask for the labels by these texts from now on; a label without one is its own query.

        Raises:
            ValueError: a query is empty, or of a label that does not exist.
        """
        for label, query in queries.items():
            if label not in self.labels:
                raise ValueError(f"there is no label {label!r} to ask for; there are {', '.join(self.labels)}")
            if not query.strip():
                raise ValueError(
                    f"the query of {label!r} is empty: write one, or leave it out for the label itself"
                )
        self.queries.set([queries.get(label, label) for label in self.labels])

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """Of each character the log-odds of a start and of an end for each label, and its parts of a match."""
        classifiers = self.ends(self.queries()).view(2 * len(self.labels), -1)  # starts and ends take turns
        starts_and_ends = linear(h, classifiers[:, :-1], classifiers[:, -1])
        return torch.cat([starts_and_ends, self.parts(h)], -1)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        with torch.autocast(scores.device.type, enabled=False):
            ends, parts = self._split(scores)
            places = places_of(gold, self.labels).to(mask.device)
            sentence, first, last, label = places.unbind(1)
            wanted = torch.zeros_like(ends)
            wanted[0, sentence, label, first] = 1
            wanted[1, sentence, label, last] = 1
            of_ends = binary_cross_entropy_with_logits(ends, wanted, reduction="none")
            of_start, of_end = of_ends.masked_fill(~mask[:, None], 0.0).flatten(1).sum(1)
            candidates = self._to_learn(ends.detach(), wanted > 0, mask, places)
            right = torch.isin(self._keys(candidates, mask), self._keys(places, mask)).to(ends.dtype)
            matches = self._matches(parts, candidates)
            of_match = binary_cross_entropy_with_logits(matches, right, reduction="sum")
        losses = zip(self.weights, (of_start, of_end, of_match), strict=True)
        return torch.stack([weight * loss for weight, loss in losses]).sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        with torch.autocast(scores.device.type, enabled=False):
            ends, parts = self._split(scores)
            p = ends.sigmoid()
            surest = Surest(mask, ends.dtype)
            for places in self._to_read((ends > self.lowest) & mask[:, None]):
                sentence, first, last, label = places.unbind(1)
                p_ends = p[0, sentence, label, first] * p[1, sentence, label, last]
                hopeful = p_ends > surest.floors[sentence]
                places, p_ends = places[hopeful], p_ends[hopeful]
                matches = self._matches(parts, places)
                ranks = p_ends * matches.sigmoid()
                above = (matches > self.lowest) & (ranks > surest.floors[places[:, 0]])
                surest.add(Found(places[above], ranks[above], ranks[above]))
        found = surest.spans(self.labels)
        return [sorted(spans if self.nested else select(spans, nested=False)) for spans in found]

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.ends.parameters(), *self.match.parameters())
        self.lowest /= temperature
        return {"threshold": probability(self.lowest)}

    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "S B T N"], Float[Tensor, "S B N H"]]:
        """Log-odds of starts and of ends, and parts of matches for first and for last characters."""
        n_labels = len(self.labels)
        ends, parts = torch.split(precise(scores), [2 * n_labels, 2 * self.match.in_features], -1)
        by_label = ends.view(*ends.shape[:2], n_labels, 2).permute(3, 0, 2, 1)
        return by_label, torch.stack(parts.chunk(2, -1))

    def _matches(self, parts: Float[Tensor, "S B N H"], places: Int[Tensor, "W 4"]) -> Float[Tensor, "W"]:
        asked = self.asked(self.queries())
        scores = []
        for block in torch.split(places, max(1, BLOCK // self.match.in_features)):
            sentence, first, last, label = block.unbind(1)
            hidden = parts[0, sentence, first] + parts[1, sentence, last] + asked[label]
            # The exact function has kernels that keep memory for every number of rows they ever met.
            scores.append(self.match(gelu(hidden, approximate="tanh")).squeeze(-1))
        return torch.cat(scores)

    def _to_learn(
        self,
        ends: Float[Tensor, "S B T N"],
        gold_ends: Bool[Tensor, "S B T N"],
        mask: Bool[Tensor, "B N"],
        gold: Int[Tensor, "G 4"],
    ) -> Int[Tensor, "W 4"]:
        """All gold pairs, and of the others that start and end where one may the surest."""
        gold_keys = self._keys(gold, mask)
        surest = Surest(mask, ends.dtype)
        for places in self._listed(((ends > self.lowest) & mask[:, None]) | gold_ends):
            sentence, first, last, label = places.unbind(1)
            ranks = torch.minimum(ends[0, sentence, label, first], ends[1, sentence, label, last])
            ranks = ranks.masked_fill(torch.isin(self._keys(places, mask), gold_keys), torch.inf)
            hopeful = ranks > surest.floors[sentence]
            surest.add(Found(places[hopeful], ranks[hopeful], ranks[hopeful]))
        return surest.kept().places

    def _to_read(self, above: Bool[Tensor, "S B T N"]) -> Iterator[Int[Tensor, "W 4"]]:
        """The pairs whose match decides, some at a time."""
        if self.nested:
            yield from self._listed(above)
        else:
            starts, ends = above
            nearest = nearest_end(ends)
            sentence, label, first = at = (starts & (nearest < starts.shape[-1])).nonzero(as_tuple=True)
            yield from torch.split(torch.stack([sentence, first, nearest[at], label], 1), LISTED)

    def _listed(self, above: Bool[Tensor, "S B T N"]) -> Iterator[Int[Tensor, "W 4"]]:
        n_labels = len(self.labels)
        starts, ends = above.flatten(1, 2)
        for block in pairs(starts, ends, LISTED):
            group, first, last = block.unbind(1)
            yield torch.stack([group // n_labels, first, last, group % n_labels], 1)

    def _keys(self, places: Int[Tensor, "W 4"], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "W"]:
        """A number of its own for every place."""
        sentence, first, last, label = places.unbind(1)
        n = mask.shape[1]
        return ((sentence * n + first) * n + last) * len(self.labels) + label
