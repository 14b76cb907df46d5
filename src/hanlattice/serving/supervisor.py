"""The supervisor process: holds the socket, starts the workers, replaces those that die, and stops them."""

import contextlib
import errno
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from types import FrameType
from typing import Any

from hanlattice.errors import ConfigError, HanlatticeError
from hanlattice.model.folder import ModelFolder
from hanlattice.serving import logs
from hanlattice.serving.settings import METRICS_FOLDER, READY, Settings

NEEDED = ("fastapi", "httptools", "prometheus_client", "uvicorn")
WINDOWS = os.name == "nt"  # its event loops cannot wait for the pipe to the parent process
BACKLOG = 2048  # connections that may wait until a worker accepts them
PATIENCE = 5.0  # seconds beyond the drain time-out, after which a worker is killed
PAUSE = 1.0  # seconds before a worker that failed to start is replaced


def serve(settings: Settings) -> None:
    """Serve until SIGTERM, SIGHUP or Ctrl-C.

    Raises:
        ConfigError: a package of the extra ``serve`` is not installed, the address cannot be used, or this is
            Windows.
        ModelError: the model cannot be loaded.
        UnknownConvention: the model does not have this convention.
        HanlatticeError: no worker can start.
    """
    if WINDOWS:
        raise ConfigError("the service does not run on Windows; run it in a container or in WSL")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"serving needs {', '.join(missing)}: pip install 'hanlattice[serve]'")
    model = ModelFolder.open(settings.model)  # reports the most common errors before anything is started
    model.vocabulary.labels_of(settings.convention or model.vocabulary.convention)
    logs.set_up()
    with listening(settings.host, settings.port) as listener, tempfile.TemporaryDirectory() as metrics:
        os.environ[METRICS_FOLDER] = metrics
        os.environ.setdefault("OMP_NUM_THREADS", str(settings.threads_of_a_worker))
        host, port = listener.getsockname()[:2]
        logs.log_event(
            "listening", url=f"http://{f'[{host}]' if ':' in host else host}:{port}", workers=settings.workers
        )
        _Supervisor(settings, listener).run()


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket to which clients can connect from now on; port 0 stands for any free port.

    Raises:
        ConfigError: the port is taken, or this machine has no such address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror or error}") from None
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise ConfigError(
                    f"port {port} of {host} is in use; choose another one with --port, or 0 for any that is free"
                ) from None
            raise ConfigError(f"port {port} of {host}: {error.strerror or error}") from None
        yield listener


class _Worker:
    """A worker process and its message: empty while it starts, then READY or an error."""

    def __init__(self, settings: Settings, listener: socket.socket):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(settings, listener, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.message = ""

    @property
    def is_ready(self) -> bool:
        return self.message == READY

    @property
    def error(self) -> str:
        """Why it could not start; empty if it is ready, or gave no reason."""
        return "" if self.is_ready else self.message

    def listen(self) -> None:
        """Receive the message, if it has arrived."""
        with contextlib.suppress(EOFError, OSError):
            if not self.message and self.pipe.poll():
                self.message = str(self.pipe.recv())


def _work(settings: Settings, listener: socket.socket, parent: Pipe) -> None:
    from hanlattice.serving.worker import work  # here, because the supervisor does not need these imports

    # A terminal that is closed sends this to workers too; the parent ends them.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    work(settings, listener, parent)


class _Supervisor:
    def __init__(self, settings: Settings, listener: socket.socket):
        self._settings, self._listener = settings, listener
        self._stopping = False
        self._wakeup, self._signal = socket.socketpair()  # lets signals interrupt waiting
        self._workers: list[_Worker] = []

    def run(self) -> None:
        """
        Raises:
            HanlatticeError: no worker can start.
        """
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            signal.signal(number, self._stop)
        self._workers = [self._worker() for _ in range(self._settings.workers)]
        try:
            while not self._stopping:
                self._wait()
                self._replace_ended_workers()
        finally:
            self._end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        self._signal.send(b"!")

    def _worker(self) -> _Worker:
        return _Worker(self._settings, self._listener)

    def _wait(self) -> None:
        """Wait until a worker sends a message or ends, or a signal arrives."""
        were_all_up = all(worker.message for worker in self._workers)
        pipes = [worker.pipe for worker in self._workers if not worker.message]
        wait([self._wakeup, *pipes, *(worker.process.sentinel for worker in self._workers)])
        for worker in self._workers:
            worker.listen()
        if not were_all_up and all(worker.is_ready for worker in self._workers):
            logs.log_event("ready", workers=len(self._workers))

    def _replace_ended_workers(self) -> None:
        for i, worker in enumerate(self._workers):
            if self._stopping or worker.process.is_alive():
                continue
            if not worker.is_ready:
                if not any(other.is_ready for other in self._workers):
                    raise HanlatticeError(
                        worker.error or f"a worker died at its start (status {worker.process.exitcode})"
                    )
                time.sleep(PAUSE)
            facts: dict[str, Any] = {"worker": worker.process.pid, "status": worker.process.exitcode}
            if worker.error:
                facts["reason"] = worker.error
            logs.log_event("worker died", level=logging.WARNING, **facts)
            worker.pipe.close()
            self._workers[i] = self._worker()

    def _end(self) -> None:
        """Accept no new connections, and let open requests finish within the drain time-out."""
        self._listener.close()
        alive = [worker.process for worker in self._workers if worker.process.is_alive()]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + self._settings.drain_timeout + PATIENCE
        for process in alive:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        logs.log_event("stopped")
