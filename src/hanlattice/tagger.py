"""The whole model as a PyTorch module: an embedding, then an encoder, then a decoder."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import torch
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold
from hanlattice.encoders.base import Encoder, WordEncoder
from hanlattice.inputs.batch import Batch, collate
from hanlattice.inputs.encoded import BATCH_SIZE, Encoded, Sentences
from hanlattice.inputs.segmentation import Segments
from hanlattice.spans import ScoredSpan, Span

Outputs = list[tuple[float, Tensor]]
"""Pairs of a weight and vectors ``h [B N D]``: see :meth:`hanlattice.encoders.base.Encoder.outputs`."""


@dataclass(frozen=True)
class ForwardPass:
    """One forward pass of a batch in training.

    Attributes:
        loss: The mean loss per sentence, ``[]``.
        scores: The decoder's scores of each output of the encoder, with its weight.
        decoder, mask, gold: What the loss was computed with.
    """

    loss: Tensor
    scores: Outputs
    decoder: Decoder
    mask: Tensor
    gold: Gold

    def divergence(self, other: "ForwardPass") -> Tensor:
        """How far this pass and another one of the same batch differ: see :meth:`Decoder.divergence`."""
        rows = zip(self.scores, other.scores, strict=True)
        parts = [w * self.decoder.divergence(a, b, self.mask, self.gold) for (w, a), (_, b) in rows]
        return torch.stack(parts).sum()


class Head(nn.Module):
    """One annotation convention of a model: a ``decoder``, and a ``shift [D]`` that is added to the embedding.

    The shift encodes the convention for the encoder; it is initially zero.
    """

    def __init__(self, d_in: int, decoder: Decoder):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(d_in))
        self.decoder = decoder


class Tagger(nn.Module):
    """``tagger(batch)`` returns the decoder's scores. Any embedding, encoder and decoder can be combined.

    Args:
        embedding: maps a batch to ``x [B N D_in]``; its ``d_out`` is D_in.
        encoder: maps ``(x, batch)`` to ``h [B N D]``; its ``d_out`` is D.
        decoder: computes scores, a loss and spans from ``h``, for the default convention.
        conventions: further heads on the same embedding and encoder, for corpora with other annotation conventions.

    In all methods, the convention ``""`` is the default one.
    """

    def __init__(
        self,
        embedding: nn.Module,
        encoder: Encoder,
        decoder: Decoder,
        conventions: Mapping[str, Head] = MappingProxyType({}),
    ):
        super().__init__()
        self.embedding, self.encoder, self.decoder = embedding, encoder, decoder
        self.conventions = nn.ModuleDict(conventions)

    def forward(self, batch: Batch, convention: str = "") -> Tensor:
        head = self.head(convention)
        return self._decoder(head).scores(self.encoder(self._embedded(batch, head), batch))

    def head(self, convention: str) -> Head | None:
        """The head of a convention; None for the default one."""
        return cast(Head, self.conventions[convention]) if convention else None

    def loss(self, batch: Batch, gold: Gold, head: Head | None = None) -> Tensor:
        """The mean loss per sentence, ``[]``: see :meth:`training_pass`."""
        return self.training_pass(batch, gold, head).loss

    def training_pass(
        self,
        batch: Batch,
        gold: Gold,
        head: Head | None = None,
        expand: Callable[[Outputs], Outputs] | None = None,
    ) -> ForwardPass:
        """The loss on the gold spans that the decoder can express, and the scores that it was computed from.

        Args:
            batch: the sentences.
            gold: the spans of each sentence.
            head: the head of the convention that ``gold`` follows; None for the default one.
            expand: gives the vectors for the decoder from the outputs of the encoder; None for the outputs.

        Raises:
            ModelError: a gold span has a label that the decoder was not built for.
        """
        decoder = self._decoder(head)
        decoder.refuse_unknown(gold)
        gold = [decoder.expressible(spans) for spans in gold]
        outputs, mask = self.encoder.outputs(self._embedded(batch, head), batch), self.mask(batch)
        outputs = outputs if expand is None else expand(outputs)
        losses: list[Tensor] = []
        scores: Outputs = []
        for weight, h in outputs:
            scores.append((weight, decoder.scores(h)))
            losses.append(weight * decoder.loss(scores[-1][1], mask, gold))
        loss = losses[0] if len(losses) == 1 else torch.stack(losses).sum()
        return ForwardPass(loss, scores, decoder, mask, gold)

    def _embedded(self, batch: Batch, head: Head | None) -> Tensor:
        x: Tensor = self.embedding(batch)
        return x if head is None else x + head.shift

    def _decoder(self, head: Head | None) -> Decoder:
        return self.decoder if head is None else head.decoder

    @torch.inference_mode()
    def predict(self, batch: Batch, convention: str = "") -> list[list[ScoredSpan]]:
        """The spans of each sentence of a batch, by a convention."""
        return self._decoder(self.head(convention)).decode(self(batch, convention), batch.mask)

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """The spans of each sentence by a convention.

        At most ``batch_size`` sentences of similar size are read together.
        """

        def found(some: Sequence[Encoded]) -> list[list[ScoredSpan]]:
            return self.predict(collate(some).to(self.device), convention)

        return sentences.in_batches(batch_size, found)

    def is_nested(self, convention: str = "") -> bool:
        """Whether a convention can find spans inside other spans."""
        return self._decoder(self.head(convention)).nested

    def mask(self, batch: Batch) -> Tensor:
        """Which of the scored positions are real: characters, or words for a :class:`WordTagger`."""
        return batch.mask

    def unreachable(
        self, batch: Batch, gold: Gold, convention: str = "", head: Head | None = None
    ) -> list[list[Span]]:
        """For each sentence the gold spans that the decoder cannot output, whatever the tagger learns.

        A ``head`` that is none of the tagger's own, such as that of an auxiliary corpus, replaces the convention's.
        """
        decoder = self._decoder(head or self.head(convention))
        return _others(gold, [decoder.reachable(spans) for spans in gold])

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


class WordTagger(Tagger):
    """A tagger whose encoder gives one vector for each word. It finds only entities that consist of whole words.

    Any decoder works; its positions are words instead of characters. Gold entities that begin or end inside
    a word cannot be found, and training ignores them.
    """

    encoder: WordEncoder

    def training_pass(
        self,
        batch: Batch,
        gold: Gold,
        head: Head | None = None,
        expand: Callable[[Outputs], Outputs] | None = None,
    ) -> ForwardPass:
        return super().training_pass(batch, _in_words(self.encoder.words_of(batch), gold), head, expand)

    def mask(self, batch: Batch) -> Tensor:
        return self.encoder.words_of(batch).mask

    @torch.inference_mode()
    def predict(self, batch: Batch, convention: str = "") -> list[list[ScoredSpan]]:
        words = self.encoder.words_of(batch)
        found = self._decoder(self.head(convention)).decode(self(batch, convention), words.mask)
        places = _in_characters(words, [[s.span for s in spans] for spans in found])
        rows = zip(places, found, strict=True)
        return [[ScoredSpan.of(span, s.score) for span, s in zip(*row, strict=True)] for row in rows]

    def unreachable(
        self, batch: Batch, gold: Gold, convention: str = "", head: Head | None = None
    ) -> list[list[Span]]:
        words, decoder = self.encoder.words_of(batch), self._decoder(head or self.head(convention))
        within = [decoder.reachable(spans) for spans in _in_words(words, gold)]
        return _others(gold, _in_characters(words, within))


def _in_words(words: Segments, gold: Gold) -> list[list[Span]]:
    """Spans whose offsets count words, from spans whose offsets count characters.

    Spans that begin or end inside a word are left out.
    """
    in_words = []
    rows = zip(gold, words.head.tolist(), words.tail.tolist(), words.mask.tolist(), strict=True)
    for spans, head, tail, real in rows:
        first = {at: i for i, (at, is_real) in enumerate(zip(head, real, strict=True)) if is_real}
        end = {at + 1: i + 1 for i, (at, is_real) in enumerate(zip(tail, real, strict=True)) if is_real}
        in_words.append(
            [_mapped(s, first, end) for s in spans if all(i in first and j in end for i, j in s.fragments)]
        )
    return in_words


def _in_characters(words: Segments, found: Gold) -> list[list[Span]]:
    """Spans whose offsets count characters, from spans whose offsets count words."""
    rows = zip(found, words.head.tolist(), (words.tail + 1).tolist(), strict=True)
    # A span that ends before word i ends with word i - 1, hence the 0 before the ends.
    return [[_mapped(span, starts, [0, *ends]) for span in spans] for spans, starts, ends in rows]


def _others(gold: Gold, reached: Gold) -> list[list[Span]]:
    """The gold spans that are not in ``reached``."""
    rows = zip(gold, reached, strict=True)
    return [sorted((Counter(spans) - Counter(within)).elements()) for spans, within in rows]


def _mapped(span: Span, starts: Mapping[int, int] | Sequence[int], ends: Mapping[int, int] | Sequence[int]) -> Span:
    """The span with its starts and ends looked up in ``starts`` and ``ends``."""
    return span.mapped(lambda start, end: (starts[start], ends[end]))
