"""Training a linear tagger: the folder it leaves, the effect of its settings, and errors of one line."""

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import hanlattice
import tiny
from hanlattice import api, corpus
from hanlattice.cli import main
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config, save_config
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, DataError, EngineError, ModelError
from hanlattice.evaluation.temperature import calibrate
from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels import library
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import faults, record
from hanlattice.model.folder import CONFIG, WEIGHTS, ModelFolder
from hanlattice.model.saving import save
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.training import user_words
from hanlattice.training.corpora import load_corpora
from hanlattice.training.linear import variation
from hanlattice.training.linear.learner import Corpus, LinearLearner
from hanlattice.training.linear.run import _Data, train_linear
from hanlattice.training.linear.variation import LEFT_OUT, GoldSpans, kinds_without_label, varied, with_user_words
from hanlattice.training.watcher import Silent

pytestmark = pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor of x86 with AVX2")


def settings(**tables: Any) -> Config:
    place = tiny.folder()
    names: dict[str, dict[str, Any]] = {
        "data": {"train": [str(place / "corpus.bmes")], "dev": str(place / "corpus.bmes")},
        "lexicon": {"files": [str(place / "words.txt")], "vector_words": False},
        "vectors": {"min_frequency": 1},
        "embedding": {"name": "ngrams"},
        "encoder": {"name": "linear", "feature_dropout": 0.0},
        "training": {"epochs": 6, "learning_rate": 0.2},
    }
    for table, values in tables.items():
        names[table] = {**names.get(table, {}), **values}
    return Config().with_settings(names)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linear") / "model"
    run = train_linear(settings(), folder)
    assert run.dev.micro.f1 > 0.95
    return folder


def test_the_folder_gives_what_was_scored(trained: Path) -> None:
    assert list(faults(trained)) == []
    ner = hanlattice.load(trained)
    assert isinstance(ner.engine, LinearTagger)
    texts = [d.text for d in tiny.documents()]
    found = list(ner.pipe(texts))
    assert found == [ner(text) for text in texts]
    assert hanlattice.evaluate(ner, tiny.documents()).micro.f1 > 0.95
    assert all(0 < (e.score or 0) <= 1 for d in found for e in d.entities)
    assert list(ner.pipe(["", "。"])) == [Document(""), Document("。")]


def test_offsets_count_characters_of_the_given_text(trained: Path) -> None:
    document = hanlattice.load(trained)("㍿李明在北京工作。")
    assert ("李明", 1, "PER") in [(e.text, e.start, e.label) for e in document.entities]
    assert all(e.text == document.text[e.start : e.end] for e in document.entities)


def test_the_lexicon_is_live_and_rules_apply(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    few_n_grams = {"longest": 1, "window": 1, "min_count": 12}  # so that it has to learn from words
    given = {"data": {"user_words": 1.0}, "lexicon": {"files": []}, "training": {"epochs": 20, "evaluate_from": 20}}
    train_linear(settings(embedding=few_n_grams, **given), folder)
    ner, text = hanlattice.load(folder), "北京的嘉和书店很好,李明说"

    def score() -> float:
        return sum(e.score or 0 for e in ner(text).entities if (e.text, e.label) == ("嘉和书店", "ORG"))

    before = score()
    ner.lexicon.add("嘉和书店", "ORG")
    assert score() > max(before, 0.5)
    with ner.using(lexicon=Lexicon()):
        assert score() <= before
    with ner.using(block={"嘉和书店": None}):
        assert score() == 0
    with ner.using(force={"很好": "PER"}):
        assert "很好" in [e.text for e in ner(text).entities]
    with ner.using(threshold=1.0):
        assert ner(text).entities == ()


class Said(Silent):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def test_what_is_left_out_of_the_corpora_is_reported(tmp_path: Path) -> None:
    first = tiny.documents()[0]
    nested = Document("他在北京大学", (Entity("北京", "LOC", 2, 4), Entity("北京大学", "ORG", 2, 6)))
    corpus.write([replace(first, entities=()), nested], tmp_path / "more.jsonl", "jsonl")
    data = settings().data
    given = {"train": [*data.train, str(tmp_path / "more.jsonl")], "outermost": True, "labels": {"PRE": "PER"}}
    said = Said()
    train_linear(
        settings(data={**given, "dev": data.dev}, training={"epochs": 1}), tmp_path / "model", watcher=said
    )
    summary = said.lines[0]
    assert "; 1 nested entities left out" in summary
    assert "; 1 texts left out that an earlier file of their convention annotates differently" in summary
    assert f"left out: {tmp_path / 'more.jsonl'}:1: an earlier file has this text" in "\n".join(said.lines)
    assert "data.labels renames PRE, which train, dev and test do not have" in said.lines


def test_entities_count_once_and_those_of_further_corpora_are_reported(tmp_path: Path) -> None:
    """Not the copies with noise, and not the windows that overlap."""
    text = "甲" * 46 + "李明" + "乙" * 48
    apart = Entity.of("李和王明", Span(0, 4, "PER", ((1, 3),)))
    long = Entity(text[:80], "PER", 0, 80)
    corpus.write([Document(text, (Entity("李明", "PER", 46, 48),))], tmp_path / "a.jsonl", "jsonl")
    corpus.write(
        [*corpus.read(tmp_path / "a.jsonl"), Document(text, (long,)), Document("李和王明", (apart,))],
        tmp_path / "b.jsonl",
        "jsonl",
    )
    given = {
        "data": {"train": str(tmp_path / "a.jsonl"), "noise": 1.0},
        "text": {"window": 64, "overlap": 32},
        "auxiliary": {"w": {"corpus": str(tmp_path / "b.jsonl"), "same_convention": True}},
    }
    config, said = settings(**given), Said()
    _Data.of(config, load_corpora(config), said)
    assert said.lines[0].startswith("1 documents, 1 entities of 1 labels; 3 further documents; dev ")
    assert said.lines[1] == (
        "also 3 documents of 'w', 3 entities; 1 entities cross the border of a window and are not trained on; 1 are"
        " discontinuous and are not trained on"
    )


def test_two_runs_are_equal_and_another_seed_differs(trained: Path, tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train_linear(settings(training={"seed": seed, "epochs": 2}), tmp_path / name)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


def learner_of(**changes: Any) -> tuple[LinearLearner, Corpus]:
    texts, labels = ["李明在北京", "张伟在南京"], ("LOC", "PER")
    vocabulary = Vocabulary(tuple(sorted(set("".join(texts)))), (), (), labels, labels, True)
    sentences = Reader(vocabulary).read(texts, Lexicon([("北京", "LOC", None)]))
    one = [8 + 2, 24 + 2, 0, 8 + 1, 24 + 1]  # B-PER E-PER O B-LOC E-LOC, with 8 lanes
    given = Corpus(sentences, np.array(one * 2))
    chosen = {"window": 3, "longest": 4, "min_count": 1, "dropout": 0.0, "seed": 1, **changes}
    return LinearLearner(given, vocabulary, **chosen), given


def losses(learner: LinearLearner, given: Corpus, n: int = 5) -> list[float]:
    return [learner.epoch(given, np.array([0, 1]), 0.1) for _ in range(n)]


def test_the_loss_falls_and_settings_change_the_features() -> None:
    learner, given = learner_of()
    found = losses(learner, given)
    assert found == sorted(found, reverse=True)
    n = len(learner.rows)
    assert len(learner_of(window=1)[0].rows) < n
    assert len(learner_of(longest=2)[0].rows) < n
    assert len(learner_of(min_count=2)[0].rows) < n
    dropped, _ = learner_of(dropout=0.5)
    assert losses(dropped, given) != found


def test_without_weights_all_legal_tags_are_equally_likely() -> None:
    learner, given = learner_of()
    closed, open_ = 3, 2  # sequences of one tag that end in O or single, and in begin
    for _ in range(4):
        closed, open_ = 3 * closed + open_, 2 * closed + open_
    assert learner.epoch(given, np.array([0]), 0.0) == pytest.approx(np.log(closed), rel=1e-5)


def test_pruning_keeps_the_largest_rows_and_the_prefixes_of_n_grams() -> None:
    learner, given = learner_of()
    losses(learner, given)
    whole = learner.tables()
    learner.prune(20)
    assert len(learner.rows) <= 20
    tables = learner.tables()
    assert np.abs(tables.rows).max(1).min() >= np.median(np.abs(whole.rows).max(1)) / 2
    keys = set(tables.keys.tolist())
    for key in keys:
        if key < 0xFFF0 << 48 and key >> 16:
            assert {key & (1 << bits) - 1 for bits in (16, 32, 48)} <= keys | {key}
    assert losses(learner, given, 1)[0] > 0  # it can be trained further


@pytest.mark.parametrize(
    ("forget", "drop", "kinds"), [(1.0, 0.0, [0, 3]), (0.0, 1.0, [LEFT_OUT] * 2), (0, 0, [2, 4])]
)
def test_matched_words_lose_their_label_or_are_left_out(forget: float, drop: float, kinds: list[int]) -> None:
    vocabulary = Vocabulary((), (), (), ("LOC", "PER"), ("LOC", "PER"), True)
    sentences = tiny_sentences([2, 4])
    found = varied(
        sentences,
        forget=forget,
        drop=drop,
        kind_without_label=kinds_without_label(vocabulary),
        draw=np.random.default_rng(0),
    )
    assert found.word_labels.tolist() == kinds


def tiny_sentences(kinds: list[int]) -> Sentences:
    n, zeros = len(kinds), np.zeros(len(kinds), np.int64)
    chars = np.full(4 * n, 2)
    place = np.arange(n + 1)
    return Sentences(chars, chars, 4 * place, zeros, zeros, zeros + 2, np.array(kinds), place, ["甲乙丙丁"] * n)


def test_gold_names_become_user_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variation, "ORDINARY", 0.0)
    monkeypatch.setattr(variation, "LARGE", 0.0)
    labels = ("LOC", "PER")
    vocabulary = Vocabulary((), (), (), labels, labels, True)
    sentences = tiny_sentences([0] * 400)
    gold = GoldSpans.of([[Span(1, 4, "PER")]] * 400, labels)
    found = with_user_words(sentences, gold, vocabulary, 0.5, np.random.default_rng(0))
    added = found.word_labels[found.word_labels > 2]
    assert 100 < len(added) < 180
    assert set(added.tolist()) >= {3, 5}
    assert found.first_word[-1] == len(found.word_labels) == 400 + len(added)
    assert {found[i].end.max() for i in range(400)} == {2, 3, 4}
    assert len(with_user_words(sentences, gold, vocabulary, 0.0, np.random.default_rng(0)).words) == 400


def test_a_user_word_replaces_the_matched_word_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a tagger reads them: a place has one word."""
    for name, value in (("CHOSEN", 1.0), ("LARGE", 0.0), ("ORDINARY", 0.0), ("UNLABELLED", 1.0)):
        monkeypatch.setattr(variation, name, value)
    labels = ("LOC", "PER")
    vocabulary = Vocabulary((), (), (), labels, labels, True)
    gold = GoldSpans.of([[Span(0, 2, "PER")], [Span(1, 4, "PER")]], labels)
    found = with_user_words(tiny_sentences([2, 2]), gold, vocabulary, 1.0, np.random.default_rng(0))
    assert found[0].start.tolist() == [0, 0]
    assert found.word_labels.tolist() == [LEFT_OUT, 3, 2, 3]


def user_words_of(gold: Span, n: int, seed: int = 0) -> Counter[tuple[int, int, int]]:
    """Start, end and kind of the user words in sentences of four characters that have the words 0-2 and 2-4."""
    labels = ("LOC", "PER")
    vocabulary = Vocabulary((), (), (), labels, labels, True)
    zeros, two = np.zeros(2 * n, np.int64), np.tile([0, 2], n)
    chars, place = np.full(4 * n, 2), np.arange(n + 1)
    sentences = Sentences(chars, chars, 4 * place, zeros, two, two + 2, zeros, 2 * place, ["甲乙丙丁"] * n)
    found = with_user_words(
        sentences, GoldSpans.of([[gold]] * n, labels), vocabulary, 1.0, np.random.default_rng(seed)
    )
    rows = zip(found.start.tolist(), found.end.tolist(), found.word_labels.tolist(), strict=True)
    return Counter(row for row in rows if row[2] > 2)


def test_ordinary_words_become_user_words(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("CHOSEN", 0.0), ("LARGE", 0.0), ("ORDINARY", 0.8)):
        monkeypatch.setattr(variation, name, value)
    n = 4000
    found = user_words_of(Span(1, 4, "PER"), n)
    assert {(start, end) for start, end, _ in found} == {(0, 2), (2, 4), (0, 3), (0, 4)}  # 1-4 is the name
    assert {kind for _, _, kind in found} == {3}
    assert found[0, 2, 3] == pytest.approx(0.8 * n * (0.25 + 0.075), rel=0.1)
    assert found[0, 4, 3] == pytest.approx(0.8 * n * 0.1, rel=0.2)  # both words together
    assert user_words_of(Span(0, 2, "PER"), 500).keys() == {(2, 4, 3), (0, 3, 3), (0, 4, 3), (1, 4, 3)}


def test_a_large_dictionary_has_few_names_and_many_ordinary_words(monkeypatch: pytest.MonkeyPatch) -> None:
    n, found = 4000, []
    for name, value in (("LARGE", 1.0), ("CHOSEN", 1.0), ("ORDINARY", 1.0)):
        monkeypatch.setattr(variation, name, value)
    for rate in (0.05, 0.1):
        monkeypatch.setattr(variation, "COMPOUNDS", rate)
        found.append(user_words_of(Span(1, 4, "PER"), n))
    for rate, words in zip((0.05, 0.1), found, strict=True):
        assert {kind for _, _, kind in words} == {3}
        assert words[1, 4, 3] == pytest.approx(user_words.IN_LARGE * n, rel=0.1)
        ordinary = sum(words.values()) - words[1, 4, 3]
        assert ordinary == pytest.approx(4 * rate * n * (1 - 0.075), rel=0.1)  # 1-4 would be the name


def test_sentences_without_words_get_no_ordinary_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variation, "ORDINARY", 1.0)
    labels = ("LOC", "PER")
    vocabulary = Vocabulary((), (), (), labels, labels, True)
    nothing, chars = np.zeros(0, np.int64), np.full(4, 2)
    sentences = Sentences(chars, chars, np.array([0, 4]), *(nothing,) * 4, np.array([0, 0]), ["甲乙丙丁"])
    gold = GoldSpans.of([[]], labels)
    found = with_user_words(sentences, gold, vocabulary, 1.0, np.random.default_rng(0))
    assert found.first_word.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"decoder": {"name": "biaffine"}}, "the encoder 'linear' needs the decoder 'crf', not 'biaffine'"),
        ({"decoder": {"scheme": "BIO"}}, "decoder.scheme must be one of 'BMES', not 'BIO'"),
        ({"embedding": {"name": "characters"}}, "needs the embedding 'ngrams', not 'characters'"),
        ({"encoder": {"name": "flat"}}, "the embedding 'ngrams' needs the encoder 'linear', not 'flat'"),
        ({"embedding": {"window": 4}}, "embedding.window must be at least 1 and at most 3"),
        ({"embedding": {"longest": 5}}, "embedding.longest must be at least 1 and at most 4"),
        ({"encoder": {"rows": -1}}, "encoder.rows must be at least 0"),
        ({"encoder": {"rosw": 1}}, "encoder 'linear' has no setting 'rosw'"),
        (
            {"conventions": {"b": {"corpus": "x", "decoder": {"name": "softmax"}}}},
            r"needs the decoder 'crf', not 'softmax' \(conventions.b.decoder\)",
        ),
        (
            {"conventions": {"b": {"corpus": "x", "decoder": {"rows": -1}}}},
            "conventions.b.decoder.rows must be at least",
        ),
        ({"conventions": {"b": {"corpus": "x", "weight": 2.0}}}, "'linear' has no conventions.b.weight; remove"),
        ({"auxiliary": {"words": {"corpus": "x"}}}, "set auxiliary.words.same_convention = true"),
        ({"training": {"start": "default"}}, "trained from scratch"),
        ({"training": {"batch_size": 3}}, "'linear' has no training.batch_size; remove"),
        ({"training": {"tensorboard": "x"}}, "'linear' has no training.tensorboard; remove"),
        ({"training": {"device": "cuda"}}, "'linear' has no training.device 'cuda'; use 'cpu'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tables: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        api.run_training(settings(**tables), tmp_path / "model")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model").exists()


def test_nested_entities_and_used_folders_are_refused(trained: Path, tmp_path: Path) -> None:
    text = "渝中区人和药店开业"
    nested = Document(text, (Entity(text[:7], "ORG", 0, 7), Entity(text[:3], "LOC", 0, 3)))
    corpus.write([nested] * 3, tmp_path / "nested.jsonl", "jsonl")
    given = {"train": [str(tmp_path / "nested.jsonl")]}
    with pytest.raises(DataError, match=r"nested[.]jsonl:1: .* overlap, .*data[.]outermost = true"):
        train_linear(settings(data=given), tmp_path / "model")
    assert not (tmp_path / "model").exists()
    run = train_linear(settings(data={**given, "outermost": True}), tmp_path / "model")
    assert run.folder == tmp_path / "model"
    with pytest.raises(ConfigError, match="already holds a run; name another folder"):
        train_linear(settings(), trained)
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"has README\.md, which a run would replace; name an empty folder"):
        train_linear(settings(), tmp_path)
    with pytest.raises(ConfigError, match="cannot be resumed; start again"):
        api.run_training(settings(), trained, resume=True)
    with pytest.raises(EngineError, match="is a linear tagger, which runs on the CPU without torch"):
        hanlattice.load(trained, engine="torch")


@pytest.fixture(scope="module")
def with_convention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger with a convention ``places``, in which only places are entities, with the label GPE."""
    folder = tmp_path_factory.mktemp("conventions")
    places = [
        replace(d, entities=tuple(replace(e, label="GPE") for e in d.entities if e.label == "LOC"))
        for d in tiny.documents()
    ]
    corpus.write(places, folder / "places.jsonl", "jsonl")
    given = {"places": {"corpus": str(folder / "places.jsonl")}}
    train_linear(settings(conventions=given, data={"user_words": 0.5}), folder / "model")
    return folder / "model"


def test_each_convention_has_its_own_labels_and_weights(with_convention: Path) -> None:
    ner, text = hanlattice.load(with_convention), "李明在北京工作。"
    assert [(e.text, e.label) for e in ner(text).entities] == [("李明", "PER"), ("北京", "LOC")]
    with ner.using(convention="places"):
        assert ner.labels == ("GPE",)
        assert [(e.text, e.label) for e in ner(text).entities] == [("北京", "GPE")]
        assert "GPE" in ner.vocabulary.word_labels, "a user's word may have a label of any convention"
    again = hanlattice.load(with_convention, convention="places")
    assert [e.label for e in again(text).entities] == ["GPE"]
    assert list(faults(with_convention)) == []


def test_the_progress_of_each_convention_counts_its_own_epochs(
    with_convention: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    given = {"places": {"corpus": names, "epochs": 5}}
    train_linear(settings(conventions=given, training={"epochs": 2}), tmp_path / "model", watcher=TrainingLines(2))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("epoch ")]
    assert [line.split()[1] for line in lines] == ["1/2", "2/2", "1/5", "2/5", "3/5", "4/5", "5/5"]
    assert not any("-" in line for line in lines), "time left is not negative"


def test_a_convention_does_not_change_the_default_one(with_convention: Path, tmp_path: Path) -> None:
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    given = {"places": {"corpus": names}}
    train_linear(settings(conventions=given, data={"user_words": 0.0}), tmp_path / "both")
    train_linear(settings(data={"user_words": 0.0}), tmp_path / "one")
    both, one = (load_file(tmp_path / name / "model.safetensors") for name in ("both", "one"))
    assert {name for name in both if name.startswith("linear.")} == set(one)
    assert all(np.array_equal(both[name], one[name]) for name in one)


def test_discontinuous_entities_are_left_out_and_counted(tmp_path: Path) -> None:
    documents = list(corpus.read(tiny.folder() / "corpus.bmes"))
    text = "李明在重庆市工作"
    broken = Document(text, (Entity("李明", "PER", 0, 2), Entity.of(text, Span(2, 8, "LOC", ((3, 6),)))))
    corpus.write([*documents, broken, broken], tmp_path / "train.jsonl", "jsonl")
    with mock.patch.object(Silent, "say") as say:
        train_linear(settings(data={"train": [str(tmp_path / "train.jsonl")]}), tmp_path / "model")
    assert any("2 are discontinuous and are not trained on" in call.args[0] for call in say.call_args_list)


def test_patience_waits_until_the_rows_are_limited(tmp_path: Path) -> None:
    run = train_linear(settings(encoder={"rows": 40}, training={"epochs": 9, "patience": 1}), tmp_path / "model")
    tables = LinearTagger.open(ModelFolder.open(tmp_path / "model")).tables
    assert len(tables.rows) <= 40
    n = len(list(corpus.read(tiny.folder() / "corpus.bmes")))
    assert (run.progress.epoch, run.progress.step) == (9, 9 * n)


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_rows_are_limited_whatever_the_number_of_epochs(epochs: int, tmp_path: Path) -> None:
    train_linear(settings(encoder={"rows": 40}, training={"epochs": epochs}), tmp_path / "model")
    assert 0 < len(LinearTagger.open(ModelFolder.open(tmp_path / "model")).tables.rows) <= 40


@pytest.mark.parametrize("epochs", [1, 2, 3])
def test_rows_are_not_limited_before_anything_is_learned(epochs: int, tmp_path: Path) -> None:
    """Before the first epoch all weights are 0, and every row would be removed."""
    runs = [
        train_linear(settings(encoder={"rows": rows}, training={"epochs": epochs}), tmp_path / str(rows))
        for rows in (0, 100_000)
    ]
    scores = [run.dev.micro.f1 for run in runs]
    assert scores[0] == scores[1] > 0.5


@pytest.mark.parametrize("rows", [0, 30])
def test_the_rows_of_a_convention_are_limited_by_its_own_number(
    with_convention: Path, tmp_path: Path, rows: int
) -> None:
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    given = {"places": {"corpus": names, "decoder": {"rows": rows}}}
    train_linear(settings(conventions=given, encoder={"rows": 60}), tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    n = {name: len(weights[f"{name}linear.columns"]) for name in ("", "conventions.places.")}
    assert 30 < n[""] <= 60
    assert n["conventions.places."] <= (rows or 60)
    assert (n["conventions.places."] > 30) == (rows == 0)


def test_a_convention_has_its_own_number_of_epochs(with_convention: Path, tmp_path: Path) -> None:
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    weights = {}
    for epochs, name in ((0, "same"), (6, "six"), (1, "one")):
        given = {"places": {"corpus": names, "epochs": epochs}}
        train_linear(settings(conventions=given), tmp_path / name)
        weights[name] = load_file(tmp_path / name / "model.safetensors")
    own = "conventions.places.linear.weights"
    assert np.array_equal(weights["same"][own], weights["six"][own])
    assert not np.array_equal(weights["same"][own], weights["one"][own])
    assert np.array_equal(weights["six"]["linear.weights"], weights["one"]["linear.weights"])


def test_two_processes_do_not_train_in_one_folder(tmp_path: Path) -> None:
    class Second(Silent):
        def epoch(self, row: dict[str, Any]) -> None:
            with pytest.raises(ConfigError, match="run is in use by another process"):
                train_linear(settings(), tmp_path / "run")

    train_linear(settings(training={"epochs": 1}), tmp_path / "run", watcher=Second())
    assert list(faults(tmp_path / "run")) == []


def test_a_corpus_without_an_entity_to_learn_is_refused(tmp_path: Path) -> None:
    text = "上肢和下肢疼痛"
    split = Document(text, (Entity.of(text, Span(0, 7, "SYM", ((2, 5),))),))
    corpus.write([split] * 4, tmp_path / "gaps.jsonl", "jsonl")
    with pytest.raises(
        DataError, match=r"gaps\.jsonl: has no entity that this tagger can learn: all are discontin"
    ):
        train_linear(settings(data={"train": [str(tmp_path / "gaps.jsonl")]}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_noise_has_the_form_of_a_text_to_predict() -> None:
    config = settings(data={"noise": 1.0}, text={"tidy": True})
    data = _Data.of(config, load_corpora(config), Silent())
    normaliser = Normaliser.of(config.text)
    texts = data.corpus.sentences.texts
    assert len(texts) > len(tiny.documents())
    assert [normaliser(text).text for text in texts] == list(texts)


def test_noise_is_added_to_every_convention(with_convention: Path) -> None:
    """A share of the sentences is read a second time, and three times this share in a further convention."""
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    n = len(tiny.documents())
    for noise, expected in ((0.0, (n, n)), (0.2, (1.2 * n, 1.6 * n)), (0.5, (1.5 * n, 2 * n))):
        config = settings(conventions={"places": {"corpus": names}}, data={"noise": noise})
        data = _Data.of(config, load_corpora(config), Silent())
        found = len(data.corpus.sentences), len(data.others["places"])
        assert found == pytest.approx(expected, rel=0.15)
        assert found[1] == len(data.of_convention("places").corpus.sentences)


def test_a_convention_is_calibrated_alone(with_convention: Path, tmp_path: Path) -> None:
    names = load_config(with_convention / CONFIG).conventions["places"].corpus
    kept = [d if i % 3 else replace(d, entities=()) for i, d in enumerate(corpus.read(names[0]))]
    corpus.write(kept, tmp_path / "dev.jsonl", "jsonl")
    done = calibrate(with_convention, tmp_path / "dev.jsonl", tmp_path / "calibrated", convention="places")
    found = linear_settings(load_config(done.folder / CONFIG))
    assert found is not None
    assert found.temperature == 1.0
    assert found.conventions["places"].temperature == pytest.approx(done.temperature)
    assert abs(done.temperature - 1) > 0.1
    ner, text = hanlattice.load(done.folder), "李明在北京工作。"
    before = hanlattice.load(with_convention)
    assert ner(text).entities == before(text).entities
    with ner.using(convention="places"), before.using(convention="places"):
        assert ner(text).entities[0].score != before(text).entities[0].score


def test_broken_weights_of_a_convention_are_refused_by_name(with_convention: Path, tmp_path: Path) -> None:
    shutil.copytree(with_convention, tmp_path / "model")
    weights = load_file(tmp_path / "model" / "model.safetensors")
    weights["conventions.places.linear.keys"][:2] = 5
    save_file(weights, tmp_path / "model" / "model.safetensors")
    ner = hanlattice.load(tmp_path / "model")
    assert ner("李明在北京工作。").entities, "a convention is read when it is needed"
    with (
        ner.using(convention="places"),
        pytest.raises(ModelError, match=r"model: .*\(conventions.places.linear.keys are not sorted\)"),
    ):
        ner("李明在北京工作。")


def test_a_convention_is_not_read_from_a_file_that_was_replaced(with_convention: Path, tmp_path: Path) -> None:
    """The weights of a convention are read when it is used first; they have to be of the same model."""
    folder = tmp_path / "model"
    shutil.copytree(with_convention, folder)
    one, other = hanlattice.load(folder), hanlattice.load(folder)
    with one.using(convention="places"):
        one("北京")
    replacement = tmp_path / WEIGHTS
    replacement.write_bytes((folder / WEIGHTS).read_bytes())
    replacement.replace(folder / WEIGHTS)
    with one.using(convention="places"):
        one("北京")  # it has them already
    with (
        other.using(convention="places"),
        pytest.raises(ModelError, match="replaced since the model was opened"),
    ):
        other("北京")
    other("北京")


def test_a_convention_is_read_from_a_copy_that_replaced_the_folder(with_convention: Path, tmp_path: Path) -> None:
    """As a spaCy pipeline replaces its folder when it is saved."""
    folder = tmp_path / "model"
    shutil.copytree(with_convention, folder)
    ner = hanlattice.load(folder)
    ner.lexicon.add("上海")
    copy = save(ner, tmp_path / "copy")
    folder.rename(tmp_path / "old")
    copy.rename(folder)
    with ner.using(convention="places"):
        assert [e.label for e in ner("李明在北京工作。").entities] == ["GPE"]


def test_auxiliary_corpora_of_the_same_convention_are_learnt(tmp_path: Path) -> None:
    text = "在铁岭工作"
    corpus.write([Document(text, (Entity("铁岭", "LOC", 1, 3),))] * 4, tmp_path / "more.jsonl", "jsonl")
    more = {"more": {"corpus": str(tmp_path / "more.jsonl"), "same_convention": True}}
    train_linear(settings(auxiliary=more), tmp_path / "model")
    assert [e.text for e in hanlattice.load(tmp_path / "model")(text).entities] == ["铁岭"]
    corpus.write([Document(text, (Entity("铁岭", "GPE", 1, 3),))] * 4, tmp_path / "more.jsonl", "jsonl")
    with pytest.raises(DataError, match=r"more[.]jsonl: has GPE, which data[.]train lacks; rename them with"):
        train_linear(settings(auxiliary=more), tmp_path / "other")


def test_a_model_whose_settings_would_be_refused_in_training_is_loaded(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(trained, folder)
    more = {"more": {"corpus": "more.jsonl", "same_convention": True, "weight": 0.5}}
    save_config(load_config(folder / CONFIG).with_settings({"auxiliary": more}), folder / CONFIG)
    record(folder)
    text = "我在北京工作"
    assert hanlattice.load(folder)(text) == hanlattice.load(trained)(text)


def test_a_stopped_command_does_not_promise_to_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "run_training", mock.Mock(side_effect=KeyboardInterrupt))
    corpus_file = str(tiny.folder() / "corpus.bmes")
    with pytest.raises(SystemExit) as ended:
        main(["train", "--paper", "linear/msra", "--train", corpus_file, "--output", str(tmp_path / "model")])
    assert ended.value.code == 130
    assert (
        "stopped; a linear tagger cannot be resumed, and nothing was written: start again"
        in capsys.readouterr().err
    )


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tiny.folder()
    arguments = ["--train", place / "corpus.bmes", "--dev", place / "corpus.bmes", "--test", place / "corpus.bmes"]
    options = ["--lexicon", place / "words.txt", "--lexicon.vector_words", "false", "--data.exclude", "[]"]
    command = ["train", "--paper", "linear/msra", *arguments, *options, "--output", tmp_path / "model"]
    with pytest.raises(SystemExit) as ended:
        main([*map(str, command), "--training.epochs", "3"])
    out = capsys.readouterr()
    assert not ended.value.code, out.err
    assert "dev (best epoch" in out.out
    assert "test (best epoch" in out.out
    assert (tmp_path / "model" / "README.md").read_text("utf-8").startswith("# ngrams + linear + crf\n")


def test_packaged_settings_describe_linear_taggers() -> None:
    folder = Path(hanlattice.__file__).parent / "papers" / "linear"
    for path in folder.glob("*.toml"):
        assert linear_settings(load_config(path)) is not None


def test_calibration_changes_confidences_and_nothing_else(trained: Path, tmp_path: Path) -> None:
    kept = [tuple(e for j, e in enumerate(d.entities) if (i + j) % 3) for i, d in enumerate(tiny.documents())]
    partly_annotated = [replace(d, entities=entities) for d, entities in zip(tiny.documents(), kept, strict=True)]
    corpus.write(partly_annotated, tmp_path / "dev.jsonl", "jsonl")
    done = calibrate(trained, tmp_path / "dev.jsonl", tmp_path / "calibrated")
    assert done.temperature > 1  # the model was overconfident
    assert done.after.loss < done.before.loss
    assert list(faults(tmp_path / "calibrated")) == []
    before, after = (hanlattice.load(folder) for folder in (trained, tmp_path / "calibrated"))
    for document in tiny.documents():
        pairs = list(zip(before(document.text).entities, after(document.text).entities, strict=True))
        assert all(a.span == b.span for a, b in pairs)
        assert all((a.score or 0) > (b.score or 0) for a, b in pairs)
    again = calibrate(tmp_path / "calibrated", tmp_path / "dev.jsonl", tmp_path / "again")
    settings = [linear_settings(load_config(folder / "config.toml")) for folder in (done.folder, again.folder)]
    assert settings[0] is not None
    assert settings[1] is not None
    assert settings[0].temperature == done.temperature
    assert settings[1].temperature == pytest.approx(done.temperature * again.temperature)
    assert again.temperature == pytest.approx(1.0, abs=0.05)
    with pytest.raises(ConfigError, match=r"decoder\.temperature must be at least"):
        linear_settings(load_config(done.folder / "config.toml").with_settings({"decoder": {"temperature": 0.0}}))
