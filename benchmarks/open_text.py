"""What a model with the conventions of the packaged one scores, on text that none of them was trained on.

    HANLATTICE_DATA=… python benchmarks/open_text.py [--model MODEL] [--engine native] [--int8] [--lexicon WORDS]

Strict micro F1 in percent over exact spans and labels, nothing left out. ``wild`` are sentences of today in ten
genres; where three labels are compared, others are left out of gold and answers alike.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.evaluation import Report, evaluate_spans
from hanlattice.pipeline import NER
from hanlattice.spans import Span

THREE = {label: label for label in ("PER", "LOC", "ORG")}
MSRA_TEST = {"NR": "PER", "NS": "LOC", "NT": "ORG"}
NAMED = {"PER.NAM": "PER", "LOC.NAM": "LOC", "GPE.NAM": "LOC", "ORG.NAM": "ORG"}


@dataclass(frozen=True)
class TestSet:
    """A file of annotated text; labels of gold and of answers are renamed, and those without a name left out."""

    title: str
    path: str
    convention: str
    gold: Mapping[str, str] | None = None
    answers: Mapping[str, str] | None = None

    def documents(self) -> list[Document]:
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
    if labels is None:
        return list(spans)
    return [span._replace(label=labels[span.label]) for span in spans if span.label in labels]


def score(
    ner: NER,
    documents: Sequence[Document],
    gold: Mapping[str, str] | None = None,
    answers: Mapping[str, str] | None = None,
) -> Report:
    """Scores of a model on documents, with the labels of both sides renamed."""
    found = [renamed(d.spans, answers) for d in ner.pipe((d.text for d in documents), batch_size=64)]
    return evaluate_spans([renamed(d.spans, gold) for d in documents], found)


def scores(ner: NER, report: Callable[[TestSet, Report], None]) -> None:
    """Score every set whose convention the model has."""
    for test in SETS:
        convention = test.convention if test.convention in ner.conventions else ner.convention
        with ner.using(convention=convention):
            report(test, score(ner, test.documents(), test.gold, test.answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged one)")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--lexicon", nargs="*", default=[], help="word lists that are added as a user adds them")
    a = parser.parse_args()
    ner = hanlattice.load(a.model, engine=a.engine, int8=a.int8 or None)
    for path in a.lexicon:
        ner.lexicon.update(path)
    print("| text | convention | gold | P | R | F1 |\n|---|---|---|---|---|---|")

    def report(test: TestSet, scored: Report) -> None:
        m = scored.micro
        figures = " | ".join(f"{100 * value:.2f}" for value in (m.precision, m.recall, m.f1))
        print(f"| {test.title} | {test.convention} | {m.gold:,} | {figures} |", flush=True)

    scores(ner, report)


if __name__ == "__main__":
    main()
