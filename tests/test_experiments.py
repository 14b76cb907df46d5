"""Every experiment runs on a small made-up corpus: arms, training, tables, resuming; and its corpora are right."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from experiments import (
    batch_size,
    corpora,
    coverage,
    lexicon_size,
    missing_labels,
    nested_share,
    positions,
    random_vectors,
    running,
    sentence_length,
    short_to_long,
    tables,
    word_level,
)
from experiments.__main__ import main, parser, setup_of
from experiments.arms import Arm, Setup, against
from experiments.catalogue import EXPERIMENTS, Measured
from experiments.undirected import UndirectedTener, UndirectedTransformerXL
from hanlattice import corpus
from hanlattice.comparison.trial import Result
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.evaluation.scores import Score
from hanlattice.evaluation.significance import Comparison
from hanlattice.lexicon import Lexicon
from hanlattice.text.normalise import Normaliser
from hanlattice.vectors import VectorSet

SMALL = {"training.batch_size": "6", "training.device": "cpu"}
PAGES = [Path(__file__).parents[1] / "docs" / place / "experiments.md" for place in ("", "zh")]


def nested(i: int) -> Document:
    """A sentence with an entity inside another one if i is odd, and with two separate ones if it is even."""
    text = "人和药店和北京"
    first = Entity("人和药店", "ORG", 0, 4)
    inner, other = Entity("人和", "PER", 0, 2), Entity("北京", "LOC", 5, 7)
    return Document(text, (inner, first, other) if i % 2 else (first, other), id=str(i))


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    """A setup with the small world as its corpus."""
    files = {part: str(tmp_path / f"{part}.jsonl") for part in ("train", "dev", "test")}
    for i, path in enumerate(files.values()):
        corpus.write(tiny.documents()[i * 2 :], path, "jsonl")
    (tmp_path / "further.txt").write_text("".join(f"新词{i}\n" for i in range(40)), encoding="utf-8")
    return Setup(
        tmp_path / "runs",
        files=files,
        epochs=1,
        seeds=(1,),
        words=str(tmp_path / "further.txt"),
        settings={**SMALL, "vectors.path": str(tiny.folder() / "vectors.safetensors")},
    )


def result(*sentences: tuple[int, int, int]) -> Result:
    """A finished run with these counts of gold, predicted and correct spans."""
    total = Score(*np.array(sentences).sum(0).tolist())
    return Result(total, total, sentences, 10, 5, best_epoch=1, epochs=1, seconds=1.0, version="0")


class TestCorpora:
    def test_missing_labels_grow_with_the_share(self) -> None:
        documents = tiny.documents()
        kept = [corpora.with_missing(documents, share) for share in (0.0, 0.3, 0.6, 1.0)]
        counts = [sum(len(d.entities) for d in some) for some in kept]
        assert counts[0] == sum(len(d.entities) for d in documents)
        assert counts == sorted(counts, reverse=True)
        assert counts[-1] == 0
        assert len(set(counts)) == 4
        for more, fewer in itertools.pairwise(kept):
            assert all(set(a.entities) >= set(b.entities) for a, b in zip(more, fewer, strict=True))

    @pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.6])
    def test_share_of_nested_entities_is_reached(self, share: float) -> None:
        taken = corpora.with_nested_share([nested(i) for i in range(200)], 80, share)
        assert len(taken) == 80 == len({d.id for d in taken})
        found = sum(len(corpora.overlapping(d)) for d in taken) / sum(len(d.entities) for d in taken)
        assert found == pytest.approx(share, abs=0.03)

    @pytest.mark.parametrize(("share", "kind"), [(0.6, "with nested"), (0.0, "without nested")])
    def test_too_few_sentences_of_one_kind(self, share: float, kind: str) -> None:
        documents = [nested(i if i < 2 else int(share == 0.0)) for i in range(10)]
        with pytest.raises(DataError, match=f"no further one {kind} entities"):
            corpora.with_nested_share(documents, 8, share)

    def test_entities_with_the_same_boundaries_overlap(self) -> None:
        twice = Document("北京", (Entity("北京", "LOC", 0, 2), Entity("北京", "ORG", 0, 2)))
        assert len(corpora.overlapping(twice)) == 2
        assert corpora.overlapping(nested(0)) == []

    def test_corpus_without_dev_is_divided(self, setup: Setup) -> None:
        files = {name: path for name, path in setup.files.items() if name != "dev"}
        parts = corpora.read_source("weibo", files)
        assert (len(parts.train), len(parts.dev)) == (27, 3)
        assert not {id(d) for d in parts.train} & {id(d) for d in parts.dev}

    def test_newspaper_is_divided_by_date(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        days = ["19980124-09", "19980125-01", "19980126-02", "19980127-01", "19980131-03"]
        corpus.write([replace(tiny.documents()[0], id=day) for day in days], tmp_path / "all.jsonl", "jsonl")
        source = replace(
            corpora.SOURCES["people_daily"], train=str(tmp_path / "all.jsonl"), test=str(tmp_path / "all.jsonl")
        )
        monkeypatch.setitem(corpora.SOURCES, "people_daily", source)
        parts = corpora.read_source("people_daily")
        assert [[d.id for d in part] for part in (parts.train, parts.dev, parts.test)] == [
            days[:1],
            days[1:3],
            days[3:],
        ]

    def test_labels_that_are_renamed_to_one_are_one_entity(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        twice = Document("北京", (Entity("北京", "GPE", 0, 2), Entity("北京", "LOC", 0, 2)))
        path = str(tmp_path / "all.jsonl")
        corpus.write([twice], path, "jsonl")
        monkeypatch.setitem(corpora.SOURCES, "made", corpora.Source(path, path, path, {"GPE": "LOC"}))
        parts = corpora.read_source("made")
        assert [[e.label for e in d.entities] for part in vars(parts).values() for d in part] == [["LOC"]] * 3

    def test_labels_of_test_are_those_of_train(self, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
        labels = {"PER": "NR"}
        monkeypatch.setitem(
            corpora.SOURCES,
            "made",
            corpora.Source(setup.files["train"], setup.files["dev"], setup.files["test"], labels),
        )
        found = {e.label for part in vars(corpora.read_source("made")).values() for d in part for e in d.entities}
        assert found == {"NR", "LOC", "ORG"}

    def test_unknown_corpus(self) -> None:
        with pytest.raises(ConfigError, match="did you mean 'weibo'"):
            corpora.read_source("weibo2")

    def test_samples(self, setup: Setup) -> None:
        parts = replace(setup, sentences=8, test_sentences=5).parts
        assert (len(parts.train), len(parts.dev), len(parts.test)) == (8, 4, 5)
        assert setup.parts.train == setup.all_parts.train


class TestArms:
    def test_settings_of_the_user_come_last(self, setup: Setup) -> None:
        config = replace(setup, epochs=7).config("equal/flat", {"training": {"batch_size": 99, "epochs": 8}})
        assert (config.training.epochs, config.training.batch_size) == (7, 6)
        assert config.data.train == (str(setup.place("train")),)

    def test_another_size_is_another_file(self, setup: Setup) -> None:
        assert replace(setup, sentences=8).data()["train"] != setup.data()["train"]

    def test_baseline_must_exist(self, setup: Setup) -> None:
        config = setup.config("equal/flat")
        made = against([Arm("a", "1", config), Arm("b", "1", config)], lambda arm: ("a", arm.column))
        assert [arm.baselines for arm in made] == [(), (("a", "1"),)]
        with pytest.raises(ConfigError, match="no arm is c / 1"):
            against(made, lambda arm: ("c", arm.column))

    def test_arms_can_be_built(self, setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
        """All arms of all experiments have settings that exist, and none has the folder of another."""
        monkeypatch.setattr(nested_share, "with_nested_share", lambda documents, n, share: documents)
        for name, experiment in EXPERIMENTS.items():
            if isinstance(experiment, Measured):
                continue
            made = experiment.arms(replace(setup, output=setup.output / name, sentences=experiment.sentences))
            assert len({arm.name for arm in made}) == len(made) > 1
            assert any(arm.baselines for arm in made), name
            for arm in made:
                assert set(arm.baselines) <= {other.key for other in made} - {arm.key}

    def test_columns_of_missing_labels_differ_in_train_only(self, setup: Setup) -> None:
        made = missing_labels.arms(setup)
        assert len({arm.config.data.train for arm in made}) == len(missing_labels.DROPPED)
        assert len({(arm.config.data.dev, arm.config.data.test) for arm in made}) == 1
        missing = {arm.row: arm.config.decoder.settings.get("missing") for arm in made}
        assert missing["tags (CRF, missing = 0.1)"] == 0.1
        assert missing["tags (CRF)"] is None

    def test_short_training_has_short_sentences_and_as_many_characters(self, setup: Setup) -> None:
        made = short_to_long.arms(setup)
        limit = short_to_long.longest(setup.all_parts.train)
        train = {arm.column: list(corpus.read(arm.config.data.train[0])) for arm in made}
        assert max(len(d.text) for d in train["short"]) <= limit < max(len(d.text) for d in train["any"])
        sizes = {column: corpora.n_characters(documents) for column, documents in train.items()}
        assert 0 <= sizes["any"] - sizes["short"] < 20

    def test_lexicons_have_half_and_twice_the_words(self, setup: Setup) -> None:
        made = lexicon_size.arms(setup)
        sizes = {arm.column: len(Lexicon.open(arm.config.lexicon.files[0])) for arm in made}
        full = len(set(tiny.vectors().words.names))
        assert sizes == {"half": full // 2, "full": full, "double": 2 * full}
        assert not any(arm.config.lexicon.vector_words for arm in made)

    def test_too_few_further_words(self, setup: Setup, tmp_path: Path) -> None:
        (tmp_path / "few.txt").write_text("新词\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"1 further words, but .* name a longer list with --words"):
            lexicon_size.arms(replace(setup, words=str(tmp_path / "few.txt")))

    def test_random_vectors_have_the_same_names(self, setup: Setup) -> None:
        made = random_vectors.arms(setup)
        random = VectorSet.load(next(arm.config.vectors.path for arm in made if arm.column == "random"))
        old = tiny.vectors()
        for kind, vectors in random.kinds().items():
            assert vectors.names == old.kinds()[kind].names
            assert vectors.dimension == old.kinds()[kind].dimension
        assert abs(np.corrcoef(random.words.matrix.ravel(), old.words.matrix.ravel())[0, 1]) < 0.3

    def test_figure_has_two_systems(self, setup: Setup) -> None:
        with pytest.raises(ConfigError, match="two systems, not 1"):
            sentence_length.arms(replace(setup, systems=("equal/flat",)))

    def test_variants_have_their_partners(self, setup: Setup) -> None:
        made = {arm.key: arm for arm in positions.arms(setup)}
        assert made["tener, no direction", "adamw"].baselines == (("bilstm", "adamw"), ("tener", "adamw"))
        assert made["tener, scaled", "adamw"].config.encoder.settings["scaled"] is True
        assert made["tener", "sgd"].config.training.optimiser == "sgd"
        assert {arm.config.training.epochs for arm in positions.arms(replace(setup, epochs=0))} == {30}


@pytest.mark.parametrize("position", [UndirectedTener, UndirectedTransformerXL])
def test_undirected_scores_are_symmetric(position: Any) -> None:
    """With the same vector everywhere, a score depends on the distance, and not on its sign."""
    torch.manual_seed(0)
    encoding = position(8, 2, 1)
    same = torch.randn(1, 2, 1, 4).expand(1, 2, 5, 4)
    for made, symmetric in ((encoding, True), (position.__mro__[1](8, 2, 1), False)):
        scores = made.score(same, same, 0)
        assert torch.allclose(scores, scores.mT, atol=1e-5) is symmetric
        assert not torch.allclose(scores[..., 0, :], scores[..., 0, :1].expand_as(scores[..., 0, :]))


@pytest.mark.parametrize("row", ["tener, no direction", "transformer-xl, no direction"])
def test_undirected_encoders_keep_their_sizes(setup: Setup, row: str) -> None:
    made = {arm.row: arm.config for arm in positions.arms(setup) if arm.column == "adamw"}
    sizes = []
    for name in (row, row.partition(",")[0]):
        from hanlattice.training import Silent
        from hanlattice.training.prepare import prepare

        tagger = prepare(made[name], "cpu", Silent()).ner.tagger
        sizes.append([(key, tuple(p.shape)) for key, p in tagger.encoder.named_parameters()])
    assert sizes[0] == sizes[1]


class TestTables:
    A, B = [result((2, 2, 2), (1, 1, 0))], [result((2, 2, 0), (1, 0, 0))]

    def test_mean_and_deviation(self) -> None:
        assert tables.mean_f1(self.A) == "66.67 (1)"
        assert tables.mean_f1([*self.A, *self.B]) == "33.33 ± 47.14 (2)"

    def test_grid_has_a_dash_where_no_run_is_finished(self) -> None:
        shown = tables.grid({("a", "x"): self.A, ("b", "y"): self.B}, "system")
        assert shown.splitlines()[0] == "| system | x | y |"
        assert shown.splitlines()[2:] == ["| a | 66.67 (1) | – |", "| b | – | 0.00 (1) |"]

    @pytest.mark.parametrize(
        ("p", "difference", "expected"),
        [(0.049, 0.1, "higher"), (0.049, -0.1, "lower"), (0.05, 0.1, "not separable")],
    )
    def test_reading(self, p: float, difference: float, expected: str) -> None:
        test = Comparison(0.5, 0.5 + difference, 0, 0, p / 2, 10, adjusted_p=p)
        assert tables.reading(test) == expected

    def test_differences_are_corrected_and_name_their_test(self, setup: Setup) -> None:
        many = [result(*[(2, 2, 2)] * 30) for _ in range(2)]
        few = [result(*[(2, 2, 1)] * 30) for _ in range(2)]
        config = setup.config("equal/flat")
        made = against([Arm(r, "x", config) for r in "abc"], lambda arm: ("a", "x"))
        shown = tables.differences(made, {("a", "x"): few, ("b", "x"): many, ("c", "x"): few})
        rows = [line.split(" | ") for line in shown.splitlines() if line.startswith(("| b,", "| c,"))]
        assert [(row[2], row[-1]) for row in rows] == [("+50.00", "higher |"), ("+0.00", "not separable |")]
        assert "hierarchical bootstrap over runs (2 and 2)" in shown
        assert "corrected for 2 comparisons" in shown
        assert tables.differences(made, {("a", "x"): few}) == ""

    def test_scores_of_some_sentences(self) -> None:
        part = running.restricted({("a", "x"): self.A}, [False, True])
        assert part["a", "x"][0].sentences == ((1, 1, 0),)

    def test_ranges_have_as_many_entities(self) -> None:
        lengths = list(range(1, 101))
        ranges = sentence_length.edges(lengths, [1] * 100, 4)
        assert ranges == [(0, 25), (26, 50), (51, 75), (76, 100)]
        assert sentence_length.edges([5, 5, 5], [1, 1, 1], 4) == [(0, 5)]

    def test_coverage(self) -> None:
        lexicons = [Lexicon(words) for words in (["北京"], ["北京", "人和", "药店"], ["北京", "人和药店"])]
        rows = coverage.covered([nested(0), nested(1)], lexicons, Normaliser())
        assert rows == [
            ["LOC", "2", "100.0", "100.0", "100.0", "100.0"],
            ["ORG", "2", "0.0", "0.0", "100.0", "100.0"],
            ["PER", "1", "0.0", "100.0", "0.0", "100.0"],
            ["all", "5", "40.0", "60.0", "80.0", "100.0"],
        ]


def options(setup: Setup, *further: str) -> list[str]:
    """The command line of a setup."""
    files = [text for part, path in setup.files.items() for text in (f"--{part}", path)]
    settings = [text for key, value in setup.settings.items() for text in ("--set", f"{key}={value}")]
    return ["--output", str(setup.output), *files, *settings, "--quiet", *further]


def test_experiment_is_estimated_trained_and_resumed(
    setup: Setup, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ["--set", "encoder.d_hidden=4", "--epochs", "1", "--seeds", "1,2", "--systems", "equal/bilstm"]
    command = ["random_vectors", *options(setup, *small)]
    main([*command, "--estimate"])
    assert re.match(r"4 runs to train, about \d+\.\d\d hours of processor time$", capsys.readouterr().out)
    main([text for text in [*command, "--estimate"] if text != "--quiet"])
    assert "to train" not in capsys.readouterr().err  # it is printed once, not twice on a terminal
    assert not list(setup.output.rglob("result.json"))

    main(command)
    printed = capsys.readouterr().out
    assert printed.startswith("Train: all sentences of the given files; 1 epochs; seeds 1, 2.")
    assert "| equal/bilstm, pretrained | equal/bilstm, random |" in printed
    assert (setup.output / "tables" / "random_vectors.md").read_text("utf-8") == printed

    (setup.output / "random" / "equal" / "bilstm" / "2" / "result.json").unlink()
    main([*command, "--estimate"])
    assert "1 runs to train" in (left := capsys.readouterr().out)
    assert "3 are finished" in left
    main(command)
    assert capsys.readouterr().out == printed
    main([*command[:-2], "--systems", "equal/bilstm"])  # nothing is left to train
    assert capsys.readouterr().out == printed


def test_figure_and_table_of_lengths(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    small = ["--set", "encoder.d_hidden=4", "--seeds", "1", "--epochs", "1"]
    systems = ["--systems", "equal/bilstm,bilstm/weibo"]
    main(["sentence_length", *options(setup, *small, *systems)])
    printed = capsys.readouterr().out
    rows = re.findall(r"^\| \d+–\d+ \| (\d+) \| (\d+) \|", printed, re.MULTILINE)
    assert sum(int(n) for n, _ in rows) == 26
    assert sum(int(gold) for _, gold in rows) == sum(len(d.entities) for d in tiny.documents()[4:])
    assert "<svg" in (setup.output / "tables" / "sentence_length.svg").read_text("utf-8")


def test_reports_of_parts_of_test(setup: Setup) -> None:
    """The reports that need more than a grid, on made-up results."""
    long = replace(setup, files={**setup.files})
    made = short_to_long.arms(long)
    n = len(setup.parts.test)
    results = {arm.key: [result(*[(1, 1, int(arm.column == "any"))] * n)] for arm in made}
    shown = short_to_long.report(long, made, results)
    assert "| bilstm | 0.00 (1) | 100.00 (1) |" in shown
    assert "| bilstm, short | bilstm, any | -100.00 |" in shown
    made = word_level.arms(setup)
    assert "| words | – |" in word_level.report(setup, made, {arm.key: [result((1, 1, 1))] for arm in made})
    made = missing_labels.arms(setup)
    assert missing_labels.report(setup, made, {arm.key: [result((1, 1, 1))] for arm in made}).count("0 %") > 4
    made = lexicon_size.arms(setup)
    assert "half" in lexicon_size.report(setup, made, {arm.key: [result((1, 1, 1))] for arm in made})


def test_coverage_command(setup: Setup, capsys: pytest.CaptureFixture[str]) -> None:
    main(["coverage", *options(setup), "--words", setup.words])
    printed = capsys.readouterr().out
    full = len(set(tiny.vectors().words.names))
    assert f"half {full // 2}, full {full}, double {2 * full}" in printed
    assert "**files**" in printed
    assert "| PER |" in printed


def test_speed_of_batches(setup: Setup) -> None:
    systems = {name: setup.config("equal/bilstm", {"encoder": {"d_hidden": 4}}) for name in ("a", "b")}
    speeds = batch_size.measured(systems, 8, (1, 4), 1, lambda message: None)
    shown = batch_size.table(speeds, 0)
    assert shown.splitlines()[0] == "| encoder | batch 1 | batch 4 |"
    assert shown.splitlines()[2].startswith("| a | 1.00 |")
    assert "| batch 1 | batch 4 |\n" in batch_size.report(
        replace(setup, sentences=4, systems=("equal/bilstm",)), print
    )
    assert all(value > 0 for own in speeds.values() for pair in own.values() for values in pair for value in values)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", "x.jsonl"], "give both --train and --test"),
        (["--set", "encoder.layers"], "write SETTING=VALUE"),
        (["--seeds", "1,a"], "write whole numbers"),
        (["--seeds", "2,1,02"], "name each seed once"),
        (["--systems", "equal/flat", "--words", "x"], "the experiment word_level does not use --systems, --words"),
        (["--corpus", "weibo", "--train", "a", "--test", "b"], "give either --corpus or files, not both"),
        (["--corpus", "weibo2"], "there is no corpus 'weibo2'"),
    ],
)
def test_wrong_options_are_one_line(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=f"^error: .*{message}"):
        main(["word_level", "--output", str(tmp_path), *arguments])


def test_measured_experiments_train_nothing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"^error: the experiment coverage does not use --epochs, --jobs; leave"):
        main(["coverage", "--output", str(tmp_path), "--jobs", "2", "--epochs", "3"])


def test_inputs_of_an_earlier_experiment_are_not_used_for_other_files(setup: Setup) -> None:
    first = Path(setup.data()["train"])
    before = first.read_bytes()
    assert setup.data()["train"] == str(first)
    corpus.write(tiny.documents()[1:], setup.files["train"], "jsonl")
    with pytest.raises(
        ConfigError, match=r"train\.jsonl was made from other files or settings; name another --output"
    ):
        replace(setup).data()
    assert first.read_bytes() == before
    assert [path.name for path in first.parent.iterdir() if path.is_dir()] == []


def test_corpora_without_what_an_experiment_needs(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="--sentences 0: this experiment samples its sentences"):
        nested_share.arms(setup)
    corpus.write([Document("北京", (Entity("北京", "LOC", 0, 2),))], setup.files["test"], "jsonl")
    with pytest.raises(DataError, match=r"no test sentence has more than .* characters, the median of train"):
        short_to_long.arms(setup)
    for path in setup.files.values():
        corpus.write([Document("北京")], path, "jsonl")
    with pytest.raises(DataError, match="files: no document has an entity; name an annotated corpus"):
        coverage.report(setup)
    monkeypatch.setattr(sentence_length, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="the figure needs matplotlib; install it with"):
        sentence_length.arms(setup)


@pytest.mark.parametrize("page", PAGES, ids=["english", "chinese"])
def test_commands_of_the_page_exist(page: Path) -> None:
    commands = re.findall(
        r"python -m experiments (?!NAME)([^`\n#|]+)", page.read_text("utf-8").replace("\\\n", " ")
    )
    assert {command.split()[0] for command in commands} == set(EXPERIMENTS)
    for command in commands:
        setup_of(parser().parse_args(command.split()))
