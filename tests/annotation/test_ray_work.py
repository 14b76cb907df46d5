"""How chunks are given to Ray actors, with a Ray that runs everything at once in this process."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hanlattice.annotation import Chunk, Job, Part
from hanlattice.annotation import ray as ours
from hanlattice.annotation.ray import PENDING_PER_ACTOR, _Actor, on_ray
from hanlattice.errors import ConfigError, HanlatticeError


class RayError(Exception):
    """As Ray reports lost actors."""


class Ray:
    """A cluster that answers calls in their order; actors from ``placed`` on never start."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, placed: int = 9, results: Any = None, held: dict[str, float] | None = None) -> None:
        self.placed, self.results, self.held = placed, results, {"CPU": 2.0} if held is None else held
        self.calls: list[Any] = []
        self.waiting: list[int] = []
        self.killed = self.shut = self.begun = 0
        self.given: list[tuple[int, int]] = []  # actor and chunk
        self.options: dict[str, Any] = {}

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        self.begun += 1

    def shutdown(self) -> None:
        self.shut += 1

    def cluster_resources(self) -> dict[str, float]:
        return self.held

    def kill(self, actor: Any) -> None:
        self.killed += 1

    def remote(self, **options: Any) -> Any:
        self.options = options
        made = iter(range(99))

        def actor(job: Job) -> Any:
            number = next(made)
            start = f"start {number}"
            return SimpleNamespace(
                error=SimpleNamespace(remote=lambda: start),
                part=SimpleNamespace(remote=lambda chunk: self._call(number, chunk)),
            )

        return lambda kind: SimpleNamespace(remote=actor)

    def _call(self, actor: int, chunk: Chunk) -> str:
        self.given.append((actor, chunk.number))
        return f"part {chunk.number}"

    def wait(self, responses: list[str], timeout: float | None) -> tuple[list[str], list[str]]:
        self.waiting.append(sum(response.startswith("part") for response in responses))
        ready = [r for r in responses if r.startswith("part") or int(r.split()[1]) < self.placed]
        self.timeout = timeout
        return ready[:1], ready[1:]

    def get(self, response: str) -> Any:
        result = (self.results or {}).get(response)
        if isinstance(result, Exception):
            raise result
        if response.startswith("start"):
            return result
        number = int(response.split()[1])
        return result or Part(number, "f", 1, b"", 1, ())


def chunks(n: int) -> Iterator[Chunk]:
    return (Chunk(number, "f", "text", 10 * number + 1, [], 1) for number in range(n))


def run(ray: Ray, n: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[int]:
    monkeypatch.setattr(ours, "import_module", lambda name: ray)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return [part.chunk for part in on_ray(chunks(n), Job(), **options)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(("workers", "placed"), [(1, 1), (2, 2), (3, 1)])
def test_every_chunk_comes_back_once(n: int, workers: int, placed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(placed)
    assert sorted(run(ray, n, monkeypatch, workers=workers)) == list(range(n))
    assert (ray.killed, ray.shut, ray.begun) == (workers, 1, 1)
    assert max(ray.waiting) <= 2 * placed, "an actor has two chunks at most"
    assert ray.waiting.count(0) <= 1 + placed
    if n > 2 and placed == 1:
        assert max(ray.waiting) == PENDING_PER_ACTOR == 2
    assert ray.options == {"num_cpus": 1.0, "num_gpus": 0.0, "max_restarts": -1, "max_task_retries": 2}


def test_chunks_are_read_no_faster_than_they_are_annotated(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, read = Ray(1), []

    def reading() -> Iterator[Chunk]:
        for chunk in chunks(9):
            read.append(chunk.number)
            yield chunk

    monkeypatch.setattr(ours, "import_module", lambda name: ray)
    parts = on_ray(reading(), Job())
    for done in range(1, 6):
        next(parts)
        assert len(read) <= done + PENDING_PER_ACTOR
    parts.close()  # type: ignore[attr-defined]
    assert (ray.killed, ray.shut) == (1, 1)


def test_no_place_for_an_actor(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(placed=0)
    with pytest.raises(
        ConfigError, match=r"no worker was placed within 600 seconds; the cluster has 2 CPU and 0 GPU"
    ):
        run(ray, 3, monkeypatch)
    assert ray.timeout == 600
    for held, options in (
        ({"CPU": 1.0}, {"cpus_per_worker": 1.5}),
        ({"CPU": 9.0, "GPU": 1.0}, {"gpus_per_worker": 2.0}),
    ):
        ray = Ray(held=held)
        with pytest.raises(ConfigError, match=r"a worker needs .* CPU and .* GPU, but this machine has"):
            run(ray, 3, monkeypatch, **options)
        assert (ray.shut, ray.killed) == (1, 0)
    exact = Ray(held={"CPU": 1.5, "GPU": 2.0})
    assert run(exact, 1, monkeypatch, cpus_per_worker=1.5, gpus_per_worker=2.0) == [0]


def test_errors_of_actors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HanlatticeError, match=r"^the model is broken$"):
        run(Ray(results={"start 0": "the model is broken"}), 3, monkeypatch)
    lost = RayError("\nactor died\nmore")
    with pytest.raises(HanlatticeError, match=r"^f:11: 3 Ray workers were lost \(actor died\)"):
        run(Ray(results={"part 1": lost}), 3, monkeypatch)
    with pytest.raises(HanlatticeError, match=r"^a worker cannot start: 3 Ray workers were lost"):
        run(Ray(results={"start 0": lost}), 3, monkeypatch)


def test_actors_report_errors_as_texts() -> None:
    broken = _Actor(Job(model="/no/such/model"))
    assert broken.error() is not None
    assert broken.part(next(chunks(1))) == broken.error()
    actor = _Actor(Job(model="lite"))
    assert actor.error() is None
    part = actor.part(Chunk(3, "f", "text", 1, ["李明".encode()], 1))
    assert isinstance(part, Part)
    assert (part.chunk, part.rows) == (3, 1)
    assert (
        actor.part(Chunk(3, "f", "text", 7, [3], 1))
        == "f:7: unexpected AttributeError: 'int' object has no attribute 'removesuffix'"
    )


def test_a_cluster_that_is_there_is_used_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray()
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    assert run(ray, 2, monkeypatch) == [0, 1]
    assert (ray.begun, ray.shut) == (0, 0)
    ray = Ray(held={})
    monkeypatch.setattr(ours, "import_module", lambda name: ray)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert [part.chunk for part in on_ray(chunks(1), Job())] == [0]
    assert (ray.begun, ray.shut) == (1, 1)
