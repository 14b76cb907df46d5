"""Trials side by side, each in a process of its own with one thread."""

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


def side_by_side(trials: Iterable[Trial], jobs: int) -> Iterator[tuple[Trial, Message]]:
    """Finish trials, at most ``jobs`` at once, and tell what happens to which.

    The messages of a trial: ``{}`` as it begins, ``{"row": …}`` for an epoch, and at last ``{"end": None}``, or
    ``{"end": "why"}`` if it failed. Whatever stops this iteration stops the workers; their checkpoints stay.
    """
    waiting, working = deque(trials), dict[Trial, tuple[_Process, Thread]]()
    told: Queue[tuple[Trial, Message]] = Queue()
    try:
        while waiting or working:
            while waiting and len(working) < jobs:
                trial = waiting.popleft()
                process = _start(trial)
                listener = Thread(target=_listen, args=(trial, process, told), daemon=True)
                working[trial] = process, listener
                listener.start()
                yield trial, {}
            trial, message = told.get()
            if "end" in message:
                del working[trial]
            yield trial, message
    finally:
        for process, _ in working.values():
            _stdin(process).close()
        for _, listener in working.values():
            listener.join()


def _start(trial: Trial) -> _Process:
    """A worker in a session of its own, where Ctrl-C on the terminal does not reach it before it reaches us."""
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


def _listen(trial: Trial, process: _Process, told: "Queue[tuple[Trial, Message]]") -> None:
    assert process.stdout is not None
    why = None
    with process:
        for line in process.stdout:
            message = json.loads(line)
            if "error" in message:
                why = message["error"]
            else:
                told.put((trial, message))
        process.wait()  # before its stdin is closed, which would stop it
    if why is None and process.returncode < 0:
        why = f"killed by signal {-process.returncode}, as happens when memory runs out; take fewer --jobs"
    elif why is None and process.returncode:
        why = f"its process ended with status {process.returncode}; --jobs 1 tells more"
    told.put((trial, {"end": why}))
