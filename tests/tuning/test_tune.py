"""Tests of whole searches: proposals, pruning, resumption, failures and limits."""

import errno
import json
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs the extra tune")

import hanlattice
import tiny
from compared import ENVIRONMENT, saved
from hanlattice.comparison.table import MeanF1
from hanlattice.comparison.trial import RESULT, Result, Trial
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, DataError, WriteError
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import WEIGHTS
from hanlattice.tuning import Silent, TunedTrial, Tuning
from hanlattice.tuning.results import State
from hanlattice.tuning.study import Study

SEARCH: dict[str, Any] = {"training.learning_rate": "1e-4..1e-1:log", "encoder.d_model": "8..24:8"}
EPOCHS, TRIALS = 3, 8


def base() -> Config:
    """Small settings whose test corpus does not exist, since a search does not read it."""
    changed = {"encoder": {"heads": 2}, "data": {"test": "nowhere.bmes"}}
    return tiny.config(epochs=EPOCHS).with_settings(changed)


class RecordingWatcher(Silent):
    """Records runs, epochs and results, and stops the search after a given epoch of a run."""

    def __init__(self, stop: tuple[str, int] = ("", 0)):
        self.stop = stop
        self.started: list[str] = []
        self.epochs: list[tuple[str, int]] = []
        self.results: list[int] = []
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def begin(self, run: Trial) -> None:
        self.started.append(str(run))

    def epoch(self, run: Trial, row: dict[str, Any]) -> None:
        self.epochs.append((str(run), row["epoch"]))
        if self.epochs[-1] == self.stop:
            raise KeyboardInterrupt

    def result(self, trial: TunedTrial) -> None:
        self.results.append(trial.number)


def facts(found: Tuning) -> list[tuple[Any, ...]]:
    """All of a search that does not depend on time and place."""
    return [(t.number, dict(t.settings), t.state, t.f1, t.epochs) for t in found.trials]


def scores(folder: Path) -> list[float]:
    """The best dev F1 up to each epoch, from the log of a run."""
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [max(row["dev_f1"] for row in rows[:n]) / 100 for n in range(1, len(rows) + 1)]


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Tuning:
    """A search with pruning by the median, which ran without interruption."""
    folder = tmp_path_factory.mktemp("search")
    return hanlattice.tune(base(), output=folder, search=SEARCH, trials=TRIALS, prune_from=1)


class TestResult:
    def test_trials_are_in_the_order_of_their_scores(self, found: Tuning) -> None:
        finished = [t.f1.mean for t in found.trials if t.state is State.finished and t.f1]
        assert finished == sorted(finished, reverse=True)
        assert [t.state for t in found.trials] == sorted((t.state for t in found.trials), key=list(State).index)
        assert sorted(t.number for t in found.trials) == [*range(1, TRIALS + 1)]
        assert found.best is found.trials[0]
        assert found.best.seconds > 0

    def test_values_are_within_their_ranges(self, found: Tuning) -> None:
        values = [dict(trial.settings) for trial in found.trials]
        assert all(list(v) == list(SEARCH) for v in values)
        assert all(1e-4 <= float(v["training.learning_rate"]) <= 1e-1 for v in values)
        assert {v["encoder.d_model"] for v in values} == {8, 16, 24}

    def test_best_settings_train_the_best_model(self, found: Tuning, tmp_path: Path) -> None:
        assert found.best
        assert found.best.f1
        assert found.best_settings == found.folder / "best.toml"
        run = hanlattice.train(found.best_settings, output=tmp_path / "model", test="")
        assert run.dev.micro.f1 == pytest.approx(found.best.f1.mean)
        weights = [folder / WEIGHTS for folder in (tmp_path / "model", found.best.folder / "1")]
        assert weights[0].read_bytes() == weights[1].read_bytes()

    def test_only_the_best_trial_keeps_its_model(self, found: Tuning) -> None:
        kept = [path.parent.parent.name for path in found.folder.rglob(WEIGHTS)]
        assert found.best
        assert kept == [f"{found.best.number:04}"]
        assert not list(found.folder.rglob(CHECKPOINT))


class TestPruning:
    def test_median_prunes_what_is_below_it_and_nothing_else(self, found: Tuning) -> None:
        """The rule is computed again from the logs: at least five finished trials, and not the last epoch."""
        curves = {t.number: scores(t.folder / "1") for t in found.trials}
        states = {t.number: t.state for t in found.trials}
        finished: list[list[float]] = []
        for number in sorted(curves):
            curve = curves[number]
            below = [
                epoch
                for epoch in range(1, EPOCHS)
                if len(finished) >= 5 and len(curve) >= epoch
                if curve[epoch - 1] < median(other[epoch - 1] for other in finished)
            ]
            assert (states[number] is State.pruned) == bool(below)
            assert len(curve) == (below[0] if below else EPOCHS)
            if not below:
                finished.append(curve)
        assert {State.pruned, State.finished} == set(states.values())
        for trial in found.trials:
            if trial.state is State.pruned:
                assert trial.f1 == MeanF1(curves[trial.number][-1], 0.0, 1), "the best so far, of one seed"

    def test_halving_keeps_the_best_third(self, tmp_path: Path) -> None:
        kinds: dict[str, Any] = {"pruner": "halving", "prune_from": 1}
        pruned = hanlattice.tune(base(), output=tmp_path / "a", search=SEARCH, trials=5, **kinds)
        kept = hanlattice.tune(base(), output=tmp_path / "b", search=SEARCH, trials=5, pruner="none")
        assert {t.state for t in kept.trials} == {State.finished}
        reached: list[float] = []
        for number, trial in sorted((t.number, t) for t in pruned.trials):
            reached.append(scores(trial.folder / "1")[0])
            third = sorted(reached, reverse=True)[: max(len(reached) // 3, 1)]
            assert (trial.state is State.pruned) == (reached[-1] < third[-1]), number
        assert {t.state for t in pruned.trials} == {State.finished, State.pruned}
        values = [{t.number: dict(t.settings) for t in search.trials} for search in (pruned, kept)]
        assert values[0] == values[1]  # the seed is the same, and the first ten trials are random

    def test_first_epoch_of_pruning(self, tmp_path: Path) -> None:
        kinds: dict[str, Any] = {"pruner": "halving", "prune_from": 2}
        late = hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=5, **kinds)
        assert {(t.state, t.epochs) for t in late.trials} == {(State.finished, EPOCHS), (State.pruned, 2)}


# The process kills itself, as a search of this size may end before another process notices its third trial.
KILLED_SEARCH = """
import json, os, signal, sys
import hanlattice
from hanlattice.config.files import load_config
from hanlattice.tuning import Silent

class Killing(Silent):
    def epoch(self, run, row):
        if (str(run), row["epoch"]) == ("trial 3 seed 1", 2):
            os.kill(os.getpid(), signal.SIGKILL)

settings, output, trials, search = sys.argv[1:]
config, search = load_config(settings), json.loads(search)
hanlattice.tune(config, output=output, search=search, trials=int(trials), prune_from=1, watcher=Killing())
"""


class TestResumed:
    def test_interrupted_search_gives_the_same_result(self, found: Tuning, tmp_path: Path) -> None:
        common: dict[str, Any] = {"output": tmp_path, "search": SEARCH, "trials": TRIALS, "prune_from": 1}
        with pytest.raises(KeyboardInterrupt):
            hanlattice.tune(base(), **common, watcher=RecordingWatcher(("trial 3 seed 1", 2)))
        watcher = RecordingWatcher()
        again = hanlattice.tune(output=tmp_path, trials=TRIALS, resume=True, watcher=watcher)
        assert facts(again) == facts(found)
        assert watcher.epochs[0] == ("trial 3 seed 1", 3)
        assert watcher.said[0] == "2 trials have ended already"
        assert (tmp_path / "best.toml").read_text() == (found.folder / "best.toml").read_text()

    def test_killed_search_gives_the_same_result(self, found: Tuning, tmp_path: Path) -> None:
        given = [str(saved(tmp_path, "base", base())), str(tmp_path / "search"), str(TRIALS), json.dumps(SEARCH)]
        process = subprocess.run([sys.executable, "-c", KILLED_SEARCH, *given], env=ENVIRONMENT, check=False)
        assert process.returncode == -signal.SIGKILL
        with (tmp_path / "search" / "journal.log").open("a") as journal:
            journal.write('{"op_code":4,"work')  # as if it was killed while it wrote a line
        watcher = RecordingWatcher()
        again = hanlattice.tune(output=tmp_path / "search", trials=TRIALS, resume=True, watcher=watcher)
        assert facts(again) == facts(found)
        assert watcher.results[-1] == TRIALS
        assert len(watcher.results) < TRIALS

    def test_more_trials(self, found: Tuning, tmp_path: Path) -> None:
        hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1, prune_from=1)
        watcher = RecordingWatcher()
        more = hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=2, resume=True, watcher=watcher)
        assert watcher.started == ["trial 2 seed 1"]
        assert sorted(facts(more), key=str) == sorted((f for f in facts(found) if f[0] <= 2), key=str)

    def test_trial_that_was_trained_but_not_counted(self, tmp_path: Path) -> None:
        """The result of a run is written before the trial ends in the journal."""
        once = hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1)
        journal = tmp_path / "journal.log"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:-1]))
        watcher = RecordingWatcher()
        again = hanlattice.tune(output=tmp_path, trials=1, resume=True, watcher=watcher)
        assert facts(again) == facts(once)
        assert (watcher.started, watcher.results) == ([], [1])

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"config": base().with_settings({"encoder": {"heads": 4}})}, "encoder.heads = 2, not 4"),
            (
                {"search": {**SEARCH, "encoder.d_model": [8, 24]}},
                'search.encoder.d_model = "8..24:8", not [8, 24]',
            ),
            ({"search": {"encoder.d_model": [8, 24]}}, "search.encoder.d_model = "),
            ({"seeds": (1, 2)}, "seeds = [1], not [1, 2]"),
            ({"search_seed": 2}, "search_seed = 1, not 2"),
            ({"pruner": "none"}, 'pruner = "median", not "none"'),
            ({"prune_from": 2}, "prune_from = 1, not 2"),
        ],
    )
    def test_other_search_in_the_folder(self, found: Tuning, changes: dict[str, Any], message: str) -> None:
        given = {"config": base(), "search": SEARCH, "resume": True, **changes}
        with pytest.raises(ConfigError) as caught:
            hanlattice.tune(output=found.folder, **given)
        assert str(caught.value).startswith(f"{found.folder} contains a search with {message}")
        assert str(caught.value).endswith("; choose another --output")

    def test_a_search_that_another_process_began_meanwhile(
        self, found: Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It began after this process found no search, and before it had the lock."""

        @contextmanager
        def late(path: Path, folder: Path) -> Iterator[None]:
            shutil.copytree(found.folder, folder, dirs_exist_ok=True)
            yield

        monkeypatch.setattr("hanlattice.tuning.run.locked", late)
        with pytest.raises(ConfigError, match="already holds a search"):
            hanlattice.tune(base(), search=SEARCH, output=tmp_path / "new")

    def test_folder_with_a_search_needs_resume(self, found: Tuning) -> None:
        with pytest.raises(ConfigError, match="already holds a search: continue it with --resume, or name another"):
            hanlattice.tune(base(), output=found.folder, search=SEARCH)

    def test_two_searches_in_one_folder(self, found: Tuning) -> None:
        from hanlattice.atomic import locked

        with (
            locked(found.folder / "lock", found.folder),
            pytest.raises(ConfigError, match="is in use by another process"),
        ):
            hanlattice.tune(output=found.folder, resume=True)

    def test_nothing_to_resume(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="holds no search to resume; name its folder, or leave out --resume"):
            hanlattice.tune(base(), output=tmp_path, search=SEARCH, resume=True)

    def test_a_changed_corpus(self, tmp_path: Path) -> None:
        train = tmp_path / "train.bmes"
        shutil.copy(base().data.dev, train)
        config = base().with_settings({"data": {"train": [str(train)]}})
        hanlattice.tune(config, output=tmp_path / "a", search=SEARCH, trials=1)
        hanlattice.tune(output=tmp_path / "a", trials=1, resume=True)
        train.write_text(train.read_text("utf-8") + "\n李\tS-PER\n", "utf-8")
        with pytest.raises(ConfigError, match=r"train\.bmes changed since it began"):
            hanlattice.tune(output=tmp_path / "a", trials=2, resume=True)

    def test_damaged_files(self, tmp_path: Path) -> None:
        (tmp_path / "study.toml").write_text("seeds = 3\n")
        with pytest.raises(ConfigError, match=r"study\.toml: is not the definition of a search"):
            hanlattice.tune(output=tmp_path, resume=True)
        hanlattice.tune(base(), output=tmp_path / "b", search=SEARCH, trials=1)
        (tmp_path / "b" / "journal.log").write_text("not JSON\n{}\n")
        with pytest.raises(DataError, match=r"journal\.log: is not the journal of a search"):
            hanlattice.tune(output=tmp_path / "b", resume=True)


class TestProposals:
    def test_other_seed_gives_other_proposals(self, found: Tuning, tmp_path: Path) -> None:
        other = hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1, search_seed=2)
        assert other.best
        assert dict(other.best.settings) not in [dict(trial.settings) for trial in found.trials]

    def test_no_proposal_is_repeated_and_the_search_ends_with_the_last_one(self, tmp_path: Path) -> None:
        """Three heads do not divide the width, so that trial fails; the other is finished."""
        watcher = RecordingWatcher()
        search = {"encoder.heads": [2, 3]}
        both = hanlattice.tune(base(), output=tmp_path, search=search, trials=5, watcher=watcher)
        assert [(t.settings["encoder.heads"], t.state) for t in both.trials] == [
            (2, State.finished),
            (3, State.failed),
        ]
        assert "must be a multiple" in both.trials[1].failure or "divide" in both.trials[1].failure
        assert watcher.said == ["all 2 combinations of values have been proposed"]


class TestSeedsAndJobs:
    def test_mean_over_seeds(self, found: Tuning, tmp_path: Path) -> None:
        watcher = RecordingWatcher()
        two = hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1, seeds=(1, 2), watcher=watcher)
        assert watcher.started == ["trial 1 seed 1", "trial 1 seed 2"]
        assert two.best
        assert two.best.f1
        runs = [Result.load(two.best.folder / str(seed) / RESULT) for seed in (1, 2)]
        assert two.best.f1.mean == pytest.approx(sum(run.dev.f1 for run in runs) / 2)
        assert (two.best.f1.n, two.best.epochs) == (2, 2 * EPOCHS)
        [alone] = [trial for trial in found.trials if trial.number == 1]
        assert alone.f1
        assert runs[0].dev.f1 == alone.f1.mean

    def test_parallel_runs_have_the_same_scores(self, found: Tuning, tmp_path: Path) -> None:
        options: dict[str, Any] = {"trials": 2, "jobs": 2, "pruner": "none"}
        parallel = hanlattice.tune(base(), output=tmp_path, search=SEARCH, **options)
        assert sorted(facts(parallel), key=str) == sorted((f for f in facts(found) if f[0] <= 2), key=str)


class TestLimits:
    def test_time_stops_a_trial_that_resumes_later(self, tmp_path: Path) -> None:
        long = base().with_settings({"training": {"epochs": 500}})
        late = hanlattice.tune(long, output=tmp_path, search=SEARCH, hours=1 / 3600)
        [trial] = late.trials
        assert (trial.state, late.best, late.best_settings) == (State.stopped, None, None)
        assert 0 < trial.epochs < 500
        watcher = RecordingWatcher(("trial 1 seed 1", trial.epochs + 1))
        with pytest.raises(KeyboardInterrupt):
            hanlattice.tune(output=tmp_path, resume=True, watcher=watcher)
        assert watcher.epochs == [watcher.stop]

    def test_first_trials_that_fail_for_the_same_reason_stop_the_search(self, tmp_path: Path) -> None:
        broken = base().with_settings({"training": {"device": "cuda:77"}})
        with pytest.raises(ConfigError, match=r"the first 3 trials failed for the same reason: .*cuda:77"):
            hanlattice.tune(broken, output=tmp_path, search=SEARCH)

    @pytest.mark.parametrize("name", ["journal.log", "best.toml", "inputs.json", "trials"])
    def test_no_file_of_the_user_is_replaced_or_taken_for_that_of_a_search(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("mine", "utf-8")
        with pytest.raises(ConfigError, match=f"has {name}, which a run would replace; name an empty folder"):
            hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1)
        assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [(name, "mine")]

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_full_disk_stops_the_search_and_the_trial_is_trained_later(self, tmp_path: Path, jobs: int) -> None:
        """No file may be larger than some bytes, so the first model cannot be written."""
        quick = base().with_settings({"training": {"epochs": 1}})
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
        try:
            with pytest.raises(WriteError, match=r"safetensors: cannot be written: File too large"):
                hanlattice.tune(quick, output=tmp_path, search=SEARCH, trials=2, jobs=jobs)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        found = hanlattice.tune(output=tmp_path, trials=2, resume=True)
        assert [trial.state for trial in found.trials] == [State.finished] * 2

    def test_a_full_disk_may_be_that_of_the_journal(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(Study, "propose", full)
        with pytest.raises(DataError, match=r"journal\.log: cannot be written: No space left on device"):
            hanlattice.tune(base(), output=tmp_path, search=SEARCH, trials=1)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"trials": 0}, "trials must be at least 1, not 0"),
            ({"hours": 0}, "hours must be above 0, not 0"),
            ({"jobs": 0}, "jobs must be at least 1, not 0"),
            ({"seeds": ()}, "give each seed once, and at least one, not none"),
            ({"seeds": (1, 2, 1)}, "give each seed once, and at least one, not 1, 2, 1"),
            ({"prune_from": 0}, "prune_from must be at least 1, not 0"),
            ({"pruner": "mean"}, "pruner must be one of 'median', 'halving', 'none', not 'mean'"),
            ({"search": None}, "nothing to search; add a setting"),
            (
                {"config": base().with_settings({"encoder": {"headz": 1}})},
                "no setting 'headz'; did you mean 'heads'",
            ),
            (
                {"config": base().with_settings({"data": {"train": ["nowhere.bmes"]}})},
                "nowhere.bmes: cannot be read",
            ),
            (
                {
                    "config": Config().with_settings(
                        {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}}
                    ),
                    "search": {"encoder.drop": "0..1"},
                },
                "a linear tagger has no epochs that could be resumed",
            ),
        ],
    )
    def test_wrong_arguments_are_errors_before_anything_is_written(
        self, tmp_path: Path, given: dict[str, Any], message: str
    ) -> None:
        arguments: dict[str, Any] = {"config": base(), "search": SEARCH, **given}
        with pytest.raises((ConfigError, DataError)) as caught:
            hanlattice.tune(output=tmp_path / "search", **arguments)
        assert message in str(caught.value)
        assert not (tmp_path / "search").exists()


def test_importance_of_settings(tmp_path: Path) -> None:
    """Ten finished trials, of which the learning rate decides the score and the seed of dropout does not."""
    quick = base().with_settings({"training": {"epochs": 1}})
    search = {"training.learning_rate": "1e-5..5e-2:log", "embedding.dropout": "0..0.01"}
    few = hanlattice.tune(quick, output=tmp_path, search=search, trials=9, pruner="none")
    assert few.importance == {}
    enough = hanlattice.tune(output=tmp_path, trials=10, resume=True)
    assert list(enough.importance) == ["training.learning_rate", "embedding.dropout"]
    assert sum(enough.importance.values()) == pytest.approx(1)
