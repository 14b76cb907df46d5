"""The local engine: worker processes on this machine."""

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

from hanlattice.annotation.chunk import LOST, MAX_TRIES, Chunk, Part
from hanlattice.annotation.job import Job
from hanlattice.errors import HanlatticeError

logger = logging.getLogger(__name__)


def local(chunks: Iterator[Chunk], job: Job, *, workers: int = 1) -> Iterator[Part]:
    """Annotate chunks by worker processes.

    A chunk is read only when a worker is free for it. A worker that is lost, for example killed when memory runs
    out, is replaced, and its chunk is annotated again.

    Yields:
        The parts, in the order in which they are finished.

    Raises:
        HanlatticeError: a worker fails, or the same chunk loses three workers.
    """
    source = _SharedChunks(chunks)
    done: Queue[Part | BaseException | None] = Queue(workers)
    threads = [_WorkerThread(source, job, done) for _ in range(workers)]
    for thread in threads:
        thread.start()
    try:
        working = workers
        while working:
            match done.get():
                case None:
                    working -= 1
                case Part() as part:
                    yield part
                case BaseException() as error:
                    raise error
    finally:
        source.close()
        for thread in threads:
            thread.stop()
        # A thread may be waiting for space in the queue, so the queue is emptied until all threads have ended.
        while any(thread.is_alive() for thread in threads):
            with suppress(Empty):
                done.get(timeout=0.05)


class _SharedChunks:
    """Chunks that several threads take from."""

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


class _WorkerThread(Thread):
    """The thread that gives chunks to one worker and collects its parts."""

    def __init__(self, source: _SharedChunks, job: Job, done: "Queue[Part | BaseException | None]"):
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
        for attempt in range(1, MAX_TRIES + 1):
            try:
                if self.worker is None:
                    self.worker = _Worker(self.job)
                    if self.source.closed:  # while the model was loaded
                        self.worker.end()
                        raise _LostError("the run ends")
                return self.worker.annotate(chunk)
            except _LostError as lost:
                self.worker = None
                if self.source.closed:  # the run ends, and the error below is not reported
                    break
                where = f"{chunk.file}, at the rows from line {chunk.first}"
                logger.warning("a worker was lost (%s): %s; attempt %d of %d", lost, where, attempt, MAX_TRIES)
        lost_workers = "1 worker was lost" if attempt == 1 else f"{attempt} workers were lost"
        raise HanlatticeError(f"{chunk.file}:{chunk.first}: {lost_workers} at the rows from this line, {LOST}")


class _LostError(Exception):
    """A worker ended without a response."""


class _Worker:
    """A worker process with a loaded model. It receives the job first, then one chunk at a time.

    It is a separate program, not a fork or a spawned copy of this process, so it imports no module of the caller.
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
            start_new_session=True,  # Ctrl-C in the terminal must reach only this process
        )
        try:
            self._request(job)
        except BaseException:
            self.end()
            raise

    def annotate(self, chunk: Chunk) -> Part:
        """Send a chunk to the worker and wait for its part.

        Raises:
            _LostError: the worker ended.
            HanlatticeError: the worker reports an error.
        """
        return self._request(chunk)

    def _request(self, content: object) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            pickle.dump(content, stdin, pickle.HIGHEST_PROTOCOL)
            stdin.flush()
            kind, response = pickle.load(stdout)
        except (EOFError, OSError, pickle.UnpicklingError, ValueError):
            self.process.kill()  # in case it still runs
            status = self.process.wait()
            self.end()
            raise _LostError(f"signal {-status}" if status < 0 else f"status {status}") from None
        if kind == "error":
            raise HanlatticeError(response)
        return response

    def end(self) -> None:
        """End the process, also in the middle of a chunk."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(OSError):  # buffered output has no reader
                stream.close()
