"""Scores of the packaged model, or of a model with the same conventions, on held-out text.

    HANLATTICE_DATA=… python benchmarks/open_text.py [--model MODEL] [--int8] [--lexicon WORDS] [--intervals]

Prints strict micro precision, recall and F1 in percent over exact spans and labels. No sentence is left out.
``wild`` consists of contemporary sentences in ten genres. In rows with three labels, entities with other labels are
removed from gold and predictions.
"""

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.config.settings import DEFAULT_CONVENTION
from hanlattice.document import Document
from hanlattice.evaluation.scores import Report, evaluate_spans
from hanlattice.pipeline import NER
from hanlattice.spans import Span

SAMPLES = 2_000
THREE = {label: label for label in ("PER", "LOC", "ORG")}
MSRA_TEST = {"NR": "PER", "NS": "LOC", "NT": "ORG"}
NAMED = {"PER.NAM": "PER", "LOC.NAM": "LOC", "GPE.NAM": "LOC", "ORG.NAM": "ORG"}


@dataclass(frozen=True)
class TestSet:
    """A file of annotated text, and how it is scored.

    Attributes:
        title: name in the table
        path: file below ``$HANLATTICE_DATA/labelled``
        convention: convention in which the model predicts
        gold: new names of the gold labels; entities with other labels are left out; None keeps all
        predicted: the same for predicted labels
    """

    title: str
    path: str
    convention: str
    gold: Mapping[str, str] | None = None
    predicted: Mapping[str, str] | None = None

    def documents(self) -> list[Document]:
        """The documents of the file."""
        return list(corpus.read(Path(os.environ["HANLATTICE_DATA"]) / "labelled" / self.path))


SETS = (
    TestSet("wild dev, three labels", "wild/dev.jsonl", "open", THREE, THREE),
    TestSet("wild dev, six labels", "wild/dev.jsonl", "open"),
    TestSet("MSRA test, three labels", "msra/test4365.char.bmes", "open", MSRA_TEST, THREE),
    TestSet("MSRA test", "msra/test4365.char.bmes", "msra", MSRA_TEST, THREE),
    TestSet("Weibo test, named, three labels", "weibo/weiboNER_2nd_conll.test", "weibo", NAMED, NAMED),
    TestSet("CLUENER dev", "cluener2020/dev.json", "cluener"),
    TestSet("Resume test", "resume/test.char.bmes", "resume"),
)


def renamed(spans: Iterable[Span], labels: Mapping[str, str] | None) -> list[Span]:
    """The spans whose labels are in ``labels``, under the new labels; all spans if ``labels`` is None."""
    if labels is None:
        return list(spans)
    return [span._replace(label=labels[span.label]) for span in spans if span.label in labels]


def interval(gold: Sequence[Sequence[Span]], found: Sequence[Sequence[Span]]) -> tuple[float, float]:
    """The 95 % bootstrap interval of micro F1 in percent, over texts."""
    rows = zip(gold, found, strict=True)
    counts = np.array([((Counter(g) & Counter(f)).total(), len(g) + len(f)) for g, f in rows])
    rng = np.random.default_rng(1)
    sums = (counts[rng.integers(len(counts), size=len(counts))].sum(0) for _ in range(SAMPLES))
    low, high = np.percentile([200 * right / max(both, 1) for right, both in sums], [2.5, 97.5])
    return float(low), float(high)


def score(
    ner: NER,
    documents: Sequence[Document],
    gold: Mapping[str, str] | None = None,
    predicted: Mapping[str, str] | None = None,
) -> Report:
    """Score a model on documents, with gold and predicted labels renamed."""
    found = [renamed(d.spans, predicted) for d in ner.pipe((d.text for d in documents), batch_size=64)]
    return evaluate_spans([renamed(d.spans, gold) for d in documents], found)


def scores(ner: NER, report: Callable[[TestSet, Report], None]) -> None:
    """Score every test set in its convention; a model with one convention of its own reads all of them in it."""
    for test in SETS:
        convention = ner.convention if ner.convention == DEFAULT_CONVENTION else test.convention
        if convention not in ner.conventions:
            continue
        with ner.using(convention=convention):
            report(test, score(ner, test.documents(), test.gold, test.predicted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--lexicon", nargs="*", default=[], help="word lists that are added to the lexicon")
    parser.add_argument("--intervals", action="store_true", help="print 95 %% intervals of F1 instead")
    a = parser.parse_args()
    ner = hanlattice.load(a.model, engine=a.engine, int8=a.int8 or None)
    for path in a.lexicon:
        ner.lexicon.update(path)
    if a.intervals:
        for test in SETS:
            if test.convention in ner.conventions:
                with ner.using(convention=test.convention):
                    documents = test.documents()
                    found = [renamed(d.spans, test.predicted) for d in ner.pipe(d.text for d in documents)]
                low, high = interval([renamed(d.spans, test.gold) for d in documents], found)
                print(f"{test.title}, {test.convention}: {low:.1f} to {high:.1f}", flush=True)
        return
    print("| text | convention | gold | P | R | F1 |\n|---|---|---|---|---|---|")

    def report(test: TestSet, scored: Report) -> None:
        m = scored.micro
        figures = " | ".join(f"{100 * value:.2f}" for value in (m.precision, m.recall, m.f1))
        print(f"| {test.title} | {test.convention} | {m.gold:,} | {figures} |", flush=True)

    scores(ner, report)


if __name__ == "__main__":
    main()
