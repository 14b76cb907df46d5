"""How a service starts, survives and ends."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import tiny
from hanlattice.errors import HanlatticeError
from hanlattice.model.folder import ModelFolder
from served import SENTENCE, Served, command, environment, serving


def eventually(holds: Callable[[], bool], seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < until:
        time.sleep(0.05)
    return held


class Client(threading.Thread):
    """Asks one thing after the other until nobody listens any more; tells answers from requests that were lost."""

    def __init__(self, served: Served):
        super().__init__()
        self.port, self.statuses, self.lost = served.port, list[int](), list[str]()

    def run(self) -> None:
        while not self.lost:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
            except OSError:
                return  # what could not connect was not accepted
            with connection:
                self.ask(connection)

    def ask(self, connection: socket.socket) -> None:
        """While the connection is kept alive. The service may close one that is silent, and this never is."""
        body = b'{"text": "' + SENTENCE.encode() + b'"}'
        head = (
            b"POST /v1/entities HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        answer = b""
        while b"connection: close" not in answer.lower():
            answer = b""
            try:
                connection.sendall(head % len(body) + body)
                while not answer.endswith(b"]}"):
                    chunk = connection.recv(65536)
                    if not chunk:
                        raise ConnectionError("hung up")
                    answer += chunk
            except OSError as error:
                self.lost.append(f"{error!r} after {len(self.statuses)} answers: {answer!r}")
                return
            self.statuses.append(int(answer[9:12]))


def test_sigterm_loses_no_accepted_request() -> None:
    with serving("--workers", 2, "--max-wait-ms", 100) as served:
        clients = [Client(served) for _ in range(24)]
        for client in clients:
            client.start()
        time.sleep(0.7)
        workers = served.workers
        assert len(workers) == 2
        assert served.stop() == 0
        for client in clients:
            client.join()
        assert [client.lost for client in clients if client.lost] == []
        statuses = [status for client in clients for status in client.statuses]
        assert set(statuses) == {200}
        assert all(client.statuses for client in clients)
        answered = [row for row in served.events("request") if row["status"] == 200]
        assert len(answered) == len(statuses)
        assert served.events()[-1]["event"] == "stopped"
        assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


@contextmanager
def inherited(action: signal.Handlers) -> Iterator[None]:
    """What SIGHUP does in processes that are started meanwhile."""
    before = signal.signal(signal.SIGHUP, action)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_ends_the_service_as_sigterm_does() -> None:
    with inherited(signal.SIG_DFL), serving("--workers", 2) as served:
        for pid in (*served.workers, served.process.pid):
            os.kill(pid, signal.SIGHUP)
        assert served.process.wait(60) == 0
        assert len(served.events("draining")) == 2
        assert not served.events("worker died")
        assert served.events()[-1]["event"] == "stopped"


def test_nohup_keeps_the_service_running() -> None:
    with inherited(signal.SIG_IGN), serving("--workers", 1) as served:
        served.process.send_signal(signal.SIGHUP)
        assert served.entities(SENTENCE)
        assert served.stop() == 0


def test_killed_workers_are_replaced_and_none_outlives_its_parent() -> None:
    with serving("--workers", 2) as served:
        before = served.workers
        os.kill(before[0], signal.SIGKILL)
        assert served.entities(SENTENCE)  # by the other one, or by the new one
        assert eventually(lambda: len(served.events("ready")) == 2)
        one_new = served.workers
        assert before[0] not in one_new
        assert before[1] in one_new
        for pid in one_new:
            os.kill(pid, signal.SIGKILL)
        served.client.close()
        found = httpx2.post(f"{served.url}/v1/entities", json={"text": SENTENCE}, timeout=30)
        assert found.status_code == 200  # it waited until somebody was there
        assert eventually(lambda: len(served.workers) == 2 and not {*one_new} & {*served.workers})
        assert len(served.events("worker died")) == 3
        assert eventually(lambda: len(served.events("ready")) == 3)
        figures = httpx2.get(f"{served.url}/metrics").text
        assert "hanlattice_workers 2.0" in figures
        last = served.workers
        served.process.kill()
        left = eventually(lambda: not any(_runs(pid) for pid in last), 90)
        assert left, served.events()[-6:]


def test_the_log_says_why_a_worker_cannot_be_replaced(tmp_path: Path) -> None:
    """A worker that is ended finishes its requests; the next one loads the model as it is then."""
    model = tmp_path / "model"
    shutil.copytree(tiny.trained(), model)
    with serving("--workers", 2, model=model) as served:
        (model / "config.toml").rename(model / "gone.toml")
        ended = served.workers[0]
        os.kill(ended, signal.SIGTERM)
        assert eventually(lambda: any("reason" in row for row in served.events("worker died")))
        first, *failed = served.events("worker died")
        assert (first["worker"], first["status"]) == (ended, -signal.SIGTERM)
        assert ended in {row["pid"] for row in served.events("draining")}
        assert "reason" not in first
        assert {row["reason"] for row in failed} == {str(_reason_of(model))}
        assert served.entities(SENTENCE), "by the other one"
        (model / "gone.toml").rename(model / "config.toml")
        assert eventually(lambda: len(served.events("ready")) == 2)


def _reason_of(model: Path) -> HanlatticeError:
    with pytest.raises(HanlatticeError) as caught:
        ModelFolder.open(model)
    return caught.value


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def one_error(options: list[object], model: Path | None = None) -> str:
    done = subprocess.run(
        command(*options, model=model), env=environment(), capture_output=True, encoding="utf-8", timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1
    return lines[0]


def test_an_occupied_port_is_a_one_line_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        error = one_error(["--port", port])
    assert error == (
        f"error: port {port} of 127.0.0.1 is in use; choose another one with --port, or 0 for any that is free"
    )


def test_a_service_that_cannot_start_reports_one_line(tmp_path: Path) -> None:
    assert "no such folder" in one_error(["--port", 0], model=tmp_path / "none")
    assert "never fits into a queue" in one_error(["--max-texts", 10, "--max-queue", 5])
    assert "--host nowhere.invalid" in one_error(["--host", "nowhere.invalid"])
    (tmp_path / "token").write_text("short\n")
    assert "at least 8 characters" in one_error(["--token-file", tmp_path / "token"])


def test_a_worker_that_cannot_start_ends_the_service(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = one_error(["--port", 0, "--workers", 2, "--lexicons", tmp_path / "file"])
    assert "named lexicons cannot be kept here" in error
