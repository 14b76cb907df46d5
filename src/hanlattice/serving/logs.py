"""Logs as lines of JSON, without anything that a client wrote."""

import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from time import time
from typing import Any

_NAMES = {number: name.lower() for name, number in logging.getLevelNamesMapping().items()}
_LEVELS = {
    "uvicorn": logging.WARNING,
    "asyncio": logging.ERROR,
    "py.warnings": logging.WARNING,
}


def set_up() -> None:
    """To stderr; what the server below has to say comes in the same form."""
    logging.captureWarnings(True)
    handler = _Json()
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def say(event: str, *, level: int = logging.INFO, error: Exception | None = None, **facts: Any) -> None:
    """One line. Facts must not hold what a client wrote."""
    _write(time(), level, event, facts if error is None else {**facts, **_without_message(error)})


def _write(when: float, level: int, event: str, facts: dict[str, Any]) -> None:
    moment = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")
    row = {"time": moment, "level": _NAMES[level], "event": event, "pid": os.getpid(), **facts}
    sys.stderr.write(f"{json.dumps(row, ensure_ascii=False)}\n")  # in one piece, as all workers write here


class _Json(logging.Handler):
    """What other packages have to say."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        facts = {} if error is None else _without_message(error)
        _write(record.created, record.levelno, record.getMessage().partition("\n")[0], facts)


def _without_message(error: BaseException) -> dict[str, Any]:
    """Its kind and where it came from: a message may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}
