"""Runs trials in parallel, each in its own process with one thread."""

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from queue import Queue
from threading import Thread
from typing import Any, TypeAlias

from hanlattice.comparison.trial import Trial
from hanlattice.config.files import to_dict

Message = dict[str, Any]
_Process: TypeAlias = "subprocess.Popen[str]"


def run_in_parallel(trials: Iterable[Trial], jobs: int) -> Iterator[tuple[Trial, Message]]:
    """Run trials, at most ``jobs`` at a time. If the iteration stops, so do the workers; checkpoints stay.

    Yields:
        Trials with their messages: ``{}`` at the start of a trial, ``{"row": …}`` after an epoch, and at the end
        ``{"end": None}``, or ``{"end": REASON}`` if the trial failed.
    """
    waiting, working = deque(trials), dict[Trial, tuple[_Process, Thread]]()
    messages: Queue[tuple[Trial, Message]] = Queue()
    try:
        while waiting or working:
            while waiting and len(working) < jobs:
                trial = waiting.popleft()
                process = _start(trial)
                reader = Thread(target=_read_messages, args=(trial, process, messages), daemon=True)
                working[trial] = process, reader
                reader.start()
                yield trial, {}
            trial, message = messages.get()
            if "end" in message:
                del working[trial]
            yield trial, message
    finally:
        for process, _ in working.values():
            _stdin(process).close()
        for _, reader in working.values():
            reader.join()


def _start(trial: Trial) -> _Process:
    """Start a worker in a new session: Ctrl-C on the terminal reaches only this process, which stops the worker."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "hanlattice.comparison"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"},
        start_new_session=True,
    )
    task = {"system": trial.system, "seed": trial.seed, "folder": str(trial.folder.absolute())}
    _stdin(process).write(json.dumps({**task, "settings": to_dict(trial.config)}) + "\n")
    _stdin(process).flush()
    return process


def _stdin(process: _Process) -> Any:
    return process.stdin


def _read_messages(trial: Trial, process: _Process, messages: "Queue[tuple[Trial, Message]]") -> None:
    """Pass on the messages of a worker, and the reason if it fails."""
    assert process.stdout is not None
    reason = None
    with process:
        for line in process.stdout:
            message = json.loads(line)
            if "error" in message:
                reason = message["error"]
            else:
                messages.put((trial, message))
        process.wait()  # inside the block, as its end closes stdin, which stops a worker that still runs
    if reason is None and process.returncode < 0:
        reason = f"killed by signal {-process.returncode}, possibly because memory ran out; use fewer --jobs"
    elif reason is None and process.returncode:
        reason = f"its process exited with status {process.returncode}; run with --jobs 1 for details"
    messages.put((trial, {"end": reason}))
