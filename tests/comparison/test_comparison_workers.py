"""Tests of runs in parallel processes."""

import subprocess
import sys
from pathlib import Path

from compared import ENVIRONMENT, Finished, RecordingWatcher, saved, systems, wait_until
from hanlattice.comparison import compare
from hanlattice.comparison.trial import RESULT
from hanlattice.model.digests import CHECKPOINT


def test_parallel_runs_give_the_same_table(finished: Finished, tmp_path: Path) -> None:
    watcher = RecordingWatcher()
    rows, failures = compare(systems(), tmp_path, seeds=(1, 2), speed=False, jobs=2, watcher=watcher)
    assert failures == {}
    assert rows == finished.rows
    assert sorted(watcher.ended) == sorted(watcher.started)
    assert len(watcher.ended) == 4
    assert watcher.epochs.count(("slow seed 1", 2)) == 1


def test_killed_comparison_leaves_no_process_behind(tmp_path: Path) -> None:
    """The comparison is killed as soon as both runs have a checkpoint. Then their workers stop."""
    long = {name: config.with_settings({"training": {"epochs": 500}}) for name, config in systems().items()}
    arguments = [str(saved(tmp_path, name, config)) for name, config in long.items()]
    command = [sys.executable, "-m", "hanlattice", "compare", *arguments]
    command += ["--output", str(tmp_path / "runs"), "--seeds", "1", "--jobs", "2", "--no-speed"]
    folders = [tmp_path / "runs" / name / "1" for name in ("slow", "wide")]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: all((folder / CHECKPOINT).exists() for folder in folders))
        finally:
            process.kill()
        process.communicate(timeout=100)  # the workers keep this pipe open until they exit
    assert all(len((folder / "log.jsonl").read_text().splitlines()) < 500 for folder in folders)
    assert not list(tmp_path.rglob(RESULT))
