"""Memory over an endless stream of sentences, and how fast it is read.

python benchmarks/stream.py [--model FOLDER] [--sentences 1000000] [--batch-size 64] [--engine native|onnx|torch]

Every sentence differs from all others: words of the model's own lexicon, all of them in turn by chance, between
characters of which one in fifty is any character of Unicode. So whatever keeps something for every text, word or
character that it meets is caught growing. The stream is made as it is read and kept nowhere.

Resident memory is that of the whole process, with Python and the words of which sentences are made. Characters a
second are of the time outside the making of sentences.
"""

import argparse
import random
import time
from collections.abc import Iterator
from pathlib import Path

import hanlattice
from hanlattice.benchmark import COMMON_CHARACTERS
from hanlattice.kernels.allocator import return_freed_memory

FIRST = 10_000  # sentences after which memory should have found its size
PIECES = (6, 24)  # least and most words and characters of a sentence
RARE = 0.02
SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = [code for code in range(0xA1, 0x30000) if code not in SURROGATES]


class Stream:
    """Random sentences; counts the characters it has given and the time it took to make them."""

    def __init__(self, words: list[str], seed: int = 0):
        self.words, self.draw = words, random.Random(seed)
        self.characters, self.seconds = 0, 0.0

    def sentences(self, count: int) -> Iterator[str]:
        for _ in range(count):
            began = time.perf_counter()
            sentence = "".join(self.piece() for _ in range(self.draw.randint(*PIECES))) + "。"
            self.characters += len(sentence)
            self.seconds += time.perf_counter() - began
            yield sentence

    def piece(self) -> str:
        chance = self.draw.random()
        if chance < RARE:
            return chr(self.draw.choice(CODE_POINTS))
        return self.draw.choice(self.words) if chance < 0.5 else self.draw.choice(COMMON_CHARACTERS)


def resident() -> float:
    """Megabytes that this process holds, of Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; without one, the packaged model")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--engine", default="auto", help="as of hanlattice.load")
    options = parser.parse_args()

    return_freed_memory()  # as `hanlattice predict`, annotate and serve do
    ner = hanlattice.load(options.model, engine=options.engine)
    stream = Stream(list(ner.lexicon))
    print(f"read by {type(ner.engine).__name__}, in batches of {options.batch_size}\n")
    print("| sentences | characters | entities | resident MB | characters/s so far |")
    print("|---|---|---|---|---|", flush=True)
    entities, marks, settled = 0, {FIRST, 10 * FIRST, options.sentences // 2, options.sentences}, 0.0
    began = time.perf_counter()
    documents = ner.pipe(stream.sentences(options.sentences), batch_size=options.batch_size)
    for count, document in enumerate(documents, 1):
        entities += len(document.entities)
        if count in marks:
            seconds = time.perf_counter() - began - stream.seconds
            now, rate = resident(), stream.characters / seconds
            settled = settled or now
            print(f"| {count:,} | {stream.characters:,} | {entities:,} | {now:.1f} | {rate:,.0f} |", flush=True)
    print(f"\nmemory at the end / after the first {FIRST:,}: {resident() / settled:.3f}")


if __name__ == "__main__":
    main()
