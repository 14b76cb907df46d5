"""The Ray engine: a pool of Ray actors with one model each, on a cluster or on this machine.

The calling process reads and writes all files, so the nodes need no shared disk. A model that is not the packaged
one has to be at the same path on every node. An actor gets chunks only once Ray has placed it: more actors than fit
block nothing, and they start to work when the cluster grows.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hanlattice.annotation import Chunk, Job, Part
from hanlattice.annotation.annotator import Annotator
from hanlattice.annotation.chunk import LOST, MAX_TRIES
from hanlattice.errors import ConfigError, HanlatticeError

PENDING_PER_ACTOR = 2  # chunks that an actor has at a time: the current one and the next
PLACEMENT_TIMEOUT = 600  # seconds to wait for the first actor


def on_ray(
    chunks: Iterator[Chunk],
    job: Job,
    *,
    workers: int = 1,
    cpus_per_worker: float = 1.0,
    gpus_per_worker: float = 0.0,
) -> Iterator[Part]:
    """Annotate chunks by Ray actors.

    Uses the cluster at ``RAY_ADDRESS``, or else starts Ray on this machine for this call. Ray restarts a lost actor
    and repeats its chunks. Chunks are read no faster than they are annotated.

    Args:
        chunks: the chunks.
        job: the settings of the run.
        workers: maximum number of actors.
        cpus_per_worker: CPUs that Ray reserves for an actor.
        gpus_per_worker: GPUs that Ray reserves for an actor; may be a fraction.

    Yields:
        The parts, in the order in which they are finished.

    Raises:
        ConfigError: Ray is not installed, or the cluster is too small for one actor.
        HanlatticeError: an actor fails, or the same chunk loses three actors.
    """
    with _cluster(cpus_per_worker, gpus_per_worker) as ray:
        remote = ray.remote(
            num_cpus=cpus_per_worker, num_gpus=gpus_per_worker, max_restarts=-1, max_task_retries=MAX_TRIES - 1
        )(_Actor)
        actors = [remote.remote(job) for _ in range(workers)]
        try:
            yield from _work(ray, chunks, actors)
        finally:
            for actor in actors:
                ray.kill(actor)


def _work(ray: Any, chunks: Iterator[Chunk], actors: list[Any]) -> Iterator[Part]:
    starting = {actor.error.remote(): actor for actor in actors}
    working: dict[Any, tuple[Any, Chunk]] = {}
    is_over = False

    def give(actor: Any) -> None:
        nonlocal is_over
        chunk = next(chunks, None)
        if chunk is None:
            is_over = True
        else:
            working[actor.part.remote(chunk)] = actor, chunk

    while working or (starting and not is_over):
        ready, _ = ray.wait([*starting, *working], timeout=None if working else PLACEMENT_TIMEOUT)
        if not ready:
            raise ConfigError(
                f"no worker was placed within {PLACEMENT_TIMEOUT} seconds; the cluster has {_resources(ray)};"
                " reduce --cpus-per-worker or --gpus-per-worker, or enlarge the cluster"
            )
        for response in ready:
            if response in starting:
                actor = starting.pop(response)
                _result(ray, response, "a worker cannot start")
                for _ in range(PENDING_PER_ACTOR):
                    give(actor)
            else:
                actor, chunk = working.pop(response)
                part = _result(ray, response, f"{chunk.file}:{chunk.first}")
                give(actor)
                yield part


def _result(ray: Any, response: Any, where: str) -> Any:
    """The result of a call of an actor; ``where`` starts the message of an error."""
    try:
        result = ray.get(response)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        raise HanlatticeError(
            f"{where}: {MAX_TRIES} Ray workers were lost ({reason}), {LOST}. Finished chunks are kept:"
            " the same command resumes the run"
        ) from None
    if isinstance(result, str):
        raise HanlatticeError(result)
    return result


class _Actor:
    """An actor with one model. Errors are returned as messages, because Ray would hide them in tracebacks."""

    def __init__(self, job: Job):
        self.annotator, self.message = None, None
        try:
            self.annotator = Annotator(job)
        except HanlatticeError as error:
            self.message = str(error)

    def error(self) -> str | None:
        return self.message

    def part(self, chunk: Chunk) -> Part | str:
        if self.annotator is None:
            return self.message or ""
        try:
            return self.annotator(chunk)
        except Exception as error:
            return f"{chunk.file}:{chunk.first}: unexpected {type(error).__name__}: {error}"


@contextmanager
def _cluster(cpus: float, gpus: float) -> Iterator[Any]:
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise ConfigError("--runner ray needs Ray; install it: pip install 'hanlattice[bulk]'") from None
    if ray.is_initialized():
        yield ray
        return
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False)
    else:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
        held = ray.cluster_resources()
        if cpus > held.get("CPU", 0) or gpus > held.get("GPU", 0):
            found = _resources(ray)
            ray.shutdown()
            raise ConfigError(
                f"a worker needs {cpus:g} CPU and {gpus:g} GPU, but this machine has {found}; reduce"
                " --cpus-per-worker or --gpus-per-worker"
            )
    try:
        yield ray
    finally:
        ray.shutdown()


def _resources(ray: Any) -> str:
    held: dict[str, float] = ray.cluster_resources()
    return f"{held.get('CPU', 0):g} CPU and {held.get('GPU', 0):g} GPU"
