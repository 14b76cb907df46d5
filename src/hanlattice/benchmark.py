"""How fast a model reads on this machine: throughput, latency, start-up time and memory."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from typing import Any

import numpy as np

from hanlattice.errors import ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER

# Of the characters of invented text so many are in words of the lexicon, as about in newspapers.
IN_WORDS = 0.7
COMMON = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后"
)


@dataclass(frozen=True)
class Throughput:
    """Of texts of one length in batches of one size."""

    length: int
    batch_size: int
    characters_per_second: float
    sentences_per_second: float


@dataclass(frozen=True)
class Latency:
    """Milliseconds from one text to its entities, for texts of one length, one after another."""

    length: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Start:
    """Of a process of its own: seconds from its start to the first entities, and its largest memory in MB so far
    and after all texts of the measurement."""

    first_answer: float
    memory: float
    memory_in_use: float


def invented_text(lexicon: Lexicon, characters: int, seed: int = 0) -> str:
    """Words of the lexicon and common characters by chance, with a full stop now and then."""
    draw = np.random.default_rng(seed)
    words = [word for word, _ in zip(lexicon, range(200_000), strict=False)] or list(COMMON)
    pieces: list[str] = []
    missing = characters
    while missing > 0:
        word = (
            words[draw.integers(len(words))] if draw.random() < IN_WORDS / 2 else COMMON[draw.integers(len(COMMON))]
        )
        pieces.append("。" if draw.random() < 0.02 else word)
        missing -= len(pieces[-1])
    return "".join(pieces)[:characters]


def cut(text: str, length: int, most: int) -> list[str]:
    """Pieces of just so many characters, at most so many of them; a short text is read over and over."""
    whole = text * -(-length // max(len(text), 1))
    return [whole[i : i + length] for i in range(0, len(whole) - length + 1, length)][:most]


def throughput(ner: NER, texts: Sequence[str], batch_size: int, seconds: float) -> Throughput:
    """The fastest of several passes over the texts within so many seconds; one before does not count."""
    best, end = float("inf"), time.perf_counter() + seconds
    _read(ner, texts[: 2 * batch_size], batch_size)
    while best == float("inf") or time.perf_counter() < end:
        best = min(best, _read(ner, texts, batch_size))
    return Throughput(len(texts[0]), batch_size, sum(map(len, texts)) / best, len(texts) / best)


def _read(ner: NER, texts: Sequence[str], batch_size: int) -> float:
    begin = time.perf_counter()
    for _ in ner.pipe(texts, batch_size=batch_size):
        pass
    return time.perf_counter() - begin


def latency(ner: NER, texts: Sequence[str], seconds: float) -> Latency:
    """Of single calls within so many seconds, at least one for every text."""
    times, end = [], time.perf_counter() + seconds
    for i, text in enumerate(cycle(texts)):
        if i >= len(texts) and time.perf_counter() > end:
            break
        begin = time.perf_counter()
        ner(text)
        times.append(1e3 * (time.perf_counter() - begin))
    return Latency(len(texts[0]), *(float(x) for x in np.percentile(times, (50, 95, 99))))


def start(settings: dict[str, Any], texts: Iterable[str]) -> Start:
    """In a new process: ``settings`` are those of :func:`hanlattice.load`.

    Raises:
        ModelError: it came to nothing.
    """
    given = json.dumps([time.time(), settings, list(texts)])
    done = subprocess.run(
        [sys.executable, "-c", "from hanlattice.benchmark import report_start; report_start()"],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ModelError(f"a process to measure the start ended with: {done.stderr.strip().splitlines()[-1]}")
    return Start(**json.loads(done.stdout))


def report_start() -> None:
    """What the new process does: reads stdin, prints its :class:`Start`."""
    from hanlattice.api import load

    start, settings, texts = json.load(sys.stdin)
    ner = load(**settings)
    ner(texts[0])
    first, memory = time.time() - start, _memory()
    for _ in ner(texts):
        pass
    print(json.dumps(asdict(Start(first, memory, _memory()))))


def _memory() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
