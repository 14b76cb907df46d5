"""The log of a training run in its folder: one line of JSON for each epoch."""

import json
from pathlib import Path
from typing import Any

from hanlattice.errors import DataError
from hanlattice.model.folder import LOG


def read_log(folder: Path) -> list[dict[str, Any]]:
    """The rows of a log, in the order of the epochs; none if there is no log.

    Each has the number ``epoch`` and ``loss``, and most have ``dev_f1`` in percent.

    Raises:
        DataError: a line is not such a row.
    """
    path = folder / LOG
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not _is_row(row):
            raise DataError(
                "not a line of a training log; delete the file to continue without its rows", path, number
            )
        rows.append(row)
    return rows


def _is_row(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    scores = row.get("loss"), row.get("dev_f1", 0.0)
    return type(row.get("epoch")) is int and all(type(score) in (int, float) for score in scores)
