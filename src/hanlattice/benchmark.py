"""Measurements of a model on this machine: throughput, latency, start-up time and memory."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np

from hanlattice.errors import HanlatticeError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER

# The probability that the next part of a random text is a word of the lexicon, and not a single common character.
# Words have about three characters, so most characters of the text are in words, as in newspapers.
WORD_RATE = 0.35
COMMON_CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后"
)

Tagging = Callable[[str], Any]
"""A function from a text to words with tags."""


@dataclass(frozen=True)
class Throughput:
    """Throughput on texts of ``length`` characters, in batches of ``batch_size`` texts."""

    length: int
    batch_size: int
    characters_per_second: float
    sentences_per_second: float


@dataclass(frozen=True)
class Latency:
    """Milliseconds from a text to its entities: percentiles over texts of ``length`` characters, one per call."""

    length: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class Startup:
    """Start-up time and memory of a new process.

    Attributes:
        first_answer: seconds from the start of the process to the entities of the first text.
        memory: peak memory in MiB when the first text is done.
        memory_in_use: peak memory in MiB when all texts are done.
    """

    first_answer: float
    memory: float
    memory_in_use: float


@dataclass(frozen=True)
class StartRatio:
    """How much longer a process takes to load a model and read a text than ``python -c 'import numpy'``.

    Attributes:
        seconds: processor time from the start of the process until it has read the text, the median of the rounds.
        min: the smallest ratio of a round.
        median: the median of the ratios.
        max: the largest ratio.
    """

    seconds: float
    min: float
    median: float
    max: float


@dataclass(frozen=True)
class SpeedRatio:
    """How many times as fast a model is as another tagger, in processor time.

    Attributes:
        length: characters of each text.
        system: the other tagger.
        characters_per_second: median of the model.
        system_characters_per_second: median of the other tagger.
        min: the smallest ratio of a round; both run in each round, one after the other.
        median: the median of the ratios.
        max: the largest ratio.
    """

    length: int
    system: str
    characters_per_second: float
    system_characters_per_second: float
    min: float
    median: float
    max: float


def random_text(lexicon: Lexicon, characters: int, seed: int = 0) -> str:
    """Generate a text of random words of the lexicon, common characters and full stops."""
    draw = np.random.default_rng(seed)
    words = [word for word, _ in zip(lexicon, range(200_000), strict=False)] or list(COMMON_CHARACTERS)
    parts: list[str] = []
    missing = characters
    while missing > 0:
        word = (
            words[draw.integers(len(words))]
            if draw.random() < WORD_RATE
            else COMMON_CHARACTERS[draw.integers(len(COMMON_CHARACTERS))]
        )
        parts.append("。" if draw.random() < 0.02 else word)
        missing -= len(parts[-1])
    return "".join(parts)[:characters]


def split_text(text: str, length: int, max_texts: int) -> list[str]:
    """Split a text into at most ``max_texts`` texts of exactly ``length`` characters.

    The rest of the text is left out. A text with fewer than ``length`` characters is repeated.
    """
    repeated = text * -(-length // max(len(text), 1))
    return [repeated[i : i + length] for i in range(0, len(repeated) - length + 1, length)][:max_texts]


def measure_throughput(ner: NER, texts: Sequence[str], batch_size: int, seconds: float) -> Throughput:
    """Measure the throughput on texts of equal length: the best of all passes over the texts.

    Args:
        seconds: no pass starts after this time, but one pass is always measured. A shorter warm-up pass is not
            counted.
    """
    best, deadline = float("inf"), time.perf_counter() + seconds
    _time_pass(ner, texts[: 2 * batch_size], batch_size)
    while best == float("inf") or time.perf_counter() < deadline:
        best = min(best, _time_pass(ner, texts, batch_size))
    return Throughput(len(texts[0]), batch_size, sum(map(len, texts)) / best, len(texts) / best)


def _time_pass(ner: NER, texts: Sequence[str], batch_size: int) -> float:
    """Seconds for all texts."""
    start = time.perf_counter()
    for _ in ner.pipe(texts, batch_size=batch_size):
        pass
    return time.perf_counter() - start


def measure_latency(ner: NER, texts: Sequence[str], seconds: float) -> Latency:
    """Measure the latency on texts of equal length, one text per call.

    Args:
        seconds: no call starts after this time, but each text is always read once.
    """
    times, deadline = [], time.perf_counter() + seconds
    for i, text in enumerate(cycle(texts)):
        if i >= len(texts) and time.perf_counter() > deadline:
            break
        start = time.perf_counter()
        ner(text)
        times.append(1e3 * (time.perf_counter() - start))
    return Latency(len(texts[0]), *(float(x) for x in np.percentile(times, (50, 95, 99))))


def _jieba() -> Tagging:
    import jieba
    import jieba.posseg

    jieba.setLogLevel("ERROR")
    lcut: Tagging = jieba.posseg.lcut
    return lcut


def _rjieba() -> Tagging:
    import rjieba

    tag: Tagging = rjieba.tag
    return tag


OTHER_TAGGERS: dict[str, Callable[[], Tagging]] = {"jieba": _jieba, "rjieba": _rjieba}
"""Other taggers by the name of their package: each returns its function from a text to words with tags."""


def other_taggers(names: Sequence[str]) -> dict[str, Tagging]:
    """The functions of other taggers, by their names.

    Raises:
        HanlatticeError: a tagger is unknown or not installed.
    """
    found = {}
    for name in names:
        if name not in OTHER_TAGGERS:
            raise HanlatticeError(f"there is no comparison with {name!r}; it is one of {', '.join(OTHER_TAGGERS)}")
        try:
            found[name] = OTHER_TAGGERS[name]()
        except ImportError:
            raise HanlatticeError(f"the comparison with {name} needs: pip install {name}") from None
    return found


def measure_ratios(
    ner: NER, others: Mapping[str, Tagging], texts: Sequence[str], *, batch_size: int, rounds: int
) -> list[SpeedRatio]:
    """Compare the speed of a model with that of other taggers, on texts of equal length.

    In each round all systems read all texts, one system after another, and only speeds of the same round are
    divided by each other: if the machine is slower for some time, it is slower for all. Times are processor time.
    Before the first round each system reads all texts once.

    Args:
        others: functions from a text to words with tags.
        batch_size: texts that the model reads together; the others read one text per call.
        rounds: how many rounds are measured.
    """

    def read_all(tag: Tagging) -> None:
        for text in texts:
            tag(text)

    def predict() -> None:
        for _ in ner.pipe(texts, batch_size=batch_size):
            pass

    systems: dict[str, Callable[[], None]] = {"": predict}
    systems |= {name: partial(read_all, tag) for name, tag in others.items()}
    for read in systems.values():
        read()
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, read in systems.items():
            start = time.process_time()
            read()
            seconds[name].append(max(time.process_time() - start, 1e-9))
    n = sum(map(len, texts))
    found = []
    for name in others:
        ratios = [other / own for own, other in zip(seconds[""], seconds[name], strict=True)]
        speeds = n / median(seconds[""]), n / median(seconds[name])
        found.append(SpeedRatio(len(texts[0]), name, *speeds, min(ratios), median(ratios), max(ratios)))
    return found


def measures_processes() -> bool:
    """Whether the processor time and memory of a process can be measured; not on Windows."""
    return find_spec("resource") is not None


def measure_startup(settings: dict[str, Any], texts: Iterable[str]) -> Startup:
    """Load a model in a new process, and measure its start-up time and memory.

    Args:
        settings: arguments of :func:`hanlattice.load`, as values that JSON can express.
        texts: the texts that the process reads, at least one.

    Raises:
        ModelError: The process failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", "from hanlattice.benchmark import report_startup; report_startup()"],
        input=json.dumps([time.time(), settings, list(texts)]),
        capture_output=True,
        text=True,
        check=False,
    )
    _refuse_failure(done)
    return Startup(**json.loads(done.stdout))


def measure_start_ratio(settings: dict[str, Any], text: str, rounds: int) -> StartRatio:
    """Compare the start of a process that loads a model and reads one text with ``python -c 'import numpy'``.

    Both run in each round, one after the other, and times are processor time, as in :func:`measure_ratios`. The
    time with numpy includes the end of its process; that of the model ends with the first answer.

    Args:
        settings: arguments of :func:`hanlattice.load`, as values that JSON can express.

    Raises:
        ModelError: the process failed.
    """
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    answer = f"import hanlattice, os; ner = hanlattice.load({arguments}); ner({text!r}); os._exit(0)"
    seconds = [[_processor_time(code) for code in ("import numpy", answer)] for _ in range(rounds)]
    ratios = [own / numpy for numpy, own in seconds]
    return StartRatio(median(own for _, own in seconds), min(ratios), median(ratios), max(ratios))


def _processor_time(code: str) -> float:
    """Seconds of processor time of a Python process that runs ``code``.

    Raises:
        ModelError: the process failed.
    """
    import resource

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = used()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    _refuse_failure(done)
    return used() - before


def _refuse_failure(done: "subprocess.CompletedProcess[str]") -> None:
    """Check that a process succeeded.

    Raises:
        ModelError: the process failed.
    """
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise ModelError(f"the process that measures start-up failed: {reason}")


def report_startup() -> None:
    """The code of the new process: read the task from stdin, write a :class:`Startup` to stdout as JSON."""
    from hanlattice.api import load

    start, settings, texts = json.load(sys.stdin)
    ner = load(**settings)
    ner(texts[0])
    first_answer, memory = time.time() - start, _peak_memory()
    for _ in ner(texts):
        pass
    print(json.dumps(asdict(Startup(first_answer, memory, _peak_memory()))))


def _peak_memory() -> float:
    """The peak memory of this process in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)
