"""Parts of a search without training: limits, files of a folder, results in order, proposals and pruners."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs the extra tune")

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import MedianPruner, NopPruner, SuccessiveHalvingPruner

from hanlattice.comparison.table import MeanF1
from hanlattice.comparison.trial import RESULT, Trial
from hanlattice.config.files import read_toml, save_config
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, DataError
from hanlattice.model.folder import CONFIG, LOG
from hanlattice.tuning import Silent, TunedTrial, Tuning, tune
from hanlattice.tuning.folder import Definition, Pruner, StudyFolder, last_row, without_test
from hanlattice.tuning.results import State, in_order
from hanlattice.tuning.search import Limits
from hanlattice.tuning.space import Choices, Interval, Space, with_values
from hanlattice.tuning.study import Study, _distribution, _pruner, _remove_torn_line

SPACE = Space({"encoder.layers": Interval(1, 3, whole=True), "embedding.dropout": Interval(0.1, 0.5)})


class TestLimits:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"trials": 0}, "trials must be at least 1, not 0"),
            ({"hours": 0.0}, "hours must be above 0, not 0"),
            ({"hours": math.inf}, "hours must be above 0, not inf"),
            ({"hours": math.nan}, "hours must be above 0, not nan"),
            ({"jobs": 0}, "jobs must be at least 1, not 0"),
        ],
    )
    def test_beyond_them(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Limits(**given)

    def test_at_them(self) -> None:
        assert Limits(1, 1e-9, 1) == Limits(trials=1, hours=1e-9)
        assert Limits() == Limits(None, None, 1)

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, Limits(20)),
            ({"hours": 2.0}, Limits(None, 2.0)),
            ({"trials": 7, "hours": 2.0, "jobs": 3}, Limits(7, 2.0, 3)),
        ],
    )
    def test_of_a_call(
        self, given: dict[str, Any], expected: Limits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without any, there are twenty trials."""
        made: list[Any] = []

        class Search:
            def __init__(self, definition: Definition, folder: StudyFolder, limits: Limits, watcher: Silent):
                made.append((definition, limits))

            def run(self) -> Tuning:
                return Tuning(tmp_path, (), {}, None)

        monkeypatch.setattr("hanlattice.tuning.search.Search", Search)
        monkeypatch.setattr("hanlattice.tuning.run.load_corpora", lambda config: None)
        found = tune(Config(), output=tmp_path / "a", search={"encoder.layers": "1..3"}, **given)
        assert (found.best, made[0][1]) == (None, expected)
        definition = made[0][0]
        assert (definition.seeds, definition.search_seed) == ((1,), 1)
        assert (definition.pruner, definition.prune_from) == (Pruner.median, 3)
        assert StudyFolder(tmp_path / "a").load() == definition

    def test_the_time_in_seconds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from hanlattice.tuning.search import Search

        monkeypatch.setattr("hanlattice.tuning.search.time.monotonic", lambda: 50.0)
        definition = Definition(Config(), SPACE)
        for hours, deadline in ((None, math.inf), (0.5, 50.0 + 1800)):
            folder = StudyFolder(tmp_path / str(hours))
            folder.path.mkdir()
            assert Search(definition, folder, Limits(hours=hours), Silent()).deadline == deadline

    @pytest.mark.parametrize(
        ("now", "epoch", "late"), [(49.9, 1, False), (50.0, 1, True), (50.0, 3, True), (50.1, 4, False)]
    )
    def test_a_trial_stops_after_an_epoch_but_the_last_one_when_the_time_is_over(
        self, now: float, epoch: int, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from hanlattice.tuning.search import Search

        config = Config().with_settings({"training": {"epochs": 4}})
        save_config(config, tmp_path / CONFIG)
        search = object.__new__(Search)
        search.deadline = 50.0
        monkeypatch.setattr("hanlattice.tuning.search.time.monotonic", lambda: now)
        assert search._is_late(Trial("a", 1, config, tmp_path), {"epoch": epoch}) == late


class TestFolder:
    def test_paths(self) -> None:
        folder = StudyFolder(Path("a"))
        assert [str(path) for path in (folder.definition, folder.journal, folder.best, folder.lock)] == [
            "a/study.toml",
            "a/journal.log",
            "a/best.toml",
            "a/lock",
        ]
        assert str(folder.trial(12)) == "a/trials/0012"

    def test_a_definition_is_written_and_read(self, tmp_path: Path) -> None:
        folder = StudyFolder(tmp_path)
        assert folder.load() is None
        config = Config().with_settings({"data": {"test": "a"}, "training": {"seed": 5}})
        given = Definition(config, SPACE, (4, 5), 7, Pruner.halving, 2)
        folder.save(given)
        assert folder.load() == given
        folder.check_same(given, given)
        with pytest.raises(ConfigError, match="contains a search with search_seed = 7, not 8; choose another"):
            folder.check_same(given, Definition(config, SPACE, (4, 5), 8, Pruner.halving, 2))
        folder.save_best(given, {"encoder.layers": 3})
        best = read_toml(folder.best)
        assert (best["encoder"]["layers"], best["training"]["seed"]) == (3, 4)
        assert without_test(config).data.test == ""
        (tmp_path / "file").touch()
        with pytest.raises(ConfigError, match="is a file; name a folder for the search"):
            StudyFolder(tmp_path / "file").load()

    def test_models_of_a_trial_are_removed(self, tmp_path: Path) -> None:
        folder = StudyFolder(tmp_path)
        for seed in ("1", "2"):
            run = folder.trial(3) / seed
            (run / "embedding").mkdir(parents=True)
            for name in (CONFIG, LOG, RESULT, "model.safetensors", "embedding/config.json"):
                (run / name).touch()
        (folder.trial(3) / "notes.txt").touch()
        folder.remove_models(3)
        folder.remove_models(4)
        assert (folder.trial(3) / "notes.txt").exists()
        for seed in ("1", "2"):
            assert {path.name for path in (folder.trial(3) / seed).iterdir()} == {CONFIG, LOG, RESULT}

    def test_the_last_row_of_a_log(self, tmp_path: Path) -> None:
        run = Trial("a", 1, Config(), tmp_path)
        assert last_row(run) is None
        (tmp_path / LOG).write_text('{"epoch": 1, "loss": 2.5}\n{"epoch": 2, "loss": 1.5}\n')
        assert last_row(run) == {"epoch": 2, "loss": 1.5}
        (tmp_path / LOG).write_text('{"epoch": 1, "loss": 2.5}\n{"epo')
        with pytest.raises(DataError, match=r"log\.jsonl:2: not a line of a training log"):
            last_row(run)


def test_results_in_order() -> None:
    """By state, then by F1, then by number; the best is the first, if it is finished."""

    def trial(number: int, state: State, f1: float | None) -> TunedTrial:
        mean = None if f1 is None else MeanF1(f1, 0.0, 1)
        return TunedTrial(number, {}, state, mean, 1, 1.0, "", Path("a"))

    expected = [
        trial(4, State.finished, 0.9),
        trial(3, State.finished, 0.5),
        trial(5, State.finished, 0.5),
        trial(2, State.finished, 0.0),
        trial(1, State.pruned, 0.9),
        trial(8, State.stopped, 0.5),
        trial(6, State.stopped, None),
        trial(7, State.failed, None),
    ]
    trials = tuple(sorted((expected[i] for i in (6, 3, 2, 7, 5, 0, 4, 1)), key=in_order))
    assert list(trials) == expected
    assert Tuning(Path("a"), trials, {}, None).best is trials[0]
    assert Tuning(Path("a"), trials[:1], {}, None).best is trials[0]
    assert Tuning(Path("a"), trials[3:], {}, None).best is trials[3]
    assert Tuning(Path("a"), trials[4:], {}, None).best is None
    assert Tuning(Path("a"), (), {}, None).best is None
    assert trials[0].to_dict()["folder"] == "a"


class TestSpace:
    @pytest.mark.parametrize(
        ("domain", "size", "examples", "text"),
        [
            (Interval(1, 3, whole=True), 3, (1, 3), "1..3"),
            (Interval(0.1, 0.5), math.inf, (0.1, 0.5), "0.1..0.5"),
            (Interval(1e-4, 0.1, log=True), math.inf, (1e-4, 0.1), "0.0001..0.1:log"),
            (Interval(0, 0.3, step=0.1), 4, (0, 0.1, 0.3), "0..0.3:0.1"),
            (Interval(32, 96, step=32, whole=True), 3, (32, 64, 96), "32..96:32"),
        ],
    )
    def test_intervals(self, domain: Interval, size: float, examples: tuple[float, ...], text: str) -> None:
        assert (domain.size, domain.examples(), str(domain)) == (size, examples, text)

    def test_names_of_parts_come_first(self) -> None:
        """A part with another name has none of the settings of the old one."""
        values: Mapping[str, Any] = {"encoder.d_hidden": 7, "encoder.name": "bilstm"}
        found = with_values(Config(), values)
        assert (found.encoder.name, dict(found.encoder.settings)) == ("bilstm", {"d_hidden": 7})

    @pytest.mark.parametrize(
        "values", [{"text.window": 16, "text.overlap": 8}, {"text.overlap": 500, "text.window": 600}]
    )
    def test_values_that_are_possible_only_together(self, values: Mapping[str, int]) -> None:
        found = with_values(Config(), values)
        assert (found.text.window, found.text.overlap) == (values["text.window"], values["text.overlap"])

    def test_distributions(self) -> None:
        for domain, expected in (
            (Choices(("a", "b")), CategoricalDistribution(("a", "b"))),
            (Interval(1, 3, whole=True), IntDistribution(1, 3)),
            (Interval(1, 64, log=True, whole=True), IntDistribution(1, 64, log=True)),
            (Interval(32, 96, step=32, whole=True), IntDistribution(32, 96, step=32)),
            (Interval(0.1, 0.5), FloatDistribution(0.1, 0.5)),
            (Interval(0.1, 0.5, log=True), FloatDistribution(0.1, 0.5, log=True)),
            (Interval(0, 0.5, step=0.1), FloatDistribution(0, 0.5, step=0.1)),
        ):
            assert _distribution(domain) == expected


class TestStudy:
    def test_pruners(self) -> None:
        median, halving = _pruner(Pruner.median, 4), _pruner(Pruner.halving, 4)
        assert isinstance(median, MedianPruner)
        assert (median._n_startup_trials, median._n_warmup_steps) == (5, 4)
        assert isinstance(halving, SuccessiveHalvingPruner)
        assert (halving._min_resource, halving._reduction_factor) == (4, 3)
        assert isinstance(_pruner(Pruner.none, 4), NopPruner)

    def search(self, path: Path, sign: int, n: int = 13, seed: int = 1) -> list[dict[str, Any]]:
        """Values of ``n`` proposals; their F1 rises or falls with the dropout."""
        study = Study(path, SPACE, seed=seed, pruner=Pruner.none, prune_from=1)
        for _ in range(n):
            proposal = study.propose()
            assert proposal is not None
            study.finish(proposal, 0.5 + sign * float(proposal.values["embedding.dropout"]))
        return [dict(proposal.values) for proposal in study.proposals()]

    def test_the_first_ten_proposals_do_not_depend_on_results(self, tmp_path: Path) -> None:
        rising, falling = (self.search(tmp_path / f"{sign}.log", sign) for sign in (1, -1))
        assert rising[:10] == falling[:10]
        assert rising[10:] != falling[10:]
        assert self.search(tmp_path / "again.log", 1) == rising
        assert self.search(tmp_path / "other.log", 1, 3, seed=2) != rising[:3]
        assert optuna.logging.get_verbosity() == optuna.logging.WARNING

    def test_importance_needs_ten_trials_that_differ_and_two_settings(self, tmp_path: Path) -> None:
        self.search(tmp_path / "ten.log", 1, 10)
        self.search(tmp_path / "nine.log", 1, 9)
        for name, empty in (("ten", False), ("nine", True)):
            study = Study(tmp_path / f"{name}.log", SPACE, seed=1, pruner=Pruner.none, prune_from=1)
            assert (study.importance() == {}) == empty
        one = Space({"embedding.dropout": Interval(0.1, 0.5)})
        study = Study(tmp_path / "one.log", one, seed=1, pruner=Pruner.none, prune_from=1)
        for i in range(10):
            study.finish(study.propose(), i / 10)  # type: ignore[arg-type]
        assert study.importance() == {}

    def test_the_best_of_the_epochs_so_far_is_reported(self, tmp_path: Path) -> None:
        study = Study(tmp_path / "a.log", SPACE, seed=1, pruner=Pruner.none, prune_from=1)
        proposal = study.propose()
        assert proposal is not None
        assert study.proposals()[0].f1 is None
        for epoch, f1, best in ((1, 0.0, 0.0), (2, 0.5, 0.5), (3, 0.25, 0.5), (3, 0.9, 0.5)):
            assert not study.report(proposal, epoch, f1)
            assert study.proposals()[0].f1 == best
        study.fail(proposal, "no memory")
        (failed,) = study.proposals()
        assert (failed.number, failed.state, failed.failure, failed.f1) == (1, State.failed, "no memory", 0.5)

    def test_a_line_that_was_not_finished_is_removed(self, tmp_path: Path) -> None:
        journal = tmp_path / "a.log"
        for torn, whole in (
            (b"", b""),
            (b"a\n", b"a\n"),
            (b"a\nb", b"a\n"),
            (b"ab", b""),
            (b"a\n\nb\n", b"a\n\nb\n"),
        ):
            journal.write_bytes(torn)
            _remove_torn_line(journal)
            assert journal.read_bytes() == whole
        _remove_torn_line(tmp_path / "b.log")
        assert not (tmp_path / "b.log").exists()
