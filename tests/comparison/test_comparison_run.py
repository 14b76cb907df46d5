"""Tests of whole comparisons: they resume, repeat no finished run, and report errors and failed runs."""

from pathlib import Path
from typing import Any

import pytest

import tiny
from compared import Finished, RecordingWatcher, systems
from hanlattice.comparison import compare
from hanlattice.comparison.trial import RESULT
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from hanlattice.model.digests import CHECKPOINT


class TestResumed:
    def test_resumed_comparison_gives_the_same_table(self, finished: Finished, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            compare(systems(), tmp_path, seeds=(1, 2), speed=False, watcher=RecordingWatcher(("slow seed 2", 2)))
        assert (tmp_path / "slow" / "2" / CHECKPOINT).exists()
        watcher = RecordingWatcher()
        rows, _ = compare(systems(), tmp_path, seeds=(1, 2), speed=False, watcher=watcher)
        assert rows == finished.rows
        assert watcher.started == ["slow seed 2", "quick/wide seed 1", "quick/wide seed 2"]
        assert watcher.epochs[0] == ("slow seed 2", 3)

    def test_run_that_needed_more_epochs_than_its_settings_resumes(self, tmp_path: Path) -> None:
        only_slow = {"slow": systems()["slow"].with_settings({"training": {"epochs": 1, "least_steps": 10}})}
        with pytest.raises(KeyboardInterrupt):
            compare(only_slow, tmp_path, seeds=(1,), speed=False, watcher=RecordingWatcher(("slow seed 1", 1)))
        watcher = RecordingWatcher()
        compare(only_slow, tmp_path, seeds=(1,), speed=False, watcher=watcher)
        assert watcher.epochs == [("slow seed 1", 2)]

    def test_runs_on_other_files_are_refused(self, tmp_path: Path) -> None:
        train = tmp_path / "train.bmes"
        lines = (tiny.folder() / "corpus.bmes").read_text("utf-8")
        train.write_text(lines, "utf-8")
        config = systems()["slow"].with_settings({"data": {"train": str(train)}, "training": {"epochs": 1}})
        compare({"slow": config}, tmp_path / "runs", seeds=(1,), speed=False)
        train.write_text(lines[: lines.index("\n\n") + 2], "utf-8")
        for seeds in ((1,), (1, 2)):
            with pytest.raises(ConfigError, match=r"data\.train.* changed since it began|train\.bmes"):
                compare({"slow": config}, tmp_path / "runs", seeds=seeds, speed=False)

    def test_speeds_of_a_system_that_begins_with_another_corpus(self, tmp_path: Path) -> None:
        more = {"auxiliary": {"more": {"corpus": str(tiny.folder() / "corpus.bmes")}}, "data": {"from_epoch": 2}}
        config = systems()["slow"].with_settings({**more, "training": {"epochs": 2}})
        (row,), failures = compare({"slow": config}, tmp_path, seeds=(1,))
        assert not failures
        assert row.train_speed == 1

    def test_run_that_is_trained_but_not_scored_is_only_scored(self, finished: Finished, tmp_path: Path) -> None:
        only_slow = {"slow": systems()["slow"]}
        compare(only_slow, tmp_path, seeds=(1,), speed=False)
        result = tmp_path / "slow" / "1" / RESULT
        before = result.read_bytes()
        result.unlink()
        watcher = RecordingWatcher()
        compare(only_slow, tmp_path, seeds=(1,), speed=False, watcher=watcher)
        assert (watcher.started, watcher.epochs) == (["slow seed 1"], [])
        assert result.read_bytes() == before

    def test_more_seeds_are_added_to_a_finished_comparison(self, finished: Finished, tmp_path: Path) -> None:
        only_slow = {"slow": systems()["slow"]}
        compare(only_slow, tmp_path, seeds=(2,), speed=False)
        watcher = RecordingWatcher()
        rows, _ = compare(only_slow, tmp_path, seeds=(1, 2), speed=False, watcher=watcher)
        assert watcher.started == ["slow seed 1"]
        assert rows == finished.rows[:1]

    @pytest.mark.parametrize("change", [{"encoder": {"heads": 4}}, {"training": {"epochs": 4}}])
    def test_changed_settings_are_an_error_before_any_run(self, finished: Finished, change: dict[str, Any]) -> None:
        changed = {"new": systems()["slow"], "slow": systems()["slow"].with_settings(change)}
        [(section, [(name, value)])] = [(key, list(values.items())) for key, values in change.items()]
        watcher = RecordingWatcher()
        with pytest.raises(ConfigError, match=rf"slow.1 contains a run with {section}\.{name} = \d, not {value}; "):
            compare(changed, finished.folder, seeds=(1, 2), speed=False, watcher=watcher)
        assert watcher.started == []


def test_failed_run_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = {"device": "cuda:77"}
    mixed = {"good": tiny.config(epochs=1), "bad": tiny.config(epochs=1, **broken)}
    for jobs in (1, 2):
        rows, failures = compare(mixed, tmp_path / str(jobs), seeds=(1,), speed=False, jobs=jobs)
        assert [row.system for row in rows] == ["good"]
        assert list(failures) == ["bad seed 1"]
        assert "training.device 'cuda:77' cannot be used here" in failures["bad seed 1"]


class TestErrors:
    def test_different_test_corpora(self, tmp_path: Path) -> None:
        other = systems()["slow"].with_settings({"data": {"test": "elsewhere.bmes"}})
        with pytest.raises(ConfigError, match=r"data\.test is 'elsewhere.bmes' for b, but '.*' for a, .*--test"):
            compare({"a": systems()["slow"], "b": other}, tmp_path)

    def test_an_output_that_is_a_file_is_one_error(self, tmp_path: Path) -> None:
        (tmp_path / "runs").write_text("notes", encoding="utf-8")
        with pytest.raises(ConfigError, match="runs is a file; name a folder for the runs"):
            compare(systems(), tmp_path / "runs", seeds=(1, 2), speed=False)

    def test_linear_taggers_are_refused_before_any_run(self, tmp_path: Path) -> None:
        linear = {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}}
        with pytest.raises(ConfigError, match=r"^b: linear taggers are not compared; train and evaluate each"):
            compare({"a": systems()["slow"], "b": Config().with_settings(linear)}, tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_unknown_setting_is_an_error_before_any_run(self, tmp_path: Path) -> None:
        bad = systems()["slow"].with_settings({"encoder": {"headz": 4}})
        with pytest.raises(ConfigError, match="no setting 'headz'; did you mean 'heads'"):
            compare({"good": systems()["slow"], "bad": bad}, tmp_path / "runs")
        assert not (tmp_path / "runs").exists()

    def test_seed_that_is_given_twice(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="a seed is given twice in 1, 2, 1"):
            compare(systems(), tmp_path, seeds=(1, 2, 1))

    def test_reference_that_is_not_a_compared_system(self, tmp_path: Path) -> None:
        with pytest.raises(
            ConfigError, match=r"'quick' is not one of the compared systems.*did you mean 'quick/wide'"
        ):
            compare(systems(), tmp_path, reference="quick")
