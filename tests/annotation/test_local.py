"""Worker processes of this machine: what they are given, what they report, and that they end."""

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hanlattice.annotation import Chunk, Job, local
from hanlattice.errors import HanlatticeError


class Variable:
    """An environment variable of the process that receives it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return os.getenv, (self.name,)


class Row:
    """A line of text for the process that receives it: the value of an environment variable there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return str.encode, (Variable(self.name),)


def children() -> set[str]:
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def chunk(number: int, *rows: Any) -> Chunk:
    return Chunk(number, "a.txt", "text", 1, list(rows), 1)


def test_a_worker_has_the_threads_of_the_job_and_the_path_of_this_process() -> None:
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH"]
    [part] = local(iter([chunk(5, *map(Row, names))]), Job(model="lite", threads=3))
    assert part.chunk == 5
    texts = [line.split('"')[3] for line in part.data.decode().splitlines()]
    assert texts == ["3", "3", "3", os.pathsep.join(filter(None, sys.path))]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its workers in /proc")
def test_workers_end_where_the_run_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def endless() -> Iterator[Chunk]:
        while True:
            taken.append(len(taken))
            yield chunk(taken[-1], "李明".encode())

    before = children()
    parts = local(endless(), Job(model="lite"), workers=2)
    assert {next(parts).chunk, next(parts).chunk} < set(range(6))
    assert len(children() - before) == 2
    parts.close()  # type: ignore[attr-defined]
    assert children() == before
    assert threading.active_count() == 1
    assert len(taken) < 12


def test_an_unexpected_error_of_a_worker_is_told() -> None:
    with pytest.raises(HanlatticeError, match=r"^unexpected AttributeError: 'int' object has no attribute"):
        list(local(iter([chunk(0, 3)]), Job(model="lite")))
    with pytest.raises(HanlatticeError, match="no such folder"):
        list(local(iter([chunk(0, b"x")]), Job(model="/no/such/model")))
    assert list(local(iter([]), Job(model="/no/such/model"), workers=3)) == [], "no worker starts without a chunk"
    assert threading.active_count() == 1
