"""Logs as lines of JSON, without anything that a client wrote."""

import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

_LOGGER = logging.getLogger("hanlattice.serving")


def set_up() -> None:
    """To stderr; what the server below has to say comes in the same form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json())
    for name, level in (
        ("hanlattice.serving", logging.INFO),
        ("uvicorn", logging.WARNING),
        ("asyncio", logging.ERROR),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def say(event: str, *, level: int = logging.INFO, error: Exception | None = None, **facts: Any) -> None:
    """One line. Facts must not hold what a client wrote."""
    _LOGGER.log(level, event, exc_info=error, extra={"facts": facts})


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().splitlines()[0] if record.msg else "",
            "pid": os.getpid(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[1]:
            row |= _without_message(record.exc_info[1])
        return json.dumps(row, ensure_ascii=False)


def _without_message(error: BaseException) -> dict[str, Any]:
    """Its kind and where it came from: a message may quote a text."""
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "at": [f"{f.filename}:{f.lineno} {f.name}" for f in frames]}
