"""A worker of a comparison, in a process of its own; see :mod:`hanlattice.comparison.workers`.

It reads its trial as a line of JSON from stdin and tells what happens in lines of JSON on stdout. When its stdin
closes, because the comparison is stopped or was killed, it stops as by Ctrl-C: no process is left behind that would
write into the folders of the next attempt.
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
from hanlattice.errors import HanlatticeError
from hanlattice.training import Silent


def main() -> None:
    """Finish the trial on stdin."""
    # Where the comparison runs in the background of a shell, SIGINT is ignored, and so would be ours.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Whatever else is printed, by an encoder of the user's own perhaps, must not come between the messages.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.readline())
    Thread(target=_stop_with_stdin, daemon=True).start()
    trial = Trial(task["system"], task["seed"], Config().with_settings(task["settings"]), Path(task["folder"]))
    try:
        trial.finish(_Telling(messages))
    except HanlatticeError as error:
        _tell({"error": str(error)}, messages)
    except KeyboardInterrupt:
        sys.exit(130)


class _Telling(Silent):
    def __init__(self, messages: IO[str]):
        self.messages = messages

    def epoch(self, row: dict[str, Any]) -> None:
        _tell({"row": row}, self.messages)


def _tell(message: Message, messages: IO[str]) -> None:
    print(json.dumps(message), file=messages, flush=True)


def _stop_with_stdin() -> None:
    sys.stdin.read()
    interrupt_main()


if __name__ == "__main__":
    main()
