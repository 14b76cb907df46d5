"""Speed of training and prediction against the batch size, for encoders that read words.

Time is processor time. In each round, every system with every batch size trains on the same sentences and predicts
the same texts, one after another, and is divided by the first system with the first batch size in the same round.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from experiments.arms import Setup
from experiments.tables import markdown
from hanlattice.comparison.speed import TimedSystem
from hanlattice.config.settings import Config
from hanlattice.kernels.allocator import keep_freed_memory

SYSTEMS = ("equal/flat", "equal/lattice_lstm", "equal/lr_cnn", "equal/lgn", "equal/cgn")
SIZES = (1, 4, 16, 64)
ROUNDS = 3
SENTENCES = 128  # if the user gives no number

Speeds = dict[str, dict[int, tuple[list[float], list[float]]]]  # train and predict, of each round


def measured(
    systems: Mapping[str, Config], sentences: int, sizes: Sequence[int], rounds: int, say: Callable[[str], None]
) -> Speeds:
    """The speeds of every system and batch size in each round, after a round of warm-up that is not counted."""
    keep_freed_memory()
    timed = {}
    for name, config in systems.items():
        say(f"preparing {name}")
        timed[name] = TimedSystem(config, sentences, sizes, time.process_time)
    speeds: Speeds = {name: {size: ([], []) for size in sizes} for name in systems}
    for i in range(rounds + 1):
        say(f"round {i} of {rounds}" if i else "warming up")
        for name, system in timed.items():
            for size in sizes:
                pair = system.train(size), system.predict(size)
                if i:
                    for values, value in zip(speeds[name][size], pair, strict=True):
                        values.append(value)
    return speeds


def table(speeds: Speeds, which: int) -> str:
    """Medians over the rounds of the ratios to the first system with the first batch size.

    Args:
        which: 0 for training, 1 for prediction.
    """
    first = next(iter(speeds.values()))
    sizes = list(first)
    unit = first[sizes[0]][which]

    def ratio(values: Sequence[float]) -> str:
        return f"{median(a / b for a, b in zip(values, unit, strict=True)):.2f}"

    rows = ([name, *(ratio(own[size][which]) for size in sizes)] for name, own in speeds.items())
    return markdown(["encoder", *(f"batch {size}" for size in sizes)], rows)


def report(setup: Setup, say: Callable[[str], None]) -> str:
    """Two tables: training and prediction; a batch has at most as many sentences as there are."""
    systems = {name: setup.config(name) for name in setup.systems or SYSTEMS}
    n = setup.sentences or SENTENCES
    speeds = measured(systems, n, [size for size in SIZES if size <= n], ROUNDS, say)
    return f"Training:\n\n{table(speeds, 0)}\nPrediction:\n\n{table(speeds, 1)}"
