"""Chunks by processes of this machine."""

import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from threading import Lock, Thread
from typing import Any

from hanlattice.annotation.chunk import Chunk, Part
from hanlattice.annotation.job import Job
from hanlattice.errors import HanlatticeError

TRIES = 3  # of a chunk whose worker is lost

logger = logging.getLogger(__name__)


def local(chunks: Iterator[Chunk], job: Job, *, workers: int = 1) -> Iterator[Part]:
    """Parts in the order they are done; a chunk is read when a worker is free for it.

    A worker that is lost, such as killed for want of memory, is replaced, and what it was at is done again.

    Raises:
        HanlatticeError: a worker fails, or one chunk loses three of them.
    """
    source = _Shared(chunks)
    done: Queue[Part | BaseException | None] = Queue(workers)
    helpers = [_Helper(source, job, done) for _ in range(workers)]
    for helper in helpers:
        helper.start()
    try:
        left = workers
        while left:
            match done.get():
                case None:
                    left -= 1
                case Part() as part:
                    yield part
                case BaseException() as error:
                    raise error
    finally:
        source.close()
        for helper in helpers:
            helper.stop()
        while any(helper.is_alive() for helper in helpers):
            with suppress(Empty):
                done.get(timeout=0.05)


class _Shared:
    """An iterator that threads take from in turn."""

    def __init__(self, chunks: Iterator[Chunk]):
        self._chunks, self._lock, self.closed = chunks, Lock(), False

    def close(self) -> None:
        self.closed = True

    def __iter__(self) -> Iterator[Chunk]:
        while True:
            with self._lock:
                chunk = None if self.closed else next(self._chunks, None)
            if chunk is None:
                return
            yield chunk


class _Helper(Thread):
    """The thread that talks to one worker."""

    def __init__(self, source: _Shared, job: Job, done: "Queue[Part | BaseException | None]"):
        super().__init__(daemon=True)
        self.source, self.job, self.done = source, job, done
        self.worker: _Worker | None = None

    def run(self) -> None:
        try:
            for chunk in self.source:
                self.done.put(self._part(chunk))
            self.done.put(None)
        except BaseException as error:
            self.source.close()
            self.done.put(error)
        finally:
            self.stop()

    def stop(self) -> None:
        if self.worker is not None:
            self.worker.end()

    def _part(self, chunk: Chunk) -> Part:
        for attempt in range(1, TRIES + 1):
            try:
                if self.worker is None:
                    self.worker = _Worker(self.job)
                return self.worker.ask(chunk)
            except _LostError as lost:
                self.worker = None
                if self.source.closed:
                    break
                where = f"{chunk.file}, from line {chunk.first} on"
                logger.warning("a worker was lost (%s) at %s; attempt %d of %d", lost, where, attempt, TRIES)
        raise HanlatticeError(
            f"{chunk.file}:{chunk.first}: {TRIES} workers were lost at the rows from here on, as happens when"
            " memory runs out; take fewer --workers or smaller --chunk-rows"
        )


class _LostError(Exception):
    """A worker ended without an answer."""


class _Worker:
    """A process that has loaded the model.

    It is a program of its own and not a fork or a spawned copy of this one: it imports nothing of the caller's.
    """

    def __init__(self, job: Job):
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "hanlattice.annotation"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(job.threads)),
            },
            start_new_session=True,  # so that Ctrl-C on the terminal does not reach it before it reaches us
        )
        try:
            self._answer(job)
        except BaseException:
            self.end()
            raise

    def ask(self, chunk: Chunk) -> Part:
        return self._answer(chunk)

    def _answer(self, question: object) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            pickle.dump(question, stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()
            kind, what = pickle.load(stdout)
        except (EOFError, OSError, pickle.UnpicklingError, ValueError):
            self.process.kill()  # unless it has ended
            status = self.process.wait()
            self.end()
            raise _LostError(f"signal {-status}" if status < 0 else f"status {status}") from None
        if kind == "error":
            raise HanlatticeError(what)
        return what

    def end(self) -> None:
        """Also in the middle of a chunk."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(OSError):  # what was still to be written has no reader
                stream.close()
