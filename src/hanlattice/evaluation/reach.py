"""Gold entities that a model can never find, whatever it learns: its ceiling on a corpus."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hanlattice.document import Document
from hanlattice.errors import HanlatticeError
from hanlattice.evaluation.scores import Recall, Report
from hanlattice.pipeline import BATCH, NER
from hanlattice.spans import Span

if TYPE_CHECKING:
    from hanlattice.tagger import Tagger


def out_of_reach(ner: NER, texts: Sequence[str], gold: Sequence[Collection[Span]]) -> Iterator[list[Span]]:
    """Of each text the gold spans that no answer of the model can hold beside the others, in order.

    They are of a form that its decoder cannot express, begin or end inside a word that its encoder reads whole, are
    of characters that its normalisation takes away, or of a label that it does not know. Each text is read whole,
    so no entity counts in two windows. An exported model does not tell, and of it there are none.
    """
    try:
        tagger = ner.tagger
    except HanlatticeError:
        yield from ([] for _ in texts)
        return
    for i in range(0, len(texts), BATCH):
        yield from _of_batch(ner, tagger, texts[i : i + BATCH], gold[i : i + BATCH])


def _of_batch(
    ner: NER, tagger: "Tagger", texts: Sequence[str], gold: Sequence[Collection[Span]]
) -> list[list[Span]]:
    from hanlattice.inputs.batch import collate  # an exported model is scored where there is no torch

    plain = [ner.normaliser(text) for text in texts]
    read = [[(span.mapped(p.normalised), span) for span in spans] for p, spans in zip(plain, gold, strict=True)]
    known = [[s for s, _ in pairs if s.start < s.end and s.label in ner.labels] for pairs in read]
    encoded = ner.reader.read([p.text for p in plain], ner.lexicon)
    full = [i for i, sentence in enumerate(encoded) if len(sentence)]
    found = [Counter[Span]() for _ in texts]
    if full:
        batch = collate([encoded[i] for i in full]).to(tagger.device)
        unreachable = tagger.unreachable(batch, [known[i] for i in full], ner.head)
        for i, lost in zip(full, unreachable, strict=True):
            found[i] = Counter(known[i]) - Counter(lost)
    rows = zip(found, read, strict=True)
    return [[span for inner, span in pairs if not _taken(within, inner)] for within, pairs in rows]


def _taken(counts: Counter[Span], span: Span) -> bool:
    """Whether there was still one of it, which now there is no more."""
    counts[span] -= 1
    return counts[span] >= 0


def named(documents: Iterable[Document], lost: Iterable[Collection[Span]]) -> Iterator[str]:
    """Each of the spans with the place of its document, as far as that is known."""
    for document, spans in zip(documents, lost, strict=True):
        meta = document.meta
        where = ":".join(str(meta[key]) for key in ("@file", "@line") if meta.get(key) is not None)
        for span in spans:
            yield f"{where}: {span.label} {document.text[span.start : span.end]!r}".removeprefix(": ")


def with_ceiling(report: Report, n_lost: int) -> Report:
    """The report with what share of its gold spans is within reach, where that is not all of them."""
    gold = report.micro.gold
    return replace(report, forms={**report.forms, "reachable": Recall(gold, gold - n_lost)}) if n_lost else report
