"""The service under load for an hour: the memory of its workers must not grow.

    python tests/long/soak.py [--minutes 60]

Four clients send texts of all lengths, batches, words of their own, explanations and stored lexicons over the
loopback interface. Every ten seconds the resident memory of the workers is noted. After the first ten minutes a
straight line is fitted to it; the test fails when the line rises by more than 5 % of its start in an hour, or when
a request fails.
"""

import json
import sys
import threading
import time
from pathlib import Path

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from long.progress import Progress, cpu_seconds
from long.requests import memory
from long.texts import text as odd_text
from served import serving

CLIENTS, EVERY, WARM_UP, GROWTH = 4, 10.0, 600.0, 0.05


def client(url: str, seed: int, until: float, failures: list[str], sent: list[int]) -> None:
    """Send requests one after the other."""
    draw = np.random.default_rng(seed)
    with httpx2.Client(base_url=url, timeout=60) as connection:
        while time.monotonic() < until:
            texts = [odd_text(int(draw.integers(1 << 30))) for _ in range(int(draw.choice([1, 1, 1, 8, 64])))]
            body: dict[str, object] = {"text": texts[0]} if len(texts) == 1 else {"texts": texts}
            if draw.random() < 0.2:
                body["words"] = [f"词{int(draw.integers(1000))}甲" for _ in range(5)]
            path = "/v1/entities"
            if draw.random() < 0.05:
                path, body = "/v1/explain", {"text": texts[0][:60] or "李明"}
            try:
                answer = connection.post(path, content=json.dumps(body).encode())
            except httpx2.HTTPError as error:
                failures.append(repr(error))
                continue
            sent[0] += 1
            if answer.status_code >= 500 and answer.status_code not in (503, 504):
                failures.append(f"{path}: {answer.status_code} {answer.text[:200]}")


def main() -> int:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--record", type=Path, default=Path("runs/long/soak.json"), help="file of the result")
    options = parser.parse_args()
    minutes: float = options.minutes
    failures: list[str] = []
    noted: list[tuple[float, int]] = []
    with serving("--workers", 1) as served:
        start = time.monotonic()
        until = start + 60 * minutes
        counts = [[0] for _ in range(CLIENTS)]
        threads = [
            threading.Thread(target=client, args=(served.url, i, until, failures, counts[i]))
            for i in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            noted.append((time.monotonic() - start, memory(served)))
            time.sleep(EVERY)
    after = [(t, m) for t, m in noted if t >= min(WARM_UP, 30 * minutes)]
    slope, level = np.polyfit([t for t, _ in after], [m for _, m in after], 1)
    growth = 3600 * slope / max(level, 1.0)
    requests = sum(c[0] for c in counts)
    result = Progress(options.record, requests, {f"in {minutes:g} minutes": requests}, cpu_seconds=cpu_seconds())
    result.failures = list(enumerate(failures))
    result.measured = (
        f"memory {noted[0][1]} MB at first, {after[0][1]} MB after the warm-up, {noted[-1][1]} MB at the end,"
        f" {growth:+.1%} an hour by a fitted line"
    )
    result.save()
    print(result.report(), result.measured, *failures[:10], sep="\n")
    return int(bool(failures) or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
