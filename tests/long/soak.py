"""The service under load for an hour: the memory of its workers must not grow.

    python tests/long/soak.py [--minutes 60] [--clients 4] [--pause 0.0]

Clients send right requests over the loopback interface: texts of all lengths, batches, words and conventions,
explanations, lexicons that are stored, replaced and removed. All answers are checked (`right_requests.py`). Every
ten seconds the resident memory of the workers is noted. After the first ten minutes a straight line is fitted to
it; the test fails when the line rises by more than 5 % of its start in an hour, when an answer is wrong, when a
worker dies, or when a traceback is in the log.
"""

import argparse
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from long.progress import Progress, cpu_seconds
from long.requests import faults, memory
from long.right_requests import Session
from served import serving

EVERY, WARM_UP, GROWTH = 10.0, 600.0, 0.05
CONNECTIONS = 2  # of each client, so that it meets both workers


class Client(threading.Thread):
    """A client that sends requests one after the other, and counts outcomes and failures."""

    def __init__(self, url: str, schema: dict[str, Any], seed: int, until: float, pause: float):
        super().__init__()
        self.url, self.schema, self.seed, self.until, self.pause = url, schema, seed, until, pause
        self.outcomes = Counter[str]()
        self.failures: list[str] = []

    def run(self) -> None:
        draw = np.random.default_rng([2031, self.seed])
        with ExitStack() as stack:
            connections = [
                stack.enter_context(httpx2.Client(base_url=self.url, timeout=60)) for _ in range(CONNECTIONS)
            ]
            session = Session(connections, self.schema, f"client-{self.seed}-")
            while time.monotonic() < self.until:
                try:
                    self.outcomes[session.send(draw)] += 1
                except Exception as error:
                    self.failures.append(f"{type(error).__name__}: {error}"[:500])
                time.sleep(self.pause)


def growth(noted: list[tuple[float, int]]) -> float:
    """The share by which a straight line through seconds and megabytes rises in an hour, of where it starts."""
    slope, level = np.polyfit([t - noted[0][0] for t, _ in noted], [m for _, m in noted], 1)
    return float(3600 * slope / max(level, 1.0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests of a client")
    parser.add_argument("--record", type=Path, default=Path("runs/long/soak.json"), help="file of the result")
    options = parser.parse_args()
    minutes: float = options.minutes
    noted: list[tuple[float, int]] = []
    with serving("--workers", 2, model=tiny.two_conventions()) as served:
        schema, workers = served.client.get("/openapi.json").json(), served.workers
        start = time.monotonic()
        clients = [
            Client(served.url, schema, i, start + 60 * minutes, options.pause) for i in range(options.clients)
        ]
        for client in clients:
            client.start()
        while any(client.is_alive() for client in clients):
            noted.append((time.monotonic() - start, memory(served)))
            time.sleep(EVERY)
        failures = [failure for client in clients for failure in client.failures] + faults(served, workers)
    after = [(t, m) for t, m in noted if t >= min(WARM_UP, 30 * minutes)]
    if (rise := growth(after)) > GROWTH:
        failures.append(f"memory grows by {rise:.1%} in an hour")
    outcomes = sum((client.outcomes for client in clients), Counter[str]())
    done = outcomes.total() + sum(len(client.failures) for client in clients)
    result = Progress(options.record, done, dict(outcomes), cpu_seconds=cpu_seconds())
    result.failures = list(enumerate(failures))
    result.measured = (
        f"{options.clients} clients for {minutes:g} minutes; memory {noted[0][1]} MB at first, {after[0][1]} MB"
        f" after the warm-up, {noted[-1][1]} MB at the end, {rise:+.1%} an hour by a fitted line"
    )
    result.save()
    print(result.report(), result.measured, *failures[:10], sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
