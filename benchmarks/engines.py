"""What each engine finds and how fast, beside jieba.posseg, in one process and on one thread.

    python benchmarks/engines.py [--model FOLDER] [--corpus FILE] [--rename NR=PER,NS=LOC,NT=ORG] [--batch-size 64]

From raw text to entities. The engines take turns on the same sentences, and every figure is the median over the
rounds of a ratio within one round, so that a machine that is slower for a while is so for all. jieba.posseg (the
extra ``dev``) segments and tags words, which is what people use who need names at little cost; its speed is 1.
Without a corpus the text is made up, and there is no F1. Times are those of the processor, not of the clock.
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
    "ONNX Runtime": {"engine": "onnx"},
    "kernels in C": {"engine": "native"},
    "kernels in C, int8": {"engine": "native", "int8": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model that was exported; the packaged one by default")
    parser.add_argument("--corpus", help="scored, and read for the speed")
    parser.add_argument("--rename", default="", help="labels of the corpus as the model names them")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=1000, help="of the corpus, that are timed")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    names = dict(pair.split("=") for pair in options.rename.split(",") if pair)
    documents = list(corpus.read(options.corpus)) if options.corpus else []
    engines = opened(options.model)
    any_engine = next(iter(engines.values()))
    texts = [d.text for d in documents] or split_text(
        random_text(any_engine.lexicon, 40_000), 40, options.sentences
    )
    f1 = {name: score(ner, documents, names) for name, ner in engines.items()} if documents else {}
    some = texts[: options.sentences]
    readers: dict[str, Callable[[], object]] = {
        name: lambda ner=ner: consume(ner.pipe(some, batch_size=options.batch_size))  # type: ignore[misc]
        for name, ner in engines.items()
    }
    readers["jieba.posseg"] = jieba_reader(some)
    ratios = speeds(readers, options.rounds)
    characters = sum(map(len, some))
    print(f"{len(some):,} sentences, {characters:,} characters, batches of {options.batch_size}\n")
    print(f"{'':20}{'F1':>8}{'x jieba.posseg':>16}")
    for name, ratio in ratios.items():
        print(f"{name:20}{f1.get(name, ''):>8}{ratio:16.2f}")


def opened(model: str | None) -> dict[str, hanlattice.NER]:
    """Every engine that can read the model here; why another cannot is said."""
    engines = {}
    for name, settings in ENGINES.items():
        try:
            engines[name] = hanlattice.load(model, threads=1, **settings)  # type: ignore[arg-type]
        except HanlatticeError as error:
            print(f"{name}: {error}")
    if "torch" in engines:
        import torch

        torch.set_num_threads(1)
    return engines


def score(ner: hanlattice.NER, documents: Sequence[Document], names: dict[str, str]) -> str:
    gold = [[Span(s.start, s.end, names.get(s.label, s.label)) for s in d.spans] for d in documents]
    found = [d.spans for d in ner.pipe(d.text for d in documents)]
    return f"{100 * evaluate_spans(gold, found).micro.f1:.2f}"


def jieba_reader(texts: Sequence[str]) -> Callable[[], object]:
    import jieba
    from jieba import posseg

    jieba.setLogLevel(60)
    return lambda: consume(word for text in texts for word in posseg.cut(text))


def consume(stream: Iterable[object]) -> None:
    for _ in stream:
        pass


def speeds(readers: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """How many times as fast as the last reader each is; a first round does not count."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(rounds + 1):
        for name, read in readers.items():
            begin = time.process_time()
            read()
            times[name].append(time.process_time() - begin)
    reference = times[list(readers)[-1]]
    return {name: median(b / a for a, b in zip(own[1:], reference[1:], strict=True)) for name, own in times.items()}


if __name__ == "__main__":
    main()
