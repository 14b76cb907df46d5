"""Parts of a comparison, without training: settings that differ, results on disk, failures, rounds and workers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hanlattice.comparison import compare, run, running, speed
from hanlattice.comparison.run import Silent
from hanlattice.comparison.running import StopTrial, run_trials
from hanlattice.comparison.speed import Speed, measure_speeds
from hanlattice.comparison.table import MeanF1
from hanlattice.comparison.trial import RESULT, Result, Trial, difference
from hanlattice.comparison.workers import _read_messages
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, HanlatticeError
from hanlattice.evaluation.scores import Recall, Score
from hanlattice.model.folder import CONFIG

RUN = Result(Score(4, 4, 2), Score(2, 2, 1), ((1, 1, 1), (1, 1, 0)), 9, 5, 2, 3, 1.5, "0", {"nested": Recall(1, 2)})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": {"x": 1}}, {"a": {"x": 1}}, None),
        ({"b": 1, "a": {"y": "重", "x": 1}}, {"b": 2, "a": {"y": "庆", "x": 1}}, 'a.y = "重", not "庆"'),
        ({"a": 1}, {"a": 1, "b": True}, "b = the default, not true"),
        ({"a": [1]}, {}, "a = [1], not the default"),
    ],
)
def test_the_first_setting_that_differs(old: dict[str, Any], new: dict[str, Any], expected: str | None) -> None:
    assert difference(old, new) == expected


@pytest.mark.parametrize(
    ("saved", "given", "least_steps", "same"),
    [(3, 3, 0, True), (5, 3, 0, False), (5, 3, 1, True), (3, 5, 1, False), (3, 3, 1, True)],
)
def test_training_may_have_saved_more_epochs(
    tmp_path: Path, saved: int, given: int, least_steps: int, same: bool
) -> None:
    """It does if ``training.least_steps`` asks for them."""
    before, now = (
        Config().with_settings({"training": {"epochs": n, "least_steps": least_steps}}) for n in (saved, given)
    )
    trial = Trial("a", 1, now, tmp_path)
    trial.check_settings()
    save_config(before, tmp_path / CONFIG)
    if same:
        trial.check_settings()
    else:
        with pytest.raises(ConfigError, match=rf"contains a run with training.epochs = {saved}, not {given};"):
            trial.check_settings()


@pytest.mark.parametrize("result", [RUN, replace(RUN, test=None, sentences=(), forms={})])
def test_a_result_is_written_and_read(tmp_path: Path, result: Result) -> None:
    result.save(tmp_path / RESULT)
    assert Result.load(tmp_path / RESULT) == result
    assert Trial("a", 1, Config(), tmp_path).result == result
    assert Trial("a", 1, Config(), tmp_path / "b").result is None


class Said(Silent):
    """Records what is said and what ends."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.ended: list[tuple[str, Result | str]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def end(self, trial: Trial, outcome: Result | str) -> None:
        self.ended.append((str(trial), outcome))


def finish(folder: Path, *runs: str, f1: float = 0.5) -> None:
    for name in runs:
        (folder / name).mkdir(parents=True)
        replace(RUN, dev=Score(4, 4, round(4 * f1))).save(folder / name / RESULT)


SYSTEMS = {"a": Config(), "b": Config().with_settings({"encoder": {"layers": 3}})}


class TestCompare:
    def test_finished_runs_are_not_repeated(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By default there are three seeds, the speeds are measured, and the first system is the reference."""
        finish(tmp_path, *(f"{name}/{seed}" for name in "ab" for seed in (1, 2, 3)))
        measured: list[list[str]] = []

        def speeds(systems: dict[str, Config], *, say: Any) -> dict[str, Speed]:
            measured.append(list(systems))
            return {"a": Speed((2.0,), (4.0,)), "b": Speed((1.0,), (6.0,))}

        monkeypatch.setattr(run, "measure_speeds", speeds)
        watcher = Said()
        rows, failures = compare(SYSTEMS, tmp_path, watcher=watcher)
        assert (failures, watcher.ended, watcher.said) == ({}, [], ["6 of 6 runs are finished already"])
        assert measured == [["a", "b"]]
        assert [(row.system, row.train_speed, row.predict_speed) for row in rows] == [("a", 1, 1), ("b", 0.5, 1.5)]
        assert [(row.dev and row.dev.n, row.parameters, row.without_tables) for row in rows] == [(3, 9, 5)] * 2
        assert [row.difference is None for row in rows] == [True, False]
        assert rows[0].recalls == {"nested": RUN.forms["nested"].recall}
        other, _ = compare(SYSTEMS, tmp_path, reference="b")
        assert [(row.train_speed, row.difference is None) for row in other] == [(2, False), (1, True)]
        based, _ = compare(SYSTEMS, tmp_path, reference="b", baseline="a", speed=False)
        assert [(row.train_speed, row.difference is None) for row in based] == [(None, True), (None, False)]
        assert len(measured) == 2

    def test_failures(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        finish(tmp_path, "b/1")
        asked: list[int] = []

        def trials(next_trial: Any, jobs: int, watcher: object) -> Iterator[tuple[Trial, str | None]]:
            asked.append(jobs)
            for reason in ("no memory", None, None):
                trial = next_trial()
                if str(trial) == "b seed 2":
                    finish(tmp_path, "b/2")
                yield trial, reason
            assert next_trial() is None

        monkeypatch.setattr(run, "run_trials", trials)
        watcher = Said()
        rows, failures = compare(SYSTEMS, tmp_path, seeds=(1, 2), watcher=watcher)
        assert failures == {"a seed 1": "no memory", "a seed 2": "it has no result"}
        assert watcher.said == ["1 of 4 runs are finished already"]
        assert [name for name, _ in watcher.ended] == ["a seed 1", "a seed 2", "b seed 2"]
        assert [outcome for _, outcome in watcher.ended][:2] == ["no memory", "it has no result"]
        assert isinstance(watcher.ended[2][1], Result)
        assert [(row.system, row.train_speed) for row in rows] == [("b", None)], "the reference has no result"
        assert asked == [1]

    @pytest.mark.parametrize(
        ("systems", "seeds", "message"),
        [
            ({}, (1,), "nothing to compare; give at least one system and one seed"),
            (SYSTEMS, (), "nothing to compare"),
            (SYSTEMS, (2, 1, 2), "a seed is given twice in 2, 1, 2"),
            (
                {"a": Config(), "b": Config().with_settings({"data": {"dev": "x"}})},
                (1,),
                "data.dev is 'x' for b, but '' for a, so their scores cannot be compared; set the same for all"
                " systems with --dev",
            ),
            *(
                (
                    {"a": Config(), "b": Config().with_settings({"data": {name: value}})},
                    (1,),
                    f"data.{name} is {value!r} for b, but {other!r} for a, so their scores cannot be compared; set"
                    f" the same for all systems with {option}",
                )
                for name, value, other, option in (
                    ("labels", {"LOC": "PER"}, {}, "--data.labels"),
                    ("format", "conll", "", "--data.format"),
                    ("scheme", "BIO", "", "--data.scheme"),
                    ("train", ("x",), (), "--train"),
                    ("dev_share", 0.5, 0.1, "--data.dev_share"),
                )
            ),
            (
                {"a": Config().with_settings({"data": {"test": "y"}}), "b": Config()},
                (1,),
                "data.test is '' for b, but 'y' for a, so their scores cannot be compared; set the same for all"
                " systems with --test",
            ),
        ],
    )
    def test_what_cannot_be_compared(
        self, tmp_path: Path, systems: dict[str, Config], seeds: tuple[int, ...], message: str
    ) -> None:
        with pytest.raises(ConfigError) as error:
            compare(systems, tmp_path, seeds=seeds)
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, None),
        (StopTrial(), None),
        (HanlatticeError("broken"), "broken"),
        (MemoryError(), "out of memory; try a smaller training.batch_size"),
    ],
)
def test_how_a_trial_ends(error: Exception | None, reason: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(self: Trial, watcher: Any) -> None:
        watcher.epoch({"epoch": 1})
        if error is not None:
            raise error

    monkeypatch.setattr(Trial, "run", train)
    events: list[Any] = []
    watcher: Any = SimpleNamespace(begin=events.append, epoch=lambda trial, row: events.append((trial, row)))
    trials = [Trial(name, 1, Config(), Path(name)) for name in "ab"]
    waiting = iter(trials)
    ended = list(run_trials(lambda: next(waiting, None), 1, watcher))
    assert ended == [(trial, reason) for trial in trials]
    assert events == [event for trial in trials for event in (trial, (trial, {"epoch": 1}))]


@pytest.mark.parametrize(
    ("status", "lines", "reason"),
    [
        (0, ['{"row": {"epoch": 1}}'], None),
        (1, ['{"error": "broken", "cannot_write": false}'], "broken"),
        (1, ['{"error": "full", "cannot_write": true}'], "full"),
        (-9, [], "killed by signal 9, possibly because memory ran out; use fewer --jobs"),
        (3, ['{"row": {"epoch": 1}}'], "its process exited with status 3; run with --jobs 1 for details"),
    ],
)
def test_messages_of_a_worker(status: int, lines: list[str], reason: str | None) -> None:
    waited: list[bool] = []

    class Process:
        stdout, returncode = iter(lines), status

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            assert waited, "its end would close the input of a process that still runs"

        def wait(self) -> None:
            waited.append(True)

    trial, messages = Trial("a", 1, Config(), Path("a")), Queue[Any]()
    _read_messages(trial, Process(), messages)  # type: ignore[arg-type]
    rows = [(trial, {"row": {"epoch": 1}})] if lines and "row" in lines[0] else []
    assert list(messages.queue) == [*rows, (trial, {"end": reason, "cannot_write": reason == "full"})]


def test_several_jobs_are_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_in_processes", lambda next_trial, jobs, watcher: iter([jobs]))
    monkeypatch.setattr(running, "_in_this_process", lambda next_trial, watcher: iter([1]))
    run_all: Any = run_trials
    assert [list(run_all(lambda: None, jobs, None)) for jobs in (1, 2)] == [[1], [2]]


def test_every_system_is_timed_in_every_round_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Config, int]] = []
    order: list[tuple[str, str]] = []
    kept: list[bool] = []
    names = iter("ab")

    class Timed:
        def __init__(self, config: Config, sentences: int, sizes: Sequence[int]):
            made.append((config, sentences))
            assert sizes == [config.training.batch_size]
            self.name, self.n = next(names), 0

        def train(self, size: int) -> float:
            order.append((self.name, "train"))
            self.n += 1
            return float(self.n)

        def predict(self) -> float:
            order.append((self.name, "predict"))
            return 10.0 * self.n

    monkeypatch.setattr(speed, "TimedSystem", Timed)
    monkeypatch.setattr(speed, "keep_freed_memory", lambda: kept.append(True))
    said: list[str] = []
    systems = {"a": Config(), "b": Config()}
    found = measure_speeds(systems, say=said.append)
    assert found == dict.fromkeys("ab", Speed((2, 3, 4, 5, 6), (20, 30, 40, 50, 60)))
    assert order == [(name, kind) for _ in range(6) for name in "ab" for kind in ("train", "predict")]
    assert made == [(config, 200) for config in systems.values()]
    assert kept == [True]
    assert said == [
        *(f"speed: preparing {name}" for name in "ab"),
        "speed: warming up",
        *(f"speed: round {i} of 5" for i in range(1, 6)),
    ]


def test_speeds_are_characters_per_second() -> None:
    clock = SimpleNamespace(now=3.0)

    def takes(seconds: float) -> None:
        clock.now += seconds

    def pipe(texts: list[str], batch_size: int) -> Iterator[str]:
        for text in texts:
            takes(0.25)
            yield text

    system = object.__new__(speed.TimedSystem)
    examples = [SimpleNamespace(encoded="重庆人"), SimpleNamespace(encoded="李明")]
    system.run = SimpleNamespace(tasks=[SimpleNamespace(examples=examples)], ner=SimpleNamespace(pipe=pipe))  # type: ignore[assignment]
    system.clock = lambda: clock.now
    system.loops = {8: SimpleNamespace(epoch=lambda: takes(0.5), progress=None)}  # type: ignore[dict-item]
    system.texts = ["重庆人和", "李明"]
    assert system.train(8) == 5 / 0.5
    assert system.loops[8].progress is not None
    assert system.predict() == 6 / 0.5


def test_the_same_sentences_are_sampled_for_each_system() -> None:
    items = list(range(50))
    assert speed.drawn(items, 7) == np.random.default_rng(0).permutation(50)[:7].tolist()
    assert sorted(speed.drawn(items, 99)) == items


@pytest.mark.parametrize(
    ("correct", "expected", "shown"),
    [
        ([], None, None),
        ([2], MeanF1(0.5, 0.0, 1), "50.00 (1)"),
        ([1, 3], MeanF1(0.5, 0.125**0.5, 2), "50.00 ± 35.36 (2)"),
    ],
)
def test_mean_f1(correct: list[int], expected: MeanF1 | None, shown: str | None) -> None:
    found = MeanF1.of([Score(4, 4, n) for n in correct])
    if found is None or expected is None:
        assert found is expected
    else:
        assert (found.mean, found.n, str(found)) == (expected.mean, expected.n, shown)
        assert found.deviation == pytest.approx(expected.deviation)
