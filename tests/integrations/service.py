"""A service of the packaged model in a process of its own, for tests without the other test dependencies."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen


@contextmanager
def service(folder: Path, *options: str, token: str = "") -> Iterator[str]:
    """The address of a running service."""
    environment = {**os.environ, "PYTHONUTF8": "1", "HANLATTICE_TOKEN": token}
    arguments = ["serve", "--port", "0", "--threads", "1", "--lexicons", str(folder / "lexicons"), *options]
    with open(folder / "service.log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "hanlattice", *arguments], stderr=log, env=environment)
    try:
        yield _url(process, folder / "service.log")
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def server(
    command: list[str], environment: dict[str, str], folder: Path, health: str, seconds: float
) -> Iterator[None]:
    """Another program that runs until its address ``health`` answered, and then until the end of the block."""
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        until = time.monotonic() + seconds
        while True:
            ended = process.poll() is not None or time.monotonic() > until
            assert not ended, (folder / "log").read_text("utf-8")[-3000:]
            with suppress(OSError), urlopen(health, timeout=5):
                break
            time.sleep(1)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _url(process: "subprocess.Popen[bytes]", log: Path) -> str:
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        rows = [json.loads(line) for line in log.read_text("utf-8").splitlines() if line.startswith("{")]
        events = {row["event"]: row for row in rows}
        if "ready" in events:
            return str(events["listening"]["url"])
        time.sleep(0.1)
    raise AssertionError(log.read_text("utf-8"))
