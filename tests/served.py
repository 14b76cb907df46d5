"""A service in processes of its own, as users run it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

import tiny

SENTENCE = "李明在北京工作。"


@dataclass
class Served:
    """A running service: its address, its log, and a client that talks to it."""

    process: "subprocess.Popen[bytes]"
    log: Path
    url: str
    client: httpx2.Client

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """Lines of the log."""
        rows = [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]
        return [row for row in rows if kind is None or row["event"] == kind]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def workers(self) -> list[int]:
        """Process ids of the workers; the other child is the one that tracks resources for multiprocessing."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def entities(self, text: str, **question: Any) -> list[dict[str, Any]]:
        answer = self.client.post("/v1/entities", json={"text": text, **question})
        assert answer.status_code == 200, answer.text
        return answer.json()["entities"]

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}


def command(*options: object, model: Path | None = None) -> list[str]:
    model = tiny.trained() if model is None else model
    return [sys.executable, "-m", "hanlattice", "serve", "--model", str(model), *map(str, options)]


@contextmanager
def serving(*options: object, model: Path | None = None) -> Iterator[Served]:
    """A service on a free port with its own folder of lexicons; it is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "wb") as log:
        ours = ("--port", 0, "--threads", 1, "--lexicons", f"{folder}/lexicons")
        process = subprocess.Popen(command(*ours, *options, model=model), stderr=log, env=environment())
        try:
            url = _url_when_ready(process, Path(log.name))
            with httpx2.Client(base_url=url, timeout=30) as client:
                yield Served(process, Path(log.name), url, client)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(30)
                finally:
                    process.kill()


def _url_when_ready(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        lines = [line for line in log.read_text("utf-8").splitlines() if line.startswith("{")]
        events = {row["event"]: row for row in map(json.loads, lines)}
        if "ready" in events:
            return events["listening"]["url"]
        time.sleep(0.05)
    raise AssertionError(log.read_text("utf-8"))
