"""Runs trials in parallel, each in its own process with one thread."""

import json
import os
import subprocess
import sys
from queue import Queue
from threading import Thread
from typing import Any, Self, TypeAlias

from hanlattice.comparison.trial import Trial
from hanlattice.config.files import to_dict

Message = dict[str, Any]
_Process: TypeAlias = "subprocess.Popen[str]"


class Workers:
    """The processes of running trials. At the end of a ``with`` block, they are stopped; checkpoints stay."""

    def __init__(self) -> None:
        self._working: dict[Trial, tuple[_Process, Thread]] = {}
        self._messages: Queue[tuple[Trial, Message]] = Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process, _reader in self._working.values():
            _stdin(process).close()
        for _process, reader in self._working.values():
            reader.join()

    def __len__(self) -> int:
        """The number of trials that have not ended."""
        return len(self._working)

    def start(self, trial: Trial) -> None:
        """Start the process of a trial."""
        process = _start(trial)
        reader = Thread(target=_read_messages, args=(trial, process, self._messages), daemon=True)
        self._working[trial] = process, reader
        reader.start()

    def stop(self, trial: Trial) -> None:
        """Stop a trial as after Ctrl-C. Its last message follows."""
        process, _ = self._working[trial]
        _stdin(process).close()

    def message(self) -> tuple[Trial, Message]:
        """Wait for the next message of a trial.

        Returns:
            The trial and ``{"row": …}`` after an epoch. At the end ``{"end": None, "cannot_write": False}``; if the
            trial failed or was stopped, ``end`` is the reason, and ``cannot_write`` whether that is a full disk or
            the like.
        """
        trial, message = self._messages.get()
        if "end" in message:
            del self._working[trial]
        return trial, message


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
    reason, cannot_write = None, False
    with process:
        for line in process.stdout:
            message = json.loads(line)
            if "error" in message:
                reason, cannot_write = message["error"], message["cannot_write"]
            else:
                messages.put((trial, message))
        process.wait()  # inside the block, as its end closes stdin, which stops a worker that still runs
    if reason is None and process.returncode < 0:
        reason = f"killed by signal {-process.returncode}, possibly because memory ran out; use fewer --jobs"
    elif reason is None and process.returncode:
        reason = f"its process exited with status {process.returncode}; run with --jobs 1 for details"
    messages.put((trial, {"end": reason, "cannot_write": cannot_write}))
