"""Time of each stage from raw text to entities, with one text per call and in batches of 16 and 64.

    python benchmarks/stages.py [--model FOLDER] [--corpus FILE] [--int8] [--threads 1]

Uses the native engine. The figures are CPU time in microseconds per character, summed over all threads, and the
share in the total in percent. Each figure is the lowest of several passes. The total is measured in passes of its
own, because measuring the stages takes time too.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import hanlattice
from hanlattice import corpus
from hanlattice.benchmark import random_text, split_text
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.pipeline import reading
from hanlattice.text.normalise import Normaliser


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--corpus", help="corpus of the texts (default: generated text)")
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ner = hanlattice.load(options.model, engine="native", threads=options.threads, int8=options.int8)
    texts = [d.text for d in corpus.read(options.corpus)] if options.corpus else []
    texts = (texts or split_text(random_text(ner.lexicon, 40_000), 40, options.sentences))[: options.sentences]
    stages = Stages(ner)
    columns = {size: stages.fastest(ner, texts, size, options.rounds) for size in (1, 16, 64)}
    stages.remove()
    for size, times in columns.items():
        times["all"] = min(seconds(ner, texts, size) for _ in range(options.rounds))
    n = sum(map(len, texts))
    print(f"{len(texts):,} sentences, {n:,} characters; microseconds per character, and percent\n")
    print(f"{'batch':18}" + "".join(f"{size:>16}" for size in columns))
    for stage in columns[1]:
        cells = (
            f"{times[stage] / n * 1e6:.2f} {100 * times[stage] / times['all']:4.0f} %" for times in columns.values()
        )
        print(f"{stage:18}" + "".join(f"{cell:>16}" for cell in cells))


def seconds(ner: hanlattice.NER, texts: list[str], size: int) -> float:
    """The CPU time in which the model reads all texts, ``size`` in a call."""
    started = time.process_time()
    for first in range(0, len(texts), size):
        ner(texts[first]) if size == 1 else list(ner.pipe(texts[first : first + size], batch_size=size))
    return time.process_time() - started


class Stages:
    """Replaces the functions of the stages by functions that measure their time."""

    def __init__(self, ner: hanlattice.NER):
        self.spent: dict[str, float] = defaultdict(float)
        self._originals: list[tuple[Any, str, Callable[..., Any]]] = []
        engine = ner.engine
        assert isinstance(engine, NativeTagger)
        for owner, name, stage in (
            (Normaliser, "all", "normalise"),
            (reading, "windows_of_texts", "cut into windows"),
            (ner.reader, "read", "read"),
            (engine, "find", "encoder and tags"),
        ):
            self._measure(owner, name, stage)

    def _measure(self, owner: Any, name: str, stage: str) -> None:
        """Add the CPU time of the function ``owner.name`` to a stage."""
        original: Callable[..., Any] = getattr(owner, name)
        self._originals.append((owner, name, original))

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.process_time()
            result = original(*arguments, **named)
            self.spent[stage] += time.process_time() - started
            return result

        setattr(owner, name, timed)

    def remove(self) -> None:
        """Put the original functions back."""
        for owner, name, original in self._originals:
            setattr(owner, name, original)

    def fastest(self, ner: hanlattice.NER, texts: list[str], size: int, rounds: int) -> dict[str, float]:
        """The lowest CPU time of each stage in seconds, over all passes after the first."""
        passes: list[dict[str, float]] = []
        for _ in range(rounds + 1):
            self.spent.clear()
            total = seconds(ner, texts, size)
            passes.append(self.spent | {"documents": total - sum(self.spent.values())})
        order = ("normalise", "cut into windows", "read", "encoder and tags", "documents")
        return {stage: min(times[stage] for times in passes[1:]) for stage in order}


if __name__ == "__main__":
    main()
