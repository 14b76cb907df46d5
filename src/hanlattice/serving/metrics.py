"""Prometheus metrics, summed over all workers."""

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from hanlattice.serving.settings import METRICS_FOLDER

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one worker. ``labels`` of all conventions are exported from the start, with 0 entities."""

    def __init__(self, labels: Collection[str]):
        self._registry = registry = CollectorRegistry()
        # The metrics of each route, method and status: a cache, because looking up labels is slow.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._requests = Counter(
            "hanlattice_requests", "Requests by route, method and status.", ["route", "method", "status"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "hanlattice_request_seconds", "From the first byte to the last.", ["route"], buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self.batch_size = Histogram(
            "hanlattice_batch_texts", "Texts that were read together.", buckets=_SIZES, registry=registry
        )
        self.batch_seconds = Histogram(
            "hanlattice_batch_seconds", "Time that the model took for a batch.", buckets=_SECONDS, registry=registry
        )
        self.queue = Gauge(
            "hanlattice_queue_texts", "Texts that wait.", multiprocess_mode="livesum", registry=registry
        )
        self.workers = Gauge(
            "hanlattice_workers", "Workers that are ready.", multiprocess_mode="livesum", registry=registry
        )
        self.characters = Counter("hanlattice_characters", "Characters that were read.", registry=registry)
        self.entities = Counter(
            "hanlattice_entities", "Entities that were found, by label.", ["label"], registry=registry
        )
        for label in labels:
            self.entities.labels(label)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        key = (route, method, status)
        if key not in self._children:
            self._children[key] = self._requests.labels(route, method, str(status)), self._seconds.labels(route)
        requests, histogram = self._children[key]
        requests.inc()
        histogram.observe(seconds)

    def observe_batch(self, size: int, seconds: float) -> None:
        self.batch_size.observe(size)
        self.batch_seconds.observe(seconds)

    def count_entities(self, labels: Iterable[str]) -> None:
        for label in labels:
            self.entities.labels(label).inc()

    def exposition(self) -> bytes:
        """The metrics of all workers in text form, including the counters of workers that have ended."""
        folder = os.environ.get(METRICS_FOLDER)
        if folder is None:
            return generate_latest(self._registry)
        _remove_gauges_of_ended_workers(Path(folder))
        together = CollectorRegistry()
        MultiProcessCollector(together, path=folder)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def _remove_gauges_of_ended_workers(folder: Path) -> None:
    """The queue of a worker that was killed no longer exists."""
    for path in folder.glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        if not _is_alive(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
