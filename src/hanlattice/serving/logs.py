"""Logs as lines of JSON, which never contain text from clients."""

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
    "hanlattice": logging.WARNING,
}


def set_up() -> None:
    """Log to stderr. Logs of uvicorn, asyncio, warnings and the library have the same form."""
    logging.captureWarnings(True)
    handler = _Json()
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    library = _Json()
    library.addFilter(_Once())
    logging.getLogger("hanlattice").handlers = [library]


def log_event(event: str, *, level: int = logging.INFO, error: Exception | None = None, **facts: Any) -> None:
    """Write one log line. ``facts`` must not contain text from a client."""
    _write(time(), level, event, facts if error is None else {**facts, **_without_message(error)})


def _write(when: float, level: int, event: str, facts: dict[str, Any]) -> None:
    moment = datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds")
    row = {"time": moment, "level": _NAMES[level], "event": event, "pid": os.getpid(), **facts}
    # One call, because all workers write to this stream.
    sys.stderr.write(f"{json.dumps(row, ensure_ascii=False)}\n")


class _Once(logging.Filter):
    """Passes each message once per process, because each request of a client can cause it again."""

    def __init__(self) -> None:
        super().__init__()
        self._seen = set[str]()

    def filter(self, record: logging.LogRecord) -> bool:
        seen = record.msg in self._seen
        self._seen.add(record.msg)
        return not seen


class _Json(logging.Handler):
    """Handles log records of other packages."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        facts = {} if error is None else _without_message(error)
        _write(record.created, record.levelno, record.getMessage().partition("\n")[0], facts)


def _without_message(error: BaseException) -> dict[str, Any]:
    """The type and traceback of an error. Its message is left out, because it may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}
