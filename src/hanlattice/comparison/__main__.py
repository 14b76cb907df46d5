"""A worker process of a comparison: runs one trial; see :mod:`hanlattice.comparison.workers`.

It reads its trial from stdin as a line of JSON, and writes its messages to stdout as lines of JSON. When its stdin
closes, because the comparison was stopped or killed, it stops as after Ctrl-C. So no process stays behind that
writes to the same folders as the next attempt.
"""

import json
import os
import signal
import sys
from _thread import interrupt_main
from pathlib import Path
from threading import Thread
from typing import IO, Any

from hanlattice.comparison.trial import Trial
from hanlattice.comparison.workers import Message
from hanlattice.config.settings import Config
from hanlattice.errors import HanlatticeError, WriteError
from hanlattice.training import Silent


def main() -> None:
    """Run the trial that stdin describes."""
    # If the comparison runs in the background of a shell, it ignores SIGINT, and this process inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Other output, for example of a user's encoder, goes to stderr, so that stdout has messages only.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.readline())
    Thread(target=_stop_when_stdin_closes, daemon=True).start()
    trial = Trial(task["system"], task["seed"], Config().with_settings(task["settings"]), Path(task["folder"]))
    try:
        trial.run(_MessageWriter(messages))
    except HanlatticeError as error:
        _send({"error": str(error), "cannot_write": isinstance(error, WriteError)}, messages)
    except KeyboardInterrupt:
        sys.exit(130)


class _MessageWriter(Silent):
    """Sends the epochs of training as messages."""

    def __init__(self, messages: IO[str]):
        self.messages = messages

    def epoch(self, row: dict[str, Any]) -> None:
        _send({"row": row}, self.messages)


def _send(message: Message, messages: IO[str]) -> None:
    print(json.dumps(message), file=messages, flush=True)


def _stop_when_stdin_closes() -> None:
    sys.stdin.read()
    interrupt_main()


if __name__ == "__main__":
    main()
