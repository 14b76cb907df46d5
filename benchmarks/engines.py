"""F1 and speed of each engine compared with jieba.posseg, in one process with one thread.

    python benchmarks/engines.py [--model FOLDER] [--corpus FILE] [--rename NR=PER,NS=LOC,NT=ORG] [--batch-size 64]
    python benchmarks/engines.py --engine native --engine "native, int8" --sentences 200

Measures the time from raw text to entities. The engines take turns with the same sentences, and every figure is the
median over the rounds of a ratio within one round, so changes in the load of the machine affect all engines alike.
jieba.posseg (extra ``bench``), a common fast way to find names, segments and tags words; its speed is 1. Without a
corpus the text is generated, and there is no F1. Times are CPU times.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hanlattice
from hanlattice import corpus
from hanlattice.benchmark import random_text, split_text
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.spans import Span

ENGINES = {
    "torch": {"engine": "torch"},
    "numpy": {"engine": "numpy"},
    "onnx": {"engine": "onnx"},
    "native": {"engine": "native"},
    "native, int8": {"engine": "native", "int8": True},
    "ensemble": {"engine": "ensemble"},
    "ensemble, int8": {"engine": "ensemble", "int8": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of an exported model (default: the packaged model)")
    parser.add_argument("--corpus", help="corpus for the F1 and for the speed")
    parser.add_argument(
        "--rename", default="", help="labels of the corpus and the labels of the model, such as NR=PER"
    )
    parser.add_argument("--engine", action="append", choices=ENGINES, help="engine to measure (default: all)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=1000, help="number of sentences that are timed")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    names = dict(pair.split("=") for pair in options.rename.split(",") if pair)
    documents = list(corpus.read(options.corpus)) if options.corpus else []
    engines = opened(options.model, options.engine or ENGINES)
    any_engine = next(iter(engines.values()))
    texts = [d.text for d in documents] or split_text(
        random_text(any_engine.lexicon, 40_000), 40, options.sentences
    )
    f1 = {name: score(ner, documents, names) for name, ner in engines.items()} if documents else {}
    timed = texts[: options.sentences]
    readers: dict[str, Callable[[], object]] = {
        name: lambda ner=ner: consume(ner.pipe(timed, batch_size=options.batch_size))  # type: ignore[misc]
        for name, ner in engines.items()
    }
    readers["jieba.posseg"] = jieba_reader(timed)
    ratios = speeds(readers, options.rounds)
    characters = sum(map(len, timed))
    print(f"{len(timed):,} sentences, {characters:,} characters, batches of {options.batch_size}\n")
    print(f"{'':20}{'F1':>8}{'x jieba.posseg':>16}")
    for name, ratio in ratios.items():
        print(f"{name:20}{f1.get(name, ''):>8}{ratio:16.2f}")


def opened(model: str | None, names: Iterable[str]) -> dict[str, hanlattice.NER]:
    """The model on each of these engines that can run it; prints why an engine cannot."""
    engines = {}
    for name in names:
        try:
            engines[name] = hanlattice.load(model, threads=1, **ENGINES[name])  # type: ignore[arg-type]
        except HanlatticeError as error:
            print(f"{name}: {error}")
    if "torch" in engines:
        import torch

        torch.set_num_threads(1)
    return engines


def score(ner: hanlattice.NER, documents: Sequence[Document], names: dict[str, str]) -> str:
    """Micro F1 in percent, with the gold labels renamed."""
    gold = [[Span(s.start, s.end, names.get(s.label, s.label)) for s in d.spans] for d in documents]
    found = [d.spans for d in ner.pipe(d.text for d in documents)]
    return f"{100 * evaluate_spans(gold, found).micro.f1:.2f}"


def jieba_reader(texts: Sequence[str]) -> Callable[[], object]:
    """A function that segments and tags the texts with jieba."""
    import jieba
    from jieba import posseg

    jieba.setLogLevel(60)
    return lambda: consume(word for text in texts for word in posseg.cut(text))


def consume(stream: Iterable[object]) -> None:
    """Read an iterable to its end."""
    for _ in stream:
        pass


def speeds(readers: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The speed of each reader relative to the last one; the first round is a warm-up."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds + 1):
        for name, read in readers.items():
            started = time.process_time()
            read()
            times[name].append(time.process_time() - started)
    reference = times[list(readers)[-1]]
    return {name: median(b / a for a, b in zip(own[1:], reference[1:], strict=True)) for name, own in times.items()}


if __name__ == "__main__":
    main()
