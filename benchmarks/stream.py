"""Memory and speed over a long stream of sentences.

    python benchmarks/stream.py [--model FOLDER] [--sentences 1000000] [--batch-size 64] [--engine NAME]

The sentences are random and differ from each other: words of the lexicon and common characters; about every
fiftieth item is a random character of Unicode. A cache that grows with the number of different texts, words or
characters therefore shows as growing memory. The stream is generated while it is read, and is not stored.

Resident memory is that of the whole process, including Python and the words from which sentences are made. The
speed excludes the time for generating sentences.
"""

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import hanlattice
from hanlattice.benchmark import COMMON_CHARACTERS
from hanlattice.kernels.allocator import return_freed_memory

FIRST = 10_000  # sentences after which memory should be stable
ITEMS = (6, 24)  # minimum and maximum number of words and characters of a sentence
RARE = 0.02  # share of random characters
SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = [code for code in range(0xA1, 0x30000) if code not in SURROGATES]


class Stream:
    """Random sentences. Counts their characters, and the seconds that generating them takes."""

    def __init__(self, words: list[str], seed: int = 0):
        self.words, self.rng = words, random.Random(seed)
        self.characters, self.seconds = 0, 0.0

    def sentences(self, count: int) -> Iterator[str]:
        """``count`` random sentences."""
        for _ in range(count):
            started = time.perf_counter()
            sentence = "".join(self.item() for _ in range(self.rng.randint(*ITEMS))) + "。"
            self.characters += len(sentence)
            self.seconds += time.perf_counter() - started
            yield sentence

    def item(self) -> str:
        """A random word or character."""
        chance = self.rng.random()
        if chance < RARE:
            return chr(self.rng.choice(CODE_POINTS))
        return self.rng.choice(self.words) if chance < 0.5 else self.rng.choice(COMMON_CHARACTERS)


def resident() -> float:
    """Resident memory of this process in MB, on Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--engine", default="auto", help="engine, as in hanlattice.load")
    options = parser.parse_args()

    return_freed_memory()  # as in `hanlattice predict`, `annotate` and `serve`
    ner = hanlattice.load(options.model, engine=options.engine)
    stream = Stream(list(ner.lexicon))
    print(f"engine {type(ner.engine).__name__}, batches of {options.batch_size}\n")
    print("| sentences | characters | entities | resident MB | characters/s so far |")
    print("|---|---|---|---|---|", flush=True)
    entities, marks, settled = 0, {FIRST, 10 * FIRST, options.sentences // 2, options.sentences}, 0.0
    started = time.perf_counter()
    documents = ner.pipe(stream.sentences(options.sentences), batch_size=options.batch_size)
    for count, document in enumerate(documents, 1):
        entities += len(document.entities)
        if count in marks:
            seconds = time.perf_counter() - started - stream.seconds
            now, rate = resident(), stream.characters / seconds
            settled = settled or now
            print(f"| {count:,} | {stream.characters:,} | {entities:,} | {now:.1f} | {rate:,.0f} |", flush=True)
    print(f"\nmemory at the end / after the first {FIRST:,}: {resident() / settled:.3f}")


if __name__ == "__main__":
    main()
