"""Gold entities that a model cannot predict, whatever its weights. They give an upper bound on its recall."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hanlattice.decoders.structs.spans import largest_flat
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError
from hanlattice.evaluation.scores import Recall, Report
from hanlattice.pipeline import BATCH_SIZE, NER
from hanlattice.spans import Span

if TYPE_CHECKING:
    from hanlattice.tagger import Tagger


def unreachable(ner: NER, texts: Sequence[str], gold: Sequence[Collection[Span]]) -> Iterator[list[Span]]:
    """For each text, the gold spans that no prediction of the model can contain together with the other gold spans.

    A span is unreachable if the decoder cannot express its form, if it begins or ends inside a word that the
    encoder reads as one unit, if normalisation removes its characters, or if the model does not have its label.
    Each text is read whole, so an entity is never counted in two windows.
    """
    for i in range(0, len(texts), BATCH_SIZE):
        yield from _unreachable_in_batch(ner, texts[i : i + BATCH_SIZE], gold[i : i + BATCH_SIZE])


def _unreachable_in_batch(ner: NER, texts: Sequence[str], gold: Sequence[Collection[Span]]) -> list[list[Span]]:
    normalised = [ner.normaliser(text) for text in texts]
    # Pairs of a span of the normalised text and the span of the text as given.
    pairs = [
        [(span.mapped(n.normalised), span) for span in spans] for n, spans in zip(normalised, gold, strict=True)
    ]
    known = [[s for s, _ in row if s.start < s.end and s.label in ner.labels] for row in pairs]
    try:
        tagger = ner.tagger
    except HanlatticeError:  # engines without torch run decoders of tags only, over characters
        reachable = [Counter(largest_flat([s for s in spans if not s.gaps])) for spans in known]
    else:
        reachable = _reachable(ner, tagger, [n.text for n in normalised], known)
    rows = zip(reachable, pairs, strict=True)
    return [[span for inner, span in row if not _take_one(counts, inner)] for counts, row in rows]


def _reachable(
    ner: NER, tagger: "Tagger", texts: Sequence[str], known: Sequence[Collection[Span]]
) -> list[Counter[Span]]:
    """The spans of each normalised text that the tagger can predict together."""
    from hanlattice.inputs.batch import collate  # here, because other engines are scored without torch

    encoded = ner.reader.read(texts, ner.active_lexicon)
    nonempty = [i for i, sentence in enumerate(encoded) if len(sentence)]
    reachable = [Counter[Span]() for _ in texts]
    if nonempty:
        batch = collate([encoded[i] for i in nonempty]).to(tagger.device)
        lost_spans = tagger.unreachable(batch, [known[i] for i in nonempty], ner.head)
        for i, lost in zip(nonempty, lost_spans, strict=True):
            reachable[i] = Counter(known[i]) - Counter(lost)
    return reachable


def _take_one(counts: Counter[Span], span: Span) -> bool:
    """Take one occurrence of the span out of the counts; False if there was none left."""
    counts[span] -= 1
    return counts[span] >= 0


def described(documents: Iterable[Document], spans: Iterable[Collection[Span]]) -> Iterator[str]:
    """Each span of each document in one line, such as ``dev.jsonl:3: LOC '重庆'``; an unknown place is left out."""
    for document, of_document in zip(documents, spans, strict=True):
        meta = document.meta
        where = ":".join(str(meta[key]) for key in ("@file", "@line") if meta.get(key) is not None)
        for span in of_document:
            yield f"{where}: {span.label} {document.text[span.start : span.end]!r}".removeprefix(": ")


def with_upper_bound(report: Report, n_unreachable: int) -> Report:
    """The report with the upper bound on recall among its ``forms``, if that is below 1."""
    if not n_unreachable:
        return report
    gold = report.micro.gold
    return replace(report, forms={**report.forms, "reachable": Recall(gold, gold - n_unreachable)})
