"""Annotation on a Ray cluster, or on a Ray of this machine alone: a pool of actors with one model each.

This process reads and writes, so nodes need no common disk; but the model, if it is not the packaged one, has to
be where each node finds it. Actors take no part before they are placed: more of them than there is room for do not
block anything, and where the cluster grows they join in.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from hanlattice.annotation import Chunk, Job, Part
from hanlattice.annotation.annotator import Annotator
from hanlattice.errors import ConfigError, HanlatticeError

AHEAD = 2  # chunks that an actor has been given: one it reads, and the next
TRIES = 3  # of a chunk whose actor is lost
PATIENCE = 600  # seconds without any actor


def on_ray(
    chunks: Iterator[Chunk],
    job: Job,
    *,
    workers: int = 1,
    cpus_per_worker: float = 1.0,
    gpus_per_worker: float = 0.0,
) -> Iterator[Part]:
    """Parts in the order they are done, by at most ``workers`` actors; read no faster than they are annotated.

    The cluster is that of ``RAY_ADDRESS``; without it Ray is started here, for this call. Ray starts a lost actor
    again and has it do again what it was at.

    Raises:
        ConfigError: Ray is not installed, or has no room for one actor.
        HanlatticeError: an actor fails, or one chunk loses three of them.
    """
    with _cluster(cpus_per_worker, gpus_per_worker) as ray:
        remote = ray.remote(
            num_cpus=cpus_per_worker, num_gpus=gpus_per_worker, max_restarts=-1, max_task_retries=TRIES - 1
        )(_Actor)
        actors = [remote.remote(job) for _ in range(workers)]
        try:
            yield from _worked(ray, chunks, actors)
        finally:
            for actor in actors:
                ray.kill(actor)


def _worked(ray: Any, chunks: Iterator[Chunk], actors: list[Any]) -> Iterator[Part]:
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
        ready, _ = ray.wait([*starting, *working], timeout=None if working else PATIENCE)
        if not ready:
            raise ConfigError(
                f"no worker was placed within {PATIENCE} seconds; the cluster has {_resources(ray)}: ask for less"
                " with --cpus-per-worker or --gpus-per-worker, or let it grow"
            )
        for answer in ready:
            if answer in starting:
                actor = starting.pop(answer)
                _answered(ray, answer, "a worker cannot start")
                for _ in range(AHEAD):
                    give(actor)
            else:
                actor, chunk = working.pop(answer)
                part = _answered(ray, answer, f"{chunk.file}:{chunk.first}")
                give(actor)
                yield part


def _answered(ray: Any, answer: Any, where: str) -> Any:
    try:
        what = ray.get(answer)
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[0]
        raise HanlatticeError(
            f"{where}: {TRIES} Ray workers were lost ({reason}), as happens when memory runs out; take fewer"
            " --workers or smaller --chunk-rows. What is done is kept: the same command goes on"
        ) from None
    if isinstance(what, str):
        raise HanlatticeError(what)
    return what


class _Actor:
    """One model. What goes wrong comes back as a message: Ray's own errors hide it in tracebacks."""

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
        raise ConfigError("--engine ray needs: pip install 'hanlattice[bulk]'") from None
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
                f"a worker asks for {cpus:g} CPU and {gpus:g} GPU, but this machine has {found}: ask for less"
                " with --cpus-per-worker or --gpus-per-worker"
            )
    try:
        yield ray
    finally:
        ray.shutdown()


def _resources(ray: Any) -> str:
    held: dict[str, float] = ray.cluster_resources()
    return f"{held.get('CPU', 0):g} CPU and {held.get('GPU', 0):g} GPU"
