"""Comparisons: nothing is done twice, the table is the same whatever happened, and p means what it says."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tiny
from hanlattice import api, corpus
from hanlattice.cli import main
from hanlattice.comparison import Row, Silent, compare
from hanlattice.comparison.speed import Speed, ratios
from hanlattice.comparison.trial import RESULT, Result, Trial
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.model.digests import CHECKPOINT
from hanlattice.spans import Span

EPOCHS = 3


def systems() -> dict[str, Config]:
    """Two that learn differently fast, so that their scores differ."""
    slow = tiny.config(epochs=EPOCHS, learning_rate=0.005, evaluate_from=2)
    return {"slow": slow, "quick/wide": slow.with_settings({"encoder": {"d_model": 24}})}


class Memory(Silent):
    """Remembers what happened, and stops a comparison at an epoch of its last run."""

    def __init__(self, stop: tuple[str, int] = ("", 0)):
        self.stop = stop
        self.begun: list[str] = []
        self.epochs: list[tuple[str, int]] = []
        self.ended: list[str] = []

    def begin(self, trial: Trial) -> None:
        self.begun.append(str(trial))

    def epoch(self, trial: Trial, row: dict[str, Any]) -> None:
        self.epochs.append((str(trial), row["epoch"]))
        if self.epochs[-1] == self.stop:
            raise KeyboardInterrupt

    def end(self, trial: Trial, outcome: Result | str) -> None:
        self.ended.append(str(trial))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    """A comparison that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    rows, failures = compare(systems(), folder, seeds=(1, 2), speed=False)
    assert failures == {}
    return folder, rows


class TestTable:
    def test_its_scores_are_those_of_the_runs_one_by_one(self, whole: tuple[Path, list[Row]]) -> None:
        folder, rows = whole
        assert [row.system for row in rows] == ["slow", "quick/wide"]
        for row in rows:
            scores = []
            for seed in ("1", "2"):
                ner = api.load(folder / row.system / seed)
                scores.append(api.evaluate(ner, tiny.folder() / "corpus.bmes").micro.f1)
                total = sum(p.numel() for p in ner.tagger.parameters())
                assert row.parameters == total
                tables = ("chars.weight", "bigrams.weight", "words.table.weight")
                held = sum(p.numel() for name, p in ner.tagger.named_parameters() if name.endswith(tables))
                assert row.without_tables == total - held
            for spread in (row.dev, row.test):
                assert spread is not None
                assert (spread.mean, spread.n) == (pytest.approx(np.mean(scores)), 2)
                assert spread.deviation == pytest.approx(np.std(scores, ddof=1))

    def test_what_not_every_system_can_find_has_columns(self, tmp_path: Path, capsys: Any) -> None:
        """Of six nested entities a CRF can find three, and biaffine scores all."""
        text = "李明在重庆大学工作"
        entities = [Entity.of(text, span) for span in (Span(3, 5, "LOC"), Span(3, 7, "ORG"))]
        corpus.write([Document(text, tuple(entities))] * 3, tmp_path / "nested.jsonl", "jsonl")
        data = {"train": [str(tmp_path / "nested.jsonl")] * 2, "outermost": True}
        data |= {"dev": data["train"][0], "test": data["train"][0]}
        flat = tiny.config(epochs=1).with_settings({"data": data})
        nested = flat.with_settings({"decoder": {"name": "biaffine", "d_span": 4}, "data": {"outermost": False}})
        pair = {"flat": flat, "nested": nested}
        rows, failures = compare(pair, tmp_path / "runs", seeds=(1, 2), speed=False)
        assert failures == {}
        assert [row.recalls["reachable"] for row in rows] == [0.5, 1.0]
        assert rows[0].recalls["nested"] <= 0.5
        files = [_saved(tmp_path, name, config) for name, config in pair.items()]
        options = ["--output", tmp_path / "runs", "--seeds", "1,2", "--no-speed", "--quiet", "--format", "md"]
        with pytest.raises(SystemExit):
            main(["compare", *map(str, [*files, *options])])
        head, _, first, second, *_ = capsys.readouterr().out.splitlines()
        assert head.endswith("| nested recall | reachable recall |")
        assert first.endswith("| 50.00 |")
        assert second.endswith("| 100.00 |")

    def test_only_others_than_the_baseline_differ_from_it(self, whole: tuple[Path, list[Row]]) -> None:
        _, (slow, wide) = whole
        assert slow.difference is None
        assert slow.test
        assert wide.test
        assert wide.difference
        assert 0 < wide.difference.p <= 1
        pooled = wide.difference.difference  # F1 of all runs together is close to the mean of theirs
        assert pooled == pytest.approx(wide.test.mean - slow.test.mean, abs=0.02)

    def test_the_baseline_and_the_reference_may_be_others(self, whole: tuple[Path, list[Row]]) -> None:
        folder, (_, wide) = whole
        (slow, other), _ = compare(systems(), folder, seeds=(1, 2), speed=False, baseline="quick/wide")
        assert other.difference is None
        assert slow.difference
        assert wide.difference
        assert slow.difference.difference == -wide.difference.difference

    def test_speeds_are_multiples_of_the_reference(self, whole: tuple[Path, list[Row]]) -> None:
        folder, _ = whole
        memory = Memory()
        (slow, wide), _ = compare(systems(), folder, seeds=(1, 2), reference="quick/wide", watcher=memory)
        assert memory.begun == []
        assert (wide.train_speed, wide.predict_speed) == (1.0, 1.0)
        assert slow.train_speed
        assert slow.predict_speed
        assert 0.2 < slow.train_speed < 5
        assert 0.2 < slow.predict_speed < 5

    def test_ratios_are_formed_within_a_round(self) -> None:
        # Twice as fast in every round, on a machine that is ten times slower in the second.
        reference = Speed((100.0, 10.0, 100.0), (7.0, 70.0, 7.0))
        assert ratios(Speed((200.0, 20.0, 200.0), (14.0, 140.0, 14.0)), reference) == (2.0, 2.0)
        assert ratios(Speed((300.0, 20.0, 100.0), (7.0, 7.0, 7.0)), reference) == (2.0, 1.0)


class TestContinued:
    def test_stopped_and_continued_it_gives_the_same_table(
        self, whole: tuple[Path, list[Row]], tmp_path: Path
    ) -> None:
        with pytest.raises(KeyboardInterrupt):
            compare(systems(), tmp_path, seeds=(1, 2), speed=False, watcher=Memory(("slow seed 2", 2)))
        assert (tmp_path / "slow" / "2" / CHECKPOINT).exists()
        memory = Memory()
        rows, _ = compare(systems(), tmp_path, seeds=(1, 2), speed=False, watcher=memory)
        assert rows == whole[1]
        assert memory.begun == ["slow seed 2", "quick/wide seed 1", "quick/wide seed 2"]
        assert memory.epochs[0] == ("slow seed 2", 3)

    def test_a_run_that_was_trained_but_not_scored_is_only_scored(
        self, whole: tuple[Path, list[Row]], tmp_path: Path
    ) -> None:
        one = {"slow": systems()["slow"]}
        compare(one, tmp_path, seeds=(1,), speed=False)
        result = tmp_path / "slow" / "1" / RESULT
        before = result.read_bytes()
        result.unlink()
        memory = Memory()
        compare(one, tmp_path, seeds=(1,), speed=False, watcher=memory)
        assert (memory.begun, memory.epochs) == (["slow seed 1"], [])
        assert result.read_bytes() == before

    def test_further_systems_and_seeds_join_a_finished_table(
        self, whole: tuple[Path, list[Row]], tmp_path: Path
    ) -> None:
        one = {"slow": systems()["slow"]}
        compare(one, tmp_path, seeds=(2,), speed=False)
        memory = Memory()
        rows, _ = compare(one, tmp_path, seeds=(1, 2), speed=False, watcher=memory)
        assert memory.begun == ["slow seed 1"]
        assert rows == whole[1][:1]

    @pytest.mark.parametrize("change", [{"encoder": {"heads": 4}}, {"training": {"epochs": 4}}])
    def test_changed_settings_are_refused_before_anything_runs(
        self, whole: tuple[Path, list[Row]], change: dict[str, Any]
    ) -> None:
        changed = {"new": systems()["slow"], "slow": systems()["slow"].with_settings(change)}
        [(room, [(name, value)])] = [(room, list(rows.items())) for room, rows in change.items()]
        memory = Memory()
        with pytest.raises(ConfigError, match=rf"slow.1 holds a run with {room}\.{name} = \d, not {value}; "):
            compare(changed, whole[0], seeds=(1, 2), speed=False, watcher=memory)
        assert memory.begun == []


class TestSideBySide:
    def test_processes_give_the_same_table(self, whole: tuple[Path, list[Row]], tmp_path: Path) -> None:
        memory = Memory()
        rows, failures = compare(systems(), tmp_path, seeds=(1, 2), speed=False, jobs=2, watcher=memory)
        assert failures == {}
        assert rows == whole[1]
        assert sorted(memory.ended) == sorted(memory.begun)
        assert len(memory.ended) == 4
        assert memory.epochs.count(("slow seed 1", 2)) == 1

    def test_a_run_that_fails_does_not_stop_the_others(self, tmp_path: Path) -> None:
        broken = {"device": "cuda:77"}
        mixed = {"good": tiny.config(epochs=1), "bad": tiny.config(epochs=1, **broken)}
        for jobs in (1, 2):
            rows, failures = compare(mixed, tmp_path / str(jobs), seeds=(1,), speed=False, jobs=jobs)
            assert [row.system for row in rows] == ["good"]
            assert list(failures) == ["bad seed 1"]
            assert "training.device 'cuda:77' cannot be used here" in failures["bad seed 1"]

    def test_killed_it_leaves_no_process_behind_and_goes_on(
        self, whole: tuple[Path, list[Row]], tmp_path: Path
    ) -> None:
        """Long runs, killed as soon as each has a checkpoint: soon nobody is at work any more."""
        long = {name: config.with_settings({"training": {"epochs": 500}}) for name, config in systems().items()}
        arguments = [str(_saved(tmp_path, name, config)) for name, config in long.items()]
        command = [sys.executable, "-m", "hanlattice", "compare", *arguments]
        command += ["--output", str(tmp_path / "runs"), "--seeds", "1", "--jobs", "2", "--no-speed"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        folders = [tmp_path / "runs" / name / "1" for name in ("slow", "wide")]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
            try:
                _wait_until(lambda: all((folder / CHECKPOINT).exists() for folder in folders))
            finally:
                process.kill()
            process.communicate(timeout=100)  # its workers hold this pipe open for as long as they live
        assert all(len((folder / "log.jsonl").read_text().splitlines()) < 500 for folder in folders)
        assert not list(tmp_path.rglob(RESULT))


def _wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("still not after five minutes")


def _saved(folder: Path, name: str, config: Config) -> Path:
    path = folder / f"{name.split('/')[-1]}.toml"
    save_config(config, path)
    return path


class TestRefused:
    def test_systems_that_are_scored_on_different_corpora(self, tmp_path: Path) -> None:
        other = systems()["slow"].with_settings({"data": {"test": "elsewhere.bmes"}})
        with pytest.raises(ConfigError, match=r"data\.test is 'elsewhere.bmes' for b, but '.*' for a; .*--test"):
            compare({"a": systems()["slow"], "b": other}, tmp_path)

    def test_a_setting_that_does_not_exist_before_anything_runs(self, tmp_path: Path) -> None:
        bad = systems()["slow"].with_settings({"encoder": {"headz": 4}})
        with pytest.raises(ConfigError, match="no setting 'headz'; did you mean 'heads'"):
            compare({"good": systems()["slow"], "bad": bad}, tmp_path / "runs")
        assert not (tmp_path / "runs").exists()

    def test_a_seed_that_is_named_twice(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="a seed is named twice in 1, 2, 1"):
            compare(systems(), tmp_path, seeds=(1, 2, 1))

    def test_a_reference_that_is_not_compared(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"'quick' is none of the systems .*did you mean 'quick/wide'"):
            compare(systems(), tmp_path, reference="quick")

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"dev": 3}'])
    def test_a_result_that_is_none(self, tmp_path: Path, text: str) -> None:
        folder = tmp_path / "slow" / "1"
        folder.mkdir(parents=True)
        (folder / RESULT).write_text(text)
        with pytest.raises(DataError, match=r"result\.json: is no result of a run; remove it"):
            compare(systems(), tmp_path, seeds=(1,))


class Printed(NamedTuple):
    code: int
    out: str
    err: str


class TestCommand:
    @pytest.fixture
    def call(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Printed]:
        """The verb, on the two systems as files and the folder of finished runs."""

        def run(*arguments: object) -> Printed:
            capsys.readouterr()
            with pytest.raises(SystemExit) as left:
                main(["compare", *map(str, arguments)])
            return Printed(int(left.value.code or 0), *capsys.readouterr())

        return run

    def test_table_markdown_and_json_say_the_same(
        self, call: Callable[..., Printed], whole: tuple[Path, list[Row]], tmp_path: Path
    ) -> None:
        folder, (slow, wide) = whole
        files = [f"{name}={_saved(tmp_path, name, config)}" for name, config in systems().items()]
        common = [*files, "--output", folder, "--seeds", "1,2", "--no-speed"]
        found = call(*common, "--format", "jsonl")
        assert found.code == 0, found.err
        assert [json.loads(line) for line in found.out.splitlines()] == [slow.to_dict(), wide.to_dict()]
        assert found.err == "4 of 4 runs are finished already\n"
        assert wide.difference
        cells = ["quick/wide", f"{wide.parameters:,}", f"{wide.without_tables:,}", "", ""]
        cells += [str(wide.dev), str(wide.test), f"{100 * wide.difference.difference:+.2f}"]
        cells += [f"{wide.difference.p:.4f}", f"{wide.difference.adjusted_p:.4f}"]
        markdown = call(*common, "--format", "md", "--quiet")
        assert markdown.out.splitlines()[3] == f"| {' | '.join(cells)} |"
        assert markdown.err == ""
        assert markdown.out.splitlines()[-1] == (
            "p: hierarchical bootstrap over runs (2 and 2) and sentences. p (Holm): corrected for 1 comparison."
        )
        table = call(*common)
        assert re.split(" {2,}", table.out.splitlines()[2]) == [cell for cell in cells if cell]

    def test_overrides_are_for_all(self, call: Callable[..., Printed], tmp_path: Path) -> None:
        files = [f"{name}={_saved(tmp_path, name, config)}" for name, config in systems().items()]
        found = call(*files, "--output", tmp_path / "runs", "--seeds", 3, "--no-speed", "--training.epochs", 1)
        assert found.code == 0, found.err
        lines = found.err.splitlines()
        assert [line.split(":")[0] for line in lines] == ["slow seed 3", "quick/wide seed 3"]
        assert all("best epoch 1 of 1" in line for line in lines)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["flat/weibo", "x=flat/weibo", "flat/weibo"], "two systems are called 'flat/weibo'; name one of them"),
            (["flat/weibu"], "the package has no settings 'flat/weibu'; it has flat/weibo"),
            (["../x=flat/weibo"], "'../x' cannot name a system"),
            (["flat/weibo", "--encoder.headz", "2"], "no setting 'headz'; did you mean 'heads'"),
        ],
    )
    def test_what_it_refuses(
        self, call: Callable[..., Printed], tmp_path: Path, arguments: list[str], message: str
    ) -> None:
        found = call(*arguments, "--output", tmp_path / "runs")
        assert (found.code, found.out) == (1, "")
        [line] = found.err.splitlines()
        assert line.startswith("error: ")
        assert message in line

    def test_seeds_are_numbers(self, call: Callable[..., Printed], tmp_path: Path) -> None:
        found = call("flat/weibo", "--output", tmp_path, "--seeds", "1,two")
        assert found.code == 2
        assert "'1,two' is not a list of whole numbers such as 1,2,3" in " ".join(found.err.split())

    def test_ctrl_c_is_one_line(self, tmp_path: Path) -> None:
        long = systems()["slow"].with_settings({"training": {"epochs": 500}})
        command = [sys.executable, "-m", "hanlattice", "compare", str(_saved(tmp_path, "slow", long))]
        command += ["--output", str(tmp_path / "runs"), "--seeds", "1,2", "--jobs", "2", "--no-speed"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        folders = [tmp_path / "runs" / "slow" / seed for seed in "12"]
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
            try:
                _wait_until(lambda: all((folder / CHECKPOINT).exists() for folder in folders))
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=100)
            finally:
                process.kill()
        assert process.returncode == 130
        assert err == "error: stopped; the same command resumes the comparison\n"
        assert not list((tmp_path / "runs").rglob(".*"))
