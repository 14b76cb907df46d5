"""Distillation: which raw text is read, what is kept of the teacher's output, and errors of one line."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

import hanlattice
import tiny
from hanlattice import corpus
from hanlattice.cli import main
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, DataError
from hanlattice.kernels import library
from hanlattice.model.digests import CHECKPOINT
from hanlattice.pipeline import NER
from hanlattice.training import distillation
from hanlattice.training.held_out import load_held_out
from hanlattice.training.linear.run import train_linear

needs_kernels = pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor of x86 with AVX2")


@pytest.mark.parametrize("characters", [10, 50, 333, 2000])
def test_sample_is_spread_evenly(characters: int) -> None:
    lines = [f"{i:04}" for i in range(1000)]
    found = distillation.sample(iter(lines), characters)
    assert sum(map(len, found)) == pytest.approx(characters, abs=8)
    assert found == sorted(found)
    gaps = [int(b) - int(a) for a, b in pairwise(found)]
    assert max(gaps) <= 2.5 * 4000 / characters + 1
    assert distillation.sample(iter(lines), 10_000) == lines


@pytest.mark.parametrize("n", [1, 5])
def test_sample_has_a_text_even_if_all_are_longer_than_wanted(n: int) -> None:
    assert distillation.sample(["a" * 1000] * n, 100) == ["a" * 1000]


def test_sentences_of_one_long_line_are_sampled(tmp_path: Path) -> None:
    """A corpus may have a book in each line."""
    (tmp_path / "a.txt").write_text("".join(f"他昨天在第{i}个城市工作。" for i in range(1000)), encoding="utf-8")
    found = list(distillation.raw_sentences([tmp_path / "a.txt"], 500))
    assert sum(map(len, found)) == pytest.approx(500, abs=30)
    assert found[-1] > "他昨天在第8"


def test_raw_sentences_are_distinct_and_not_held_out(tmp_path: Path) -> None:
    long = "他昨天在北京工作。" * 20 + "她今天在上海工作。"
    (tmp_path / "a.txt").write_text(f"他昨天在北京工作。\n短句\n{long}\n她明天在南京工作。", encoding="utf-8")
    (tmp_path / "held_out.py").write_text(
        "class HeldOut:\n    def __call__(self, text):\n        return '南京' in text\n", encoding="utf-8"
    )
    is_held_out = load_held_out(tmp_path / "held_out.py")
    found = list(distillation.raw_sentences([tmp_path / "a.txt"], 10_000, is_held_out))
    assert found == ["他昨天在北京工作。", "她今天在上海工作。"]
    (tmp_path / "held_out.py").write_text("class Other: pass", encoding="utf-8")
    with pytest.raises(ConfigError, match="gives no object of a class HeldOut"):
        load_held_out(tmp_path / "held_out.py")


def test_sentences_of_other_lengths_are_counted_and_files_without_others_are_named(tmp_path: Path) -> None:
    names = {
        "a.txt": "短句\n他昨天在北京工作。\n",
        "b.txt": "短句\n\n" + "长" * 121,
        "c.txt": "长" * 120,
        "d.txt": "",
    }
    for name, text in names.items():
        (tmp_path / name).write_text(text, "utf-8")
    paths, unused = [tmp_path / name for name in names], distillation.Unused()
    assert len(list(distillation.raw_sentences(paths, 1000, unused=unused))) == 2
    assert (unused.n_sentences, unused.files) == (3, [tmp_path / "b.txt", tmp_path / "d.txt"])
    with pytest.raises(DataError, match=r"b\.txt, \S+d\.txt: no sentence of 6 to 120 characters to annotate; name"):
        list(distillation.raw_sentences([tmp_path / "b.txt", tmp_path / "d.txt"], 1000))
    assert list(distillation.raw_sentences([tmp_path / "a.txt"], 1000, lambda text: True)) == []


def test_a_short_line_is_read_without_the_space_around_it() -> None:
    assert list(distillation.sentences_of(" " * 12)) == []
    assert list(distillation.sentences_of("  短句   ")) == ["短句"]
    assert list(distillation.sentences_of("\u3000\u3000他在北京工作。 ")) == ["他在北京工作。"]


def test_texts_of_dev_and_test_are_left_out_even_if_they_are_short(tmp_path: Path) -> None:
    paths = {}
    for name, text in (("train", "李明去工作"), ("dev", "李明在 北京"), ("test", "张伟在ABC")):
        paths[name] = str(tmp_path / f"{name}.jsonl")
        corpus.write([Document(text, (Entity(text[:2], "PER", 0, 2),))], paths[name], "jsonl")
    config = Config().with_settings({"data": paths})
    is_left_out = distillation.held_out_of(distillation.corpora_of_student(config), lambda text: "南京" in text)
    texts = ["李明去工作", "李明在北京", "李明在北京吗", "张伟在 abc", "张伟在南京"]
    assert [text for text in texts if is_left_out(text)] == ["李明在北京", "张伟在 abc", "张伟在南京"]


class Teacher:
    """Finds some words, each with a label and a score."""

    def __init__(self, labels: Sequence[str] = ("LOC", "PER"), **words: tuple[str, float]) -> None:
        self.labels, self.words = tuple(labels), words

    def pipe(self, texts: Sequence[str], batch_size: int) -> list[Document]:
        return [
            Document(
                text,
                tuple(
                    Entity(word, label, text.index(word), text.index(word) + len(word), score)
                    for word, (label, score) in self.words.items()
                    if word in text
                ),
            )
            for text in texts
        ]


def annotate(
    teachers: Sequence[Teacher], texts: Sequence[str], file: Path, **limits: Any
) -> distillation.Annotated:
    return distillation.annotate(cast("list[NER]", teachers), texts, file, **limits)


def test_uncertain_sentences_are_left_out(tmp_path: Path) -> None:
    texts, file = ["李明工作", "李明在北京", "今天很好"], tmp_path / "out.jsonl"
    teacher = Teacher(李明=("PER", 0.9), 北京=("LOC", 0.4))
    found = annotate([teacher], texts, file, min_score=0.5)
    assert [d.text for d in corpus.read(file)] == ["李明工作", "今天很好"]
    assert found == distillation.Annotated(n_sentences=2, n_characters=8, n_entities=1, n_uncertain=1)
    annotate([teacher], texts, file, min_score=0.4)
    assert len(list(corpus.read(file))) == 3
    with pytest.raises(DataError, match="the teacher finds no entity in the raw text"):
        annotate([teacher], ["今天很好"], tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()
    with pytest.raises(DataError, match=r"2 sentences have one with a score below 0\.95; lower --min-score"):
        annotate([teacher], texts, tmp_path / "none.jsonl", min_score=0.95)
    two = [teacher, Teacher()]
    with pytest.raises(DataError, match=r"more than 0 entities of 2 sentences; raise --max-contested"):
        annotate(two, texts, tmp_path / "none.jsonl", max_contested=0)
    assert not (tmp_path / "none.jsonl").exists()


def test_a_label_that_the_student_cannot_learn_ends_annotation_at_once(tmp_path: Path) -> None:
    corpus.write([Document("李明工作", (Entity("李明", "name", 0, 2),))] * 40, tmp_path / "train.jsonl", "jsonl")
    data = {"train": [str(tmp_path / "train.jsonl")], "dev": str(tmp_path / "train.jsonl")}
    renaming = {"teacher": {"labels": {"PER": "name"}}}
    config = Config().with_settings({"data": data, "auxiliary": renaming})
    is_learnt = distillation.labels_of_student(config, distillation.corpora_of_student(config))
    teacher, file = Teacher(李明=("PER", 0.9), 北京=("LOC", 0.8)), tmp_path / "out.jsonl"
    annotate([teacher], ["李明工作"], file, is_learnt=is_learnt)
    with pytest.raises(ConfigError, match=r"finds LOC '北京', .*--auxiliary\.teacher\.labels\.LOC NEW"):
        annotate([teacher], ["李明在北京"], tmp_path / "none.jsonl", is_learnt=is_learnt)
    assert not (tmp_path / "none.jsonl").exists()


def test_one_teacher_keeps_nested_entities(tmp_path: Path) -> None:
    annotate([Teacher(北京大学=("ORG", 0.9), 北京=("LOC", 0.8))], ["他在北京大学"], tmp_path / "out.jsonl")
    (document,) = corpus.read(tmp_path / "out.jsonl")
    assert sorted(e.text for e in document.entities) == ["北京", "北京大学"]


def test_teachers_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three agree on 北京, and one finds 今天; the score is the mean of those who found the entity."""
    monkeypatch.setattr(distillation, "BATCH", 2)
    some, both = Teacher(李明=("PER", 0.9)), Teacher(李明=("PER", 0.7), 北京=("LOC", 0.4))
    third = Teacher(李明=("PER", 0.8), 北京=("LOC", 0.8), 今天=("LOC", 0.9))
    texts, file = ["李明工作", "李明在北京", "今天李明在北京"], tmp_path / "out.jsonl"
    found = annotate([some, both, third], texts, file)
    entities = [e for d in corpus.read(file) for e in d.entities]
    assert [e.text for e in entities] == ["李明", "李明", "北京"]
    assert [e.score for e in entities] == pytest.approx([0.8, 0.8, 0.6])
    assert (found.n_sentences, found.n_contested) == (2, 1)
    assert annotate([some, both, third], texts, file, max_contested=0).n_contested == 2
    found = annotate([some, both, third], texts, file, max_contested=2)
    assert (found.n_sentences, found.n_entities, found.n_contested) == (3, 5, 0)
    two = annotate([both, third], texts, file, max_contested=2)
    assert two.n_entities == 5, "one of two teachers is not more than half"


def test_teachers_with_other_labels_are_refused(tmp_path: Path) -> None:
    teachers = [Teacher(), Teacher(labels=("LOC", "NAME"))]
    with pytest.raises(ConfigError, match="but one has LOC, PER and one has LOC, NAME"):
        annotate(teachers, ["今天很好"], tmp_path / "out.jsonl")


@needs_kernels
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The student is trained on gold and on the teacher's sentences; a second run uses the same sentences."""
    place = tiny.folder()
    parts = {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}, "vectors": {"min_frequency": 1}}
    words = {"files": [str(place / "words.txt")], "vector_words": False}
    own = {"train": [str(place / "corpus.bmes")], "dev": str(place / "corpus.bmes")}
    given = {**parts, "lexicon": words, "data": own, "training": {"epochs": 6, "learning_rate": 0.2}}
    train_linear(Config().with_settings(given), tmp_path / "master")
    lines = [tiny.documents()[0].text, *(d.text + "今天很好" for d in tiny.documents())]
    (tmp_path / "raw.txt").write_text("\n".join([*lines, "短句"]), encoding="utf-8")
    (tmp_path / "short.txt").write_text("短句\n", encoding="utf-8")

    def run(output: str) -> str:
        options = {
            "--teacher": tmp_path / "master",
            "--max-contested": 0,
            "--train": place / "corpus.bmes",
            "--dev": place / "corpus.bmes",
            "--test": place / "corpus.bmes",
            "--lexicon": place / "words.txt",
            "--lexicon.vector_words": "false",
            "--data.exclude": "[]",
            "--training.epochs": 2,
            "--annotated": tmp_path / "teacher.jsonl",
            "--data.format": "bmes",
            "--output": tmp_path / output,
        }
        command = [
            "distill",
            str(tmp_path / "raw.txt"),
            str(tmp_path / "short.txt"),
            *(str(x) for pair in options.items() for x in pair),
        ]
        with pytest.raises(SystemExit) as ended:
            main(command)
        out = capsys.readouterr()
        assert not ended.value.code, out.err
        assert "dev (best epoch" in out.out
        return out.err

    first = run("student")
    assert "entities; left out: 2 shorter or longer than 6 to 120 characters, " in first
    assert f"note: {tmp_path / 'short.txt'} has no sentence of 6 to 120 characters\n" in first
    ner = hanlattice.load(tmp_path / "student")
    assert isinstance(ner.engine, LinearTagger)
    assert linear_settings(ner.config) is not None
    assert ner.config.auxiliary["teacher"].same_convention
    assert lines[0] not in {document.text for document in corpus.read(tmp_path / "teacher.jsonl")}
    before = (tmp_path / "teacher.jsonl").read_bytes()
    assert "are used as they are" in run("again")
    assert (tmp_path / "teacher.jsonl").read_bytes() == before
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("student", "again")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "already holds a run"),
        (["--paper", "flat/weibo"], "has config.toml, which a run would replace; name an empty folder"),
        (["--output", "{new}", "--decoder.name", "biaffine"], "decoder"),
        (["--output", "{new}", "--paper", "flat/weibo", "--encoder.name", "flatter"], "flatter"),
        (["--output", "{new}", "--train", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_settings_are_checked_before_teachers_are_opened(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Annotating takes long: what the student would refuse is refused before it. There is no teacher here."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "config.toml").write_text("")
    (tmp_path / "raw.txt").write_text("他在北京工作。", encoding="utf-8")
    options = [option.format(new=tmp_path / "new") for option in options]
    if "--output" not in options:
        options += ["--output", str(tmp_path / "used")]
    with pytest.raises(SystemExit) as ended:
        main(["distill", str(tmp_path / "raw.txt"), "--teacher", str(tmp_path / "none"), *options])
    assert ended.value.code == 1
    error = capsys.readouterr().err
    assert message in error
    assert str(tmp_path / "none") not in error


@needs_kernels
@pytest.mark.parametrize("options", [[], ["--train"], ["--data.train"], ["--config"], ["--quiet"]])
def test_corpora_that_no_one_named_are_reported(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = str(tiny.folder() / "corpus.bmes")
    preset = tmp_path / "preset.toml"
    parts = '[embedding]\nname = "ngrams"\n[encoder]\nname = "linear"'
    preset.write_text(f'[data]\ntrain = "{corpus}"\n{parts}', encoding="utf-8")
    monkeypatch.setattr("hanlattice.cli.config_options.preset", lambda name: preset)
    values = {"--config": str(preset), "--quiet": ""}
    given = [part for option in options for part in (option, values.get(option, corpus)) if part]
    output = ["--output", str(tmp_path / "new"), "--teacher", str(tmp_path / "none")]
    with pytest.raises(SystemExit):
        main(["distill", str(tmp_path / "raw.txt"), *given, *output])
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    expected = f"note: the student also learns from {corpus} of linear/msra; name others with --train"
    assert notes == ([] if options else [expected])


@needs_kernels
def test_labels_of_the_corpora_are_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Config] = []

    def stop(settings: Config, *_: Any, **__: Any) -> None:
        found.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(hanlattice.api, "check_training", stop)
    options = ["--train", "a.bmes", "--map", "NR=PER,NS=LOC", "--output", str(tmp_path / "new")]
    with pytest.raises(SystemExit):
        main(["distill", str(tmp_path / "raw.txt"), *options])
    assert dict(found[0].data.labels) == {"NR": "PER", "NS": "LOC"}
    assert found[0].auxiliary["teacher"].labels == {}


@needs_kernels
def test_a_stopped_command_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    place, out = tiny.folder(), tmp_path / "student"
    (tmp_path / "raw.txt").write_text("他在北京工作。", encoding="utf-8")
    command = ["distill", str(tmp_path / "raw.txt"), "--train", str(place / "corpus.bmes"), "--output", str(out)]

    def error() -> str:
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code == 130
        return capsys.readouterr().err

    monkeypatch.setattr(distillation, "annotate", stop)
    monkeypatch.setattr(hanlattice.api, "run_training", stop)
    assert "stopped before all sentences were annotated, so nothing was written; start again" in error()
    annotated = tmp_path / "student.teacher.jsonl"
    annotated.write_text("")
    assert f"stopped; the same command uses the sentences in {annotated} again" in error()
    out.mkdir()
    (out / CHECKPOINT).write_text("")
    assert "add --resume to the same command" in error()
