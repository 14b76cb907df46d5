"""The scripts that make the packaged models: the commands exist; lines are sampled from whole files."""

import importlib.util
import json
import re
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import hanlattice
import tiny
import untrained_flat
from hanlattice import corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.kernels import library
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import CARD, LITE, ModelFolder

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("training_data", SCRIPTS / "training_data.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("processes", [1, 2])
def test_the_command_line_accepts_the_training_command(
    recipe: ModuleType, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typer = pytest.importorskip("typer")
    from hanlattice.cli.train import app

    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(recipe, "run", lambda *command: commands.append(command))
    assert recipe.trained(Config(), tmp_path / "run", processes) == tmp_path / "run"
    (command,) = (list(map(str, c)) for c in commands)
    assert command[0] == sys.executable
    assert ("--nproc-per-node" in command) == (processes == 2)
    arguments = command[command.index("train") + 1 :]
    with typer.main.get_command(app).make_context("train", arguments) as context:
        assert context.params["config"] == tmp_path / "run.toml"
        assert context.params["output"] == tmp_path / "run"
        assert context.params["resume"]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / CARD).touch()
    assert recipe.trained(Config(), tmp_path / "run", processes) == tmp_path / "run"
    assert len(commands) == 1  # it exists


def test_the_settings_of_a_model_with_one_convention(recipe: ModuleType, tmp_path: Path) -> None:
    large = recipe.PAPERS / "hanlattice" / "large.toml"
    config = recipe.of_open(large, ("annotated",), tmp_path / "words.txt")
    assert (config.embedding.name, [*config.conventions], [*config.auxiliary]) == ("own", [], ["annotated"])
    assert config.lexicon.files == (str(tmp_path / "words.txt"),)
    left = recipe.settings_without(large, ["msra", "silver"])
    assert {"msra", "silver"}.isdisjoint({**left.conventions, **left.auxiliary})
    assert {"cluener", "annotated"} <= {**left.conventions, **left.auxiliary}.keys()


def test_the_settings_of_a_specialist(recipe: ModuleType, tmp_path: Path) -> None:
    config = recipe.of_convention("cluener", tmp_path, 8)
    assert (config.data.convention, config.data.train) == ("cluener", (str(tmp_path / "cluener.jsonl"),))
    assert ([*config.conventions], [*config.auxiliary], config.data.noise) == ([], [], 0)


def test_specialists_annotate_what_the_packaged_models_read(recipe: ModuleType) -> None:
    read = set()
    for family in ("hanlattice", "linear"):
        for convention in recipe.load_config(recipe.PAPERS / family / "open.toml").conventions.values():
            read |= {Path(path).stem for path in convention.corpus if "silver_" in path}
    assert read == {f"silver_{name}" for name in recipe.SPECIALISTS}


def test_the_first_linear_tagger_needs_no_annotations_of_specialists(recipe: ModuleType, tmp_path: Path) -> None:
    config = recipe.of_first_lite(tmp_path / "by_teacher.jsonl", tmp_path / "words.txt")
    assert ([*config.conventions], {*config.auxiliary}) == ([], {"annotated", "silver"})
    assert config.auxiliary["silver"].corpus == (str(tmp_path / "by_teacher.jsonl"),)
    assert config.lexicon.files == (str(tmp_path / "words.txt"),)


@pytest.mark.parametrize("composition", [True, False])
def test_a_flat_with_a_new_body_finds_what_it_found_before(
    recipe: ModuleType, composition: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import add_body
    from hanlattice.model import weights

    ner = untrained_flat.untrained(composition=composition)
    flat = tmp_path / "flat"
    weights.save_model(flat, ner.tagger, ner.vocabulary, ner.lexicon, ner.config, card="untrained")
    folder = tmp_path / "large"
    command = ["add_body.py", str(folder), "--flat", str(flat), "--body", str(tiny.body())]
    monkeypatch.setattr("sys.argv", command)
    add_body.main()
    found = weights.load_model(folder)
    assert found.config.embedding.name == "own"
    for text in untrained_flat.TEXTS:
        expected = ner(text).entities
        assert [e.span for e in found(text).entities] == [e.span for e in expected]
        assert [e.score for e in found(text).entities] == pytest.approx([e.score for e in expected], abs=1e-5)
    assert any(ner(text).entities for text in untrained_flat.TEXTS)
    reads = found.tagger.state_dict()["encoder.char_projection.weight"]
    assert reads.shape[1] > ner.tagger.state_dict()["encoder.char_projection.weight"].shape[1]
    assert add_body.with_body(tmp_path / "nothing", tiny.body(), folder) == folder  # it exists


@pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")
def test_small_weights_of_the_lite_model_are_left_out(
    recipe: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import make_lite_model

    monkeypatch.setattr(make_lite_model, "LEAST_WEIGHT", 50)
    monkeypatch.setattr(make_lite_model, "LEAST_OF_OTHERS", 70)
    for name in (recipe.ANNOTATED_NAMES, recipe.NEWS_NAMES):
        (tmp_path / name).write_text("", "utf-8")
    folder = make_lite_model.packed(LITE, tmp_path / "lite", tmp_path)
    taggers = [LinearTagger.open(ModelFolder.open(folder))]
    taggers.insert(0, LinearTagger.open(ModelFolder.open(LITE)))
    for name in taggers[0].conventions:
        given, kept = (abs(tagger.of(name).tables.rows.astype(int)) for tagger in taggers)
        assert (kept == given * (given >= (70 if name else 50))).all()
        assert kept.any()


def test_names_of_annotated_sentences_join_the_lexicon_if_they_have_no_label_in_it(
    recipe: ModuleType, tmp_path: Path
) -> None:
    names = ("李明\tPER", "云鲜网\tORG", "苹果\tORG", "一二三四五六\tORG", "一二三四五六七\tORG")
    (tmp_path / recipe.ANNOTATED_NAMES).write_text("\n".join(names), "utf-8")
    of_news = ("王芳\tPER", "云鲜网\tPER", "克尤木·巴吾东\tPER")
    (tmp_path / recipe.NEWS_NAMES).write_text("\n".join(of_news), "utf-8")
    given = Lexicon([("李明", "WORK", None), "苹果", "我们"])
    found = recipe.with_annotated_names(given, tmp_path)
    labels = {entry.text: entry.label for entry in found.entries()}
    expected = {"李明": "WORK", "苹果": "ORG", "云鲜网": "ORG", "一二三四五六": "ORG", "我们": None, "王芳": "PER"}
    assert labels == expected
    assert len(given) == 3


def test_persons_of_the_news_are_collected_unless_the_model_knows_the_word(
    recipe: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*command: object) -> None:
        given = list(map(str, command))
        names = {"open.jsonl": "李明\tPER", "news1998.jsonl": "王芳\tPER\n乐天\tPER\n新华社\tORG"}
        Path(given[-1]).write_text(names[Path(given[given.index("--corpus") + 1]).name], "utf-8")

    monkeypatch.setattr(recipe, "run", run)
    (tmp_path / "lexicon.txt").write_text("乐天\n", "utf-8")
    recipe.annotated_names(tmp_path, tmp_path, tmp_path / "by_ensemble.jsonl")
    assert [*Lexicon.open(tmp_path / recipe.NEWS_NAMES)] == []  # without the corpus
    (tmp_path / recipe.NEWS_NAMES).unlink()
    (tmp_path / "news1998.jsonl").touch()
    recipe.annotated_names(tmp_path, tmp_path, tmp_path / "by_ensemble.jsonl")
    assert [*Lexicon.open(tmp_path / recipe.ANNOTATED_NAMES)] == ["李明"]
    assert [*Lexicon.open(tmp_path / recipe.NEWS_NAMES)] == ["王芳"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("annotated_names.txt", "lexicon.txt", "news1998.jsonl", "news1998_names.txt")
    ]


def test_specialists_annotate_sentences_with_enough_entities(
    recipe: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["李明在北京", "他在上海", "今天下雨"] * 4

    def annotated(output: Path, teacher: object, corpora: Path, characters: int) -> Path:
        rows = [(text, re.findall("李明|北京|上海", text)) for text in texts]
        corpus.write(
            [Document(t, tuple(Entity(n, "x", t.index(n), t.index(n) + 2) for n in names)) for t, names in rows],
            output,
            "jsonl",
        )
        return output

    monkeypatch.setattr(recipe, "annotated", annotated)
    for least, most, expected in ((1, 100, 8), (2, 100, 4), (1, 3, 3)):
        specialist = recipe.Specialist(1, most, least)
        found = list(corpus.read(recipe.in_convention(tmp_path / "silver.jsonl", None, tmp_path, specialist)))
        assert len(found) == expected
        assert all(len(document.entities) >= least for document in found)
    assert [path.name for path in tmp_path.iterdir()] == ["silver.jsonl"]


def test_the_gazetteer_reads_distinct_lines_spread_over_a_file(tmp_path: Path) -> None:
    from gazetteer import distinct_lines

    lines = [f"{i:06}在北京" for i in range(1_000)]
    (tmp_path / "raw.txt").write_text("\n".join([*lines, "短", "长" * 301, *lines[-9:]]), "utf-8")
    found = list(distinct_lines(tmp_path / "raw.txt", 10**6, lambda line: line < lines[10]))
    assert found == lines[10:]
    sampled = [lines.index(line) for line in distinct_lines(tmp_path / "raw.txt", 900, lambda line: False)]
    assert 70 < len(sampled) < 130
    assert sampled[0] < 20
    assert sampled[-1] > 980
    assert max(b - a for a, b in pairwise(sampled)) < 40


@pytest.mark.parametrize(
    ("as_label", "occurrences", "expected"),
    [
        ({}, 1, "PER"),
        ({}, 49, "PER"),
        ({}, 50, ""),  # often there, never an entity
        ({"PER": 2}, 50, ""),
        ({"PER": 3}, 60, "PER"),
        ({"LOC": 3}, 6, "LOC"),  # the texts give it another label
        ({"LOC": 2}, 4, "PER"),
        ({"LOC": 3, "ORG": 2}, 6, "PER"),
    ],
)
def test_a_name_keeps_its_label_unless_the_texts_contradict_it(
    as_label: dict[str, int], occurrences: int, expected: str
) -> None:
    from gazetteer import label_of

    found = {"李明": Counter(as_label)} if as_label else {}
    counted = Counter({"李明": occurrences})
    assert label_of("李明", found, counted, {}, {"李明": "PER"}) == expected
    assert label_of("李明", found, counted, {"李明": "ORG"}, {"李明": "PER"}) == expected


def test_a_name_that_the_texts_never_have_counts_as_a_word_of_its_list() -> None:
    from gazetteer import label_of

    assert label_of("李明", {}, Counter(), {}, {"李明": "PER"}) == ""
    assert label_of("李明", {}, Counter(), {"李明": "ORG"}, {"李明": "PER"}) == "ORG"


@pytest.mark.parametrize(("entities", "occurrences", "kept"), [(2, 49, True), (2, 50, False), (3, 50, True)])
def test_corpora_contradict_words_that_are_hardly_ever_names(
    entities: int, occurrences: int, kept: bool, tmp_path: Path
) -> None:
    from gazetteer import without_ordinary_words

    name = Document("李明在", (Entity("李明", "PER", 0, 2),))
    documents = [name] * entities + [Document("李明在")] * (occurrences - entities)
    corpus.write(documents, tmp_path / "raw.jsonl", "jsonl")
    labels = {"李明": "PER", "北京": "LOC"}
    found = without_ordinary_words(labels, hanlattice.load("lite"), [tmp_path / "raw.jsonl"])
    assert found == (labels if kept else {"北京": "LOC"})


def test_screen_names_are_not_names_of_the_gazetteer(tmp_path: Path) -> None:
    from gazetteer import count_annotated, count_predicted

    ner = hanlattice.load("lite")
    text = "@李明,说李明在北京。"
    found: dict[str, Counter[str]] = defaultdict(Counter)
    count_predicted(ner, [text], found)
    assert found["李明"].total() == 1
    annotated = Document(text, (Entity("李明", "PER", 1, 3), Entity("李明", "PER", 5, 7)))
    corpus.write([annotated], tmp_path / "annotated.jsonl", "jsonl")
    found.clear()
    assert count_annotated(ner, [tmp_path / "annotated.jsonl"], found) == [text]
    assert found == {"李明": Counter(PER=1)}


@pytest.mark.parametrize(("times", "least", "expected"), [(1, 1, "PER"), (1, 2, ""), (2, 3, ""), (3, 3, "PER")])
def test_a_name_is_annotated_often_enough(times: int, least: int, expected: str) -> None:
    from gazetteer import label_of

    found = {"李明": Counter(PER=times)}
    assert label_of("李明", found, Counter({"李明": times}), {}, {}, least) == expected


def test_pretraining_leaves_out_what_chooses_the_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hanlattice.training.held_out import load_held_out

    (tmp_path / "held_out.py").write_text(
        "class HeldOut:\n    def __call__(self, text):\n        return text == '留出'\n", "utf-8"
    )
    document = "王小红昨天在南京长江大桥上散步。"
    (tmp_path / "aside.jsonl").write_text(json.dumps({"text": document, "entities": []}) + "\n", "utf-8")
    monkeypatch.setenv("HANLATTICE_DATA", str(tmp_path))
    monkeypatch.setenv("OPEN_CORPORA", str(tmp_path))
    is_held_out = load_held_out(SCRIPTS / "left_out.py")
    assert [is_held_out(text) for text in ("留出", "他说：" + document, "别的")] == [True, True, False]


def test_texts_of_corpora_for_evaluation_are_left_out(tmp_path: Path) -> None:
    from left_out import left_out

    (tmp_path / "held_out.py").write_text(
        "class HeldOut:\n    def __call__(self, text):\n        return text == '留出'\n", "utf-8"
    )
    document = "王小红昨天在南京长江大桥上散步。"
    (tmp_path / "aside.txt").write_text(
        "\n".join(f"{character}\tO" for character in document) + "\n\n短\tO\n", "utf-8"
    )
    is_left_out = left_out(tmp_path / "held_out.py", [tmp_path / "aside.txt"])
    found = {
        text: is_left_out(text) for text in ("留出", document[2:15] + "后", document[2:14] + "后", "短", "", "别的")
    }
    assert list(found.values()) == [True, True, False, True, False, False]
    assert is_left_out("他说：" + document[:8] + " \n" + document[8:])
    assert not left_out(None)(document)
