"""hanlattice combine: an ensemble or a cascade of two models, with settings chosen on corpora."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import hanlattice
from hanlattice import Document, Entity, corpus
from hanlattice.cli import main
from hanlattice.combination import cascade, ensemble
from hanlattice.combination.held_out import HeldOut, f1
from hanlattice.config.files import load_config, save_config
from hanlattice.corpus.labels import relabelled
from hanlattice.engines.cascade import Cascade, CascadeSettings
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.errors import ConfigError, DataError, EngineError, ModelError
from hanlattice.evaluation.calibration import Confidences
from hanlattice.kernels import library
from hanlattice.model import digests
from hanlattice.model.folder import CARD, CASCADE, CONFIG, DEFAULT, ENSEMBLE, GRAPH, LITE, VOCABULARY, ModelFolder
from hanlattice.model.saving import save
from hanlattice.pipeline import NER

pytestmark = pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")

TEXTS = [
    "雷军在北京发布小米14。",
    "昨天，李明去了南京市长江大桥，王芳没有去。",
    "阿里巴巴集团董事局主席马云在杭州会见了美国总统特朗普。",
    "他住在嘉和苑附近，常去隆鑫茶舍。",
    "我在三联书店买了《围城》，张三说好看。",
]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus on which the ensemble of the packaged models is right in more entities than FLAT alone."""
    found = list(hanlattice.load().pipe(TEXTS))
    wrong = Document(TEXTS[0], found[0].entities[:1])
    path = tmp_path_factory.mktemp("combination") / "dev.jsonl"
    corpus.write([*found, wrong], path, "jsonl")
    return path


def flat_alone(folder: Path) -> Path:
    """A copy of the packaged FLAT without its ensemble and its cascade."""
    shutil.copytree(DEFAULT, folder)
    for name in (ENSEMBLE, CASCADE):
        (folder / name).unlink()
    digests.record(folder)
    return folder


def weakened(monkeypatch: pytest.MonkeyPatch, gains: Sequence[float]) -> None:
    """Make the scores of an ensemble, FLAT and linear tagger 80, 80 minus a gain, and 70."""
    chosen = ensemble.choose

    def choose(*arguments: object) -> ensemble.ChosenEnsemble:
        found = chosen(*arguments)  # type: ignore[arg-type]
        return replace(found, scores=[(80.0, 80.0 - gain, 70.0) for gain in gains])

    monkeypatch.setattr(ensemble, "choose", choose)


class TestEnsemble:
    def test_the_new_folder_is_an_ensemble_on_its_own(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        weakened(monkeypatch, [1.0])
        accurate, linear = flat_alone(tmp_path / "flat"), tmp_path / "linear"
        shutil.copytree(LITE, linear)
        output = tmp_path / "both"
        with pytest.raises(SystemExit) as left:
            main(["combine", "ensemble", str(dev), str(output), "--model", str(accurate), "--second", str(linear)])
        assert not left.value.code
        out = capsys.readouterr().out
        assert "F1 on 6 documents of dev.jsonl: ensemble 80.00, FLAT 79.00, linear tagger 70.00." in out
        settings = EnsembleSettings.of(ModelFolder.open(output))
        assert f"weight of the linear tagger: {settings.weight}" in out
        shutil.rmtree(accurate)
        shutil.rmtree(linear)
        moved = output.rename(tmp_path / "moved")
        ner = hanlattice.load(moved)
        assert isinstance(ner.engine, Ensemble)
        expected = EnsembleSettings("lite", settings.weight, settings.temperature, settings.user_word)
        native = hanlattice.load(engine="native")
        packaged = Ensemble.open(ModelFolder.open(), native.engine, settings=expected)
        assert list(ner.pipe(TEXTS)) == list(packaged.pipe(TEXTS))
        assert list(digests.faults(moved)) == []
        assert "## Ensemble" in (moved / CARD).read_text(encoding="utf-8")
        assert "linear tagger 70.00" in (moved / CARD).read_text(encoding="utf-8")

    def test_a_packaged_second_model_is_named(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        weakened(monkeypatch, [0.1])
        chosen = ensemble.make_ensemble([dev], tmp_path / "both", second="lite")
        assert chosen.settings.second == "lite"
        assert not list((tmp_path / "both").glob("*-second"))
        assert isinstance(hanlattice.load(tmp_path / "both").engine, Ensemble)

    @pytest.mark.parametrize(
        ("gains", "helps"), [([0.0], False), ([-0.1], False), ([1.0, -1.1], False), ([1, -0.9], True)]
    )
    def test_a_tagger_that_does_not_help_is_refused(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch, gains: list[float], helps: bool
    ) -> None:
        weakened(monkeypatch, gains)
        output = tmp_path / "both"
        if helps:
            ensemble.make_ensemble([dev] * 2, output, second="lite")
            return
        with pytest.raises(
            ConfigError,
            match=r"no weight of lite raises F1 of the packaged model by more than 0\.1.*ensemble 80\.00, FLAT",
        ):
            ensemble.make_ensemble([dev] * len(gains), output, second="lite")
        assert list(tmp_path.iterdir()) == []

    def test_the_chosen_settings_are_those_of_the_best_trials(self, dev: Path) -> None:
        lines: list[str] = []
        held_out = HeldOut.read(dev)
        chosen = ensemble.choose(ModelFolder.open(), "lite", [held_out], ("msra", held_out), lines.append)
        of_weights = [line for line in lines if line.startswith("weight")]
        assert len(of_weights) == 2 * len(ensemble.WEIGHTS)
        scores = [float(line.rsplit(" ", 1)[1]) for line in of_weights[: len(ensemble.WEIGHTS)]]
        assert chosen.settings.weight == ensemble.nearly_best(dict(zip(ensemble.WEIGHTS, scores, strict=True)))
        assert chosen.settings.user_word in ensemble.OF_USER_WORDS
        assert len([line for line in lines if line.startswith("user words")]) == len(ensemble.OF_USER_WORDS)
        ner = Ensemble.open(ModelFolder.open(), hanlattice.load(engine="native").engine, settings=chosen.settings)
        models = (ner, hanlattice.load(engine="native"), hanlattice.load("lite"))
        assert chosen.scores[0] == pytest.approx([f1(model, held_out.documents) for model in models])
        assert "convention_weight = " in chosen.toml()
        assert chosen.toml().endswith("  # chosen on 6 documents of dev.jsonl\n")

    def test_nearly_the_best_weight(self) -> None:
        assert ensemble.nearly_best({0.1: 80.0, 0.2: 80.4, 0.3: 80.5, 0.4: 80.45}) == 0.2
        assert ensemble.nearly_best({0.1: 80.0, 0.2: 80.39, 0.3: 80.5, 0.4: 80.45}) == 0.3

    def test_compounds_share_no_character_with_a_name(self) -> None:
        ner = hanlattice.load()
        text = "他们提出了新方案，李小龙同意了。"
        start = text.index("李小龙")
        named = Document(text, (Entity("李小龙", "PER", start, start + 3), Entity("新方案", "WORK", 5, 8)))
        lexicon = ensemble.with_user_words(ner, [named])
        assert lexicon is not None
        edits = lexicon.edits_since(ner.lexicon)
        assert edits is not None
        added = {word.text for word in edits[0]}
        assert added
        assert all(len(word) <= ensemble.LONGEST_COMPOUND for word in added)
        assert not any("龙" in word or "新" in word for word in added - {"李小龙", "新方案"})

    def test_no_score_of_user_words_without_compounds(self, dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        documents = HeldOut.read(dev).documents
        assert ensemble.with_user_words(hanlattice.load("lite"), documents) is None  # it finds no words
        assert ensemble.with_user_words(hanlattice.load(), [Document("好。")]) is None
        monkeypatch.setattr(ensemble, "with_user_words", lambda ner, documents: None)
        lines: list[str] = []
        chosen = ensemble.choose(ModelFolder.open(), "lite", [HeldOut.read(dev)], report=lines.append)
        assert chosen.settings.user_word == 0
        assert not [line for line in lines if line.startswith("user words")]

    def test_the_temperature_is_one_if_all_entities_are_correct(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The smallest loss would be that of the lowest temperature, with which nothing is uncertain."""
        chosen = []
        for correct in ([True] * 3, [False] * 3, [], [True, True, False]):
            found = Confidences([0.9, 0.8, 0.7][: len(correct)], correct)
            monkeypatch.setattr(ensemble, "confidences", lambda ner, documents, found=found: found)
            trials = ensemble.Trials(hanlattice.load(), None, None, 0, print)  # type: ignore[arg-type]
            monkeypatch.setattr(ensemble.Trials, "set", lambda *settings: None)
            chosen.append(trials.temperature([], 1.0))
        assert chosen[:3] == [1.0] * 3
        assert chosen[3] != 1.0

    def test_a_linear_tagger_as_the_first_model(self, tmp_path: Path, dev: Path) -> None:
        linear = tmp_path / "linear"
        shutil.copytree(LITE, linear)
        with pytest.raises(
            EngineError, match=r"linear is a linear tagger; the first model of an ensemble has to be"
        ):
            ensemble.make_ensemble([dev], tmp_path / "both", second="lite", model=linear)

    def test_a_cascade_of_the_first_model_stays_and_is_named(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        weakened(monkeypatch, [1.0])
        accurate = flat_alone(tmp_path / "flat")
        notes = []
        for model, output in (("default", tmp_path / "one"), (str(accurate), tmp_path / "two")):
            with pytest.raises(SystemExit):
                main(["combine", "ensemble", str(dev), str(output), "--second", "lite", "--model", model])
            notes.append("choose its threshold again" in capsys.readouterr().err)
        assert notes == [True, False]
        assert (tmp_path / "one" / CASCADE).is_file()


class TestCascade:
    def test_the_new_folder_is_a_cascade_on_its_own(
        self, tmp_path: Path, dev: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        linear, output = tmp_path / "linear", tmp_path / "both"
        shutil.copytree(LITE, linear)
        with pytest.raises(SystemExit) as left:
            main(["combine", "cascade", str(dev), str(output), "--second", str(linear), "--lost", "1"])
        assert not left.value.code
        out = capsys.readouterr().out
        settings = CascadeSettings.of(ModelFolder.open(output))
        assert "On 6 documents of dev.jsonl the fast model answers" in out
        assert f"threshold: {settings.threshold}" in out
        assert "At most 1 points of F1 are lost." in (output / CASCADE).read_text(encoding="utf-8")
        shutil.rmtree(linear)
        ner, packaged = hanlattice.load(output, engine="cascade"), hanlattice.load("cascade")
        cast(Cascade, packaged.engine).threshold = settings.threshold
        assert list(ner.pipe(TEXTS)) == list(packaged.pipe(TEXTS))
        assert list(digests.faults(output)) == []

    @pytest.mark.parametrize(("lost", "threshold"), [(0.0, 0.700001), (16.0, 0.700001), (17.0, 0.500001), (100, 0)])
    def test_the_lowest_threshold_that_loses_so_little(self, lost: float, threshold: float) -> None:
        """F1 is 100 if the fast model answers one document, 83.3 if it answers two, and 50 if all three."""
        right, wrong = [2, 2, 2], [2, 2, 0]
        answers = cascade.Answers(
            "dev",
            np.array([0.9, 0.7, 0.5]),
            np.array([right, [2, 2, 1], wrong]),
            np.array([right, right, right]),
        )
        assert answers.threshold(lost) == threshold

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    def test_documents_of_equal_certainty_are_answered_together(self, order: tuple[int, ...]) -> None:
        """Of the last two the fast model gains in one what it loses in the other."""
        certainty = np.array([0.9, 0.7, 0.7])
        fast = np.array([[2, 2, 2], [2, 2, 1], [2, 2, 2]])
        accurate = np.array([[2, 2, 2], [2, 2, 2], [2, 2, 1]])
        chosen = [*order]
        answers = cascade.Answers("dev", certainty[chosen], fast[chosen], accurate[chosen])
        assert answers.threshold(0.0) == 0.0
        fast[2, 2] = 1
        assert cascade.Answers("dev", certainty[chosen], fast[chosen], accurate[chosen]).threshold(0.0) == 0.700001

    def test_no_threshold_is_above_a_certainty_of_one(self) -> None:
        """The fast model is wrong in a document of which it is entirely certain."""
        counts = np.array([[2, 2, 0], [2, 2, 2]]), np.array([[2, 2, 2], [2, 2, 2]])
        assert cascade.Answers("dev", np.array([1 - 1e-9, 0.9]), *counts).threshold(0.0) == 1.0
        certain = cascade.Answers("dev.bmes", np.array([1.0, 0.9]), *counts)
        assert certain.threshold(50.0) == 0.0
        with pytest.raises(ConfigError, match=r"on dev\.bmes the fast model is wrong.*more than 0\.5 points"):
            certain.threshold(0.5)

    def test_edits_of_the_accurate_model_count_for_both(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ner = hanlattice.load()
        ner.lexicon.add("嘉和苑附近", "ORG")
        edited = save(ner, tmp_path / "edited")
        used = []
        choose = cascade.choose

        def watched(fast: NER, *others: Any) -> cascade.ChosenCascade:
            used.append(fast)
            return choose(fast, *others)

        monkeypatch.setattr(cascade, "choose", watched)
        cascade.make_cascade([dev], tmp_path / "both", second="lite", model=edited)
        both = hanlattice.load(tmp_path / "both", engine="cascade")
        cast(Cascade, both.engine).threshold = 0.0
        assert "嘉和苑附近" in used[0].lexicon
        assert [d.entities for d in used[0].pipe(TEXTS)] == [d.entities for d in both.pipe(TEXTS)]

    def test_a_model_that_the_kernels_cannot_run_is_refused_first(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = flat_alone(tmp_path / "other")
        text = (other / CONFIG).read_text(encoding="utf-8")
        assert 'name = "flat"' in text
        (other / CONFIG).write_text(
            re.sub(r'(?ms)^\[encoder\]\nname = "flat".*?\n\n', '[encoder]\nname = "lstm"\n\n', text),
            encoding="utf-8",
        )
        monkeypatch.setattr(cascade, "choose", lambda *arguments: pytest.fail("the corpora were read"))
        with pytest.raises(EngineError, match="run the encoder 'lstm'"):
            cascade.make_cascade([dev], tmp_path / "both", second="lite", model=other)

    def test_a_folder_with_the_name_of_a_packaged_model(
        self, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``./lite`` is the folder, not the packaged model."""
        monkeypatch.chdir(tmp_path)
        shutil.copytree(LITE, "lite")
        flat_alone(Path("default"))
        opened: list[Path] = []

        def watched(path: Path, **options: Any) -> NER:
            opened.append(path)
            return hanlattice.load(path, **options)

        monkeypatch.setattr(cascade, "load", watched)
        chosen = cascade.make_cascade([dev], "both", second="./lite", model="./default")
        assert opened[:2] == [tmp_path / "default", tmp_path / "lite"]
        assert chosen.settings.second == "cascade-second"
        assert (tmp_path / "both" / "cascade-second").is_dir()

    def test_more_corpora_may_need_a_higher_threshold(self, dev: Path) -> None:
        fast, accurate = hanlattice.load("lite"), hanlattice.load()
        one = HeldOut.read(dev)
        harder = HeldOut("harder", [d for d in one.documents if fast(d.text).entities != accurate(d.text).entities])
        assert harder.documents
        alone, both = (cascade.choose(fast, accurate, "lite", x, 0.0) for x in ([one], [one, harder]))
        assert both.settings.threshold >= alone.settings.threshold
        assert len(both.lines) == 2


@pytest.mark.parametrize("make", [ensemble.make_ensemble, cascade.make_cascade])
class TestBadInput:
    def test_a_folder_that_exists(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(ModelError, match="exists already; name a new folder"):
            make([dev], tmp_path, second="lite")

    def test_a_corpus_without_entities(self, make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        corpus.write([Document("今天天气好。")], tmp_path / "dev.jsonl", "jsonl")
        with pytest.raises(DataError, match=r"dev\.jsonl: has no entities to score models by"):
            make([tmp_path / "dev.jsonl"], tmp_path / "both", second="lite")

    def test_a_second_model_that_is_no_linear_tagger(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(ModelError, match=rf"^{re.escape(str(tmp_path / 'flat'))} is not a linear tagger"):
            make([dev], tmp_path / "both", second=flat_alone(tmp_path / "flat"))
        assert [path.name for path in tmp_path.iterdir()] == ["flat"]

    def test_models_that_do_not_fit(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        linear = tmp_path / "linear"
        shutil.copytree(LITE, linear)
        fields = json.loads((linear / VOCABULARY).read_text(encoding="utf-8"))
        (linear / VOCABULARY).write_text(json.dumps({**fields, "convention": "mine"}), encoding="utf-8")
        # The message names the given folders, not the draft, which is removed.
        message = f"{linear} and {DEFAULT} differ in their default convention (mine and open); they cannot"
        ways = f"train {linear} with --data.convention open, or {DEFAULT} with --data.convention mine"
        with pytest.raises(ModelError, match=f"^{re.escape(message)} be combined: {re.escape(ways)}$"):
            make([dev], tmp_path / "both", second=linear)
        assert [path.name for path in tmp_path.iterdir()] == ["linear"]

    def test_models_with_other_normalisations(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        linear = tmp_path / "linear"
        shutil.copytree(LITE, linear)
        settings = load_config(linear / CONFIG).with_settings({"text": {"tidy": False}})
        (linear / CONFIG).unlink()
        save_config(settings, linear / CONFIG)
        ways = f"train {linear} with --text.tidy true, or {DEFAULT} with --text.tidy false"
        with pytest.raises(ModelError, match=rf"differ in their text\.tidy .* be combined: {re.escape(ways)}$"):
            make([dev], tmp_path / "both", second=linear)

    def test_a_corpus_with_other_labels(self, make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        corpus.write([Document("雷军来了。", (Entity("雷军", "NR", 0, 2),))], tmp_path / "dev.jsonl", "jsonl")
        with pytest.raises(
            DataError, match=r"dev\.jsonl: its labels, NR, are none of those of the model, EVENT, LOC"
        ):
            make([tmp_path / "dev.jsonl"], tmp_path / "both", second="lite")
        assert [path.name for path in tmp_path.iterdir()] == ["dev.jsonl"]

    def test_one_model_is_both(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(ModelError, match="is both models; name another one"):
            make([dev], tmp_path / "both", second="lite", model=LITE)

    def test_a_new_folder_inside_the_model(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        model = flat_alone(tmp_path / "flat")
        before = sorted(model.iterdir())
        with pytest.raises(ModelError, match="flat cannot be copied into itself; name a new folder outside of it"):
            make([dev], model / "both", second="lite", model=model)
        assert sorted(model.iterdir()) == before

    def test_a_link_to_nothing(self, make, tmp_path: Path, dev: Path) -> None:  # type: ignore[no-untyped-def]
        (tmp_path / "both").symlink_to("nowhere")
        with pytest.raises(ModelError, match="exists already; name a new folder"):
            make([dev], tmp_path / "both", second="lite")


@pytest.mark.parametrize("kind", ["ensemble", "cascade"])
def test_the_corpus_is_missing_on_the_command_line(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["combine", kind, "both", "--second", "lite"])
    assert left.value.code == 2
    assert "name at least one corpus, and the new folder after it" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", [ENSEMBLE, CASCADE])
def test_labels_of_a_corpus_are_renamed(
    name: str, tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weakened(monkeypatch, [1.0])
    corpus.write(relabelled(corpus.read(dev), {"PER": "NR", "LOC": "NS"}), tmp_path / "dev.jsonl", "jsonl")
    chosen = []
    for path, options in ((dev, ()), (tmp_path / "dev.jsonl", ("--map", "NR=PER,NS=LOC"))):
        output = tmp_path / path.parent.name
        with pytest.raises(SystemExit) as left:
            main(["combine", Path(name).stem, str(path), str(output), "--second", "lite", *options])
        assert not left.value.code
        chosen.append((output / name).read_text("utf-8"))
    assert chosen[0] == chosen[1]


def test_a_model_that_is_an_ensemble_already_gets_a_new_one(
    tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weakened(monkeypatch, [1.0])
    linear = tmp_path / "linear"
    shutil.copytree(LITE, linear)
    ensemble.make_ensemble([dev], tmp_path / "one", second=linear)
    ensemble.make_ensemble([dev], tmp_path / "two", second=linear, model=tmp_path / "one")
    cascade.make_cascade([dev], tmp_path / "three", second=linear, model=tmp_path / "two")
    for folder, titles in (("two", ["Ensemble"]), ("three", ["Ensemble", "Cascade"])):
        card = (tmp_path / folder / CARD).read_text(encoding="utf-8")
        assert re.findall(r"^## (Ensemble|Cascade)$", card, re.MULTILINE) == titles
        assert card.count("The scores above were measured without it.") == len(titles)
    names = sorted(path.name for path in (tmp_path / "three").iterdir() if path.is_dir())
    assert names == ["cascade-second", "ensemble-second"]
    assert len(list(hanlattice.load(tmp_path / "three", engine="cascade").pipe(TEXTS))) == len(TEXTS)


def test_the_graph_of_an_exported_model_stays(tmp_path: Path, dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights do not change, so it is as right as before."""
    weakened(monkeypatch, [1.0])
    model = flat_alone(tmp_path / "flat")
    (model / GRAPH).write_bytes(b"graph")
    ensemble.make_ensemble([dev], tmp_path / "both", second="lite", model=model)
    assert (tmp_path / "both" / GRAPH).read_bytes() == b"graph"
