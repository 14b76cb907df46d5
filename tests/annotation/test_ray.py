"""The Ray engine: the same bytes as the local engine. Each run is a process with a time limit."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tiny

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

TEXTS = [document.text for document in tiny.documents()] * 4
SECONDS = 240

# Two actors of half a core each; one is killed with signal 9 as its first part comes back.
LOST = """
import os, signal, sys
from pathlib import Path
import ray
from hanlattice.annotation import Job, annotate
from hanlattice.annotation.ray import on_ray

model, given, output = sys.argv[1:]
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)


killed = []
def engine(chunks, job):
    for part in on_ray(chunks, job, workers=2, cpus_per_worker=0.5):
        if not killed:
            commands = {p.name: (p / "cmdline").read_bytes() for p in Path("/proc").iterdir() if p.name.isdecimal()}
            killed.append(next(int(pid) for pid, line in commands.items() if line.startswith(b"ray::_Actor")))
            os.kill(killed[0], signal.SIGKILL)
        yield part

run = annotate([given], output, Job(model=model), engine, chunk_rows=10)
assert killed and run.rows == 120, run
"""


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ray") / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(lines: Path) -> bytes:
    model = ("--model", tiny.trained(), "--chunk-rows", 10)
    done = run("-m", "hanlattice", "annotate", lines, lines.parent / "whole.jsonl", *model)
    assert done.returncode == 0, done.stderr
    return (lines.parent / "whole.jsonl").read_bytes()


def test_ray_equals_the_local_engine(lines: Path, whole: bytes) -> None:
    """With more actors than cores: the run does not wait for actors that cannot be placed."""
    output = lines.parent / "ray.jsonl"
    model = ("--model", tiny.trained(), "--chunk-rows", 10)
    workers = ("--engine", "ray", "--workers", (os.cpu_count() or 1) + 1)
    done = run("-m", "hanlattice", "annotate", lines, output, *model, *workers)
    assert done.returncode == 0, done.stderr
    assert output.read_bytes() == whole


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds actors in /proc")
def test_a_lost_actor_is_replaced(lines: Path, whole: bytes) -> None:
    done = run("-c", LOST, tiny.trained(), lines, lines.parent / "lost.jsonl")
    assert done.returncode == 0, done.stderr
    assert (lines.parent / "lost.jsonl").read_bytes() == whole


def test_an_actor_that_does_not_fit_is_an_error(lines: Path) -> None:
    asked = ("--engine", "ray", "--gpus-per-worker", 99)
    done = run("-m", "hanlattice", "annotate", lines, lines.parent / "none.jsonl", *asked)
    assert done.returncode == 1
    assert "error: a worker needs 1 CPU and 99 GPU, but this machine has" in done.stderr
