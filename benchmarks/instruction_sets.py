"""Speed of the C kernels with each instruction set of this processor, in float32 and int8, on one thread.

    python benchmarks/instruction_sets.py [--model FOLDER] [--text FILE] [--rounds 7] [--corpus FILE …]

All take turns with the same texts, in batches of 64. The table has the speed of each compared with float32 and AVX2
(on ARM, with NEON) in the same round: the median and the range over the rounds. FILE has one text per line, and the
first 1,000 are read; without it the texts are generated. Times are CPU times. Each annotated corpus of
``--corpus`` adds a column with the micro F1, and the number of sentences with other entities than the first row.
"""

import argparse
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from unittest import mock

import hanlattice
from hanlattice import corpus
from hanlattice.benchmark import random_text, split_text
from hanlattice.document import Document
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.kernels import library
from hanlattice.spans import Span


def opened(model: str | None, level: str, *, int8: bool) -> hanlattice.NER:
    """The model by the kernels of an instruction set."""
    with mock.patch.object(library, "levels", return_value=[level]):
        library.kernels.cache_clear()
        ner = hanlattice.load(model, engine="native", int8=int8, threads=1)
        ner("预热")
    library.kernels.cache_clear()
    return ner


def seconds(ner: hanlattice.NER, texts: Sequence[str]) -> float:
    """CPU time in which the model reads the texts."""
    start = time.process_time()
    deque(ner.pipe(texts, batch_size=64), maxlen=0)
    return time.process_time() - start


def spans(ner: hanlattice.NER, documents: Sequence[Document]) -> list[list[Span]]:
    """The entities that the model finds in each document."""
    return [list(d.spans) for d in ner.pipe(d.text for d in documents)]


def scored(documents: Sequence[Document], found: list[list[Span]], first: list[list[Span]]) -> str:
    """The micro F1 in percent, and the number of sentences that differ from ``first``."""
    f1 = 100 * evaluate_spans([d.spans for d in documents], found).micro.f1
    return f"{f1:.2f} ({sum(a != b for a, b in zip(found, first, strict=True))})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--text", type=Path, help="texts, one per line")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--corpus", type=Path, nargs="+", default=[], help="annotated corpora for F1")
    a = parser.parse_args()
    models = {
        (level, int8): opened(a.model, level, int8=int8) for level in library.levels() for int8 in (False, True)
    }
    lexicon = next(iter(models.values())).lexicon
    texts = (
        a.text.read_text(encoding="utf-8").splitlines()[:1000]
        if a.text
        else split_text(random_text(lexicon, 40_000), 40, 1000)
    )
    times: dict[tuple[str, bool], list[float]] = {key: [] for key in models}
    for _ in range(a.rounds):
        for key, ner in models.items():
            times[key].append(seconds(ner, texts))
    first = next(iter(times.values()))
    print(f"{len(texts):,} texts, {sum(map(len, texts)):,} characters\n")
    corpora = [list(corpus.read(path)) for path in a.corpus]
    found = {key: [spans(ner, documents) for documents in corpora] for key, ner in models.items()}
    print("| instruction set | numbers | speed |" + "".join(f" F1 {path.stem} |" for path in a.corpus))
    print("|---" * (3 + len(corpora)) + "|")
    for (level, int8), own in times.items():
        f1 = zip(corpora, found[level, int8], next(iter(found.values())), strict=True)
        ratios = [of_first / time for of_first, time in zip(first, own, strict=True)]
        shown = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {level} | {'int8' if int8 else 'float32'} | {shown} |" + "".join(f" {scored(*x)} |" for x in f1))


if __name__ == "__main__":
    main()
