"""Where the time goes from raw text to entities, stage by stage, in batches of 1, 16 and 64.

    python benchmarks/stages.py [--model FOLDER] [--corpus FILE] [--int8] [--threads 1]

By the kernels in C. Each stage is timed wherever the pipeline calls it; figures are microseconds of the processor a
character, of all threads together, the least of several passes for each stage, and in per cent of their sum.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import hanlattice
from hanlattice import corpus, pipeline
from hanlattice.benchmark import random_text, split_text
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.text.normalise import Normaliser


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model; the packaged one by default")
    parser.add_argument("--corpus", help="read for its texts; invented ones by default")
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
    n = sum(map(len, texts))
    print(f"{len(texts):,} sentences, {n:,} characters; us a character, and per cent\n")
    print(f"{'batch':14}" + "".join(f"{size:>16}" for size in columns))
    for stage in columns[1]:
        cells = (
            f"{times[stage] / n * 1e6:.2f} {100 * times[stage] / times['all']:4.0f} %" for times in columns.values()
        )
        print(f"{stage:14}" + "".join(f"{cell:>16}" for cell in cells))


class Stages:
    """Clocks around what the pipeline calls."""

    def __init__(self, ner: hanlattice.NER):
        self.spent: dict[str, float] = defaultdict(float)
        engine = ner.engine
        assert isinstance(engine, NativeTagger)
        for owner, name, stage in (
            (Normaliser, "all", "normalise"),
            (pipeline, "windows", "cut"),
            (ner.lexicon, "match_batch", "match"),
            (ner.reader, "read", "read"),
            (engine.flat, "read", "encoder"),
            *((chain, "read", "tags") for chain in engine.chains.values()),
        ):
            self._watch(owner, name, stage)

    def _watch(self, owner: Any, name: str, stage: str) -> None:
        whole: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            begin = time.process_time()
            result = whole(*arguments, **named)
            self.spent[stage] += time.process_time() - begin
            return result

        setattr(owner, name, timed)

    def fastest(self, ner: hanlattice.NER, texts: list[str], size: int, rounds: int) -> dict[str, float]:
        """Seconds in each stage, the least of all passes but the first."""
        passes: list[dict[str, float]] = []
        for _ in range(rounds + 1):
            self.spent.clear()
            begin = time.process_time()
            for first in range(0, len(texts), size):
                list(ner.pipe(texts[first : first + size], batch_size=size))
            whole, spent = time.process_time() - begin, dict(self.spent)
            ids = spent.pop("read") - spent["match"]
            passes.append(spent | {"ids": ids, "documents": whole - sum(spent.values()) - ids})
        order = ("normalise", "cut", "match", "ids", "encoder", "tags", "documents")
        least = {stage: min(one[stage] for one in passes[1:]) for stage in order}
        return least | {"all": sum(least.values())}


if __name__ == "__main__":
    main()
