"""Training vectors, from Python and from the command line."""

import inspect
import os
import random
import signal
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hanlattice.cli import main
from hanlattice.cli import vectors as cli_vectors
from hanlattice.cli.vectors import app
from hanlattice.errors import ConfigError, DataError
from hanlattice.lexicon import Lexicon
from hanlattice.vectors import Vectors, VectorSet, train_vectors, training
from hanlattice.vectors.storage import KINDS
from hanlattice.vectors.texts import MAX_LINE, Counts

WORDS = [
    "重庆",
    "药店",
    "渝中区",
    "开业",
    "天气",
    "很好",
    "我们",
    "明天",
    "去",
    "北京",
    "上海",
    "公司",
    "发布",
    "新",
    "Apple",
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 paragraphs, then a duplicate, an empty line, and space to be removed."""
    draw = random.Random(7)
    lines = ["".join(draw.choices(WORDS, k=12)) + "。" for _ in range(200)]
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join([*lines, lines[0], " ", "  天气　很好 \t我们 "]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(texts: Path) -> VectorSet:
    return train_vectors([texts], Lexicon(WORDS), dimension=8)


def test_every_frequent_name_has_a_vector(texts: Path, trained: VectorSet) -> None:
    lines = [
        "".join(unicodedata.normalize("NFKC", line).lower().split())
        for line in dict.fromkeys(texts.read_text(encoding="utf-8").splitlines())
    ]
    chars = Counter("".join(lines))
    bigrams = Counter(b for line in lines if line for b in [*map("".join, pairwise(line)), line[-1] + "<end>"])
    assert set(trained.chars.names) == {char for char, n in chars.items() if n >= 5}
    assert set(trained.bigrams.names) == {bigram for bigram, n in bigrams.items() if n >= 10}
    # Words are in lower case as texts are, and 去 and 新 are characters.
    assert set(trained.words.names) == {word.lower() for word in WORDS if len(word) > 1}
    for table, counts in ((trained.chars, chars), (trained.bigrams, bigrams)):
        frequencies = [counts[name] for name in table.names]
        assert frequencies == sorted(frequencies, reverse=True)
        assert table.matrix.shape == (len(table), 8)
        assert np.isfinite(table.matrix).all()
    assert trained.meta["text"].startswith("201 paragraphs of")
    assert "1 duplicates" in trained.meta["text"]


def test_the_same_seed_gives_the_same_vectors(texts: Path, trained: VectorSet) -> None:
    assert train_vectors([texts], Lexicon(WORDS), dimension=8).digest == trained.digest
    assert train_vectors([texts], Lexicon(WORDS), dimension=8, seed=2).digest != trained.digest


def test_words_that_occur_together_are_closer(tmp_path: Path) -> None:
    draw = random.Random(3)
    groups = ["猫狗猪羊牛马", "茶酒汤水奶粥"]
    lines = ["".join(draw.choices(draw.choice(groups), k=30)) for _ in range(1500)]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    once = {"chars": 3, "bigrams": 1, "words": 1}
    table = train_vectors([tmp_path / "t.txt"], dimension=10, epochs=once).chars
    unit = table.matrix / np.linalg.norm(table.matrix, axis=1, keepdims=True)
    first, second = (unit[table.ids(group)] for group in groups)
    assert (first @ first.T).min() > (first @ second.T).max()


def test_progress_of_each_stage_rises_to_one(texts: Path) -> None:
    told: dict[str, list[float]] = {}
    train_vectors(
        [texts],
        Lexicon(WORDS),
        dimension=4,
        progress=lambda stage, done: told.setdefault(stage, []).append(done),
    )
    assert list(told) == [
        "reading texts",
        "training chars",
        "training bigrams",
        "counting words",
        "segmenting",
        "training words",
    ]
    for stage, done in told.items():
        assert done == sorted(done)
        assert done[-1] == 1
        assert done[0] == 0 or not stage.startswith("training")


def test_without_a_lexicon_there_are_no_words(texts: Path) -> None:
    made = train_vectors([texts], dimension=4)
    assert made.words.names == ()
    assert made.words.dimension == 4


def test_too_little_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(DataError, match="texts are empty"):
        train_vectors([tmp_path / "t.txt"])
    (tmp_path / "t.txt").write_text("天气很好\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of the chars occurs 5 times"):
        train_vectors([tmp_path / "t.txt"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimension": 0}, "dimension is 0"),
        ({"workers": -1}, "workers is -1"),
        ({"epochs": {"chars": 1, "bigrams": 0, "words": 1}}, "epochs of bigrams is 0"),
    ],
)
def test_settings_out_of_range_are_errors(settings: dict[str, Any], message: str, texts: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        train_vectors([texts], **settings)


def test_defaults_and_what_is_recorded_of_them() -> None:
    """As the documentation and every card of vectors say."""
    given = {name: option.default for name, option in inspect.signature(train_vectors).parameters.items()}
    assert {name: given[name] for name in ("exclude", "dimension", "seed", "workers")} == {
        "exclude": (), "dimension": 50, "seed": 1, "workers": 1,
    }  # fmt: skip
    settings = training._Settings(50, given["epochs"], given["min_count"], 1, 1)
    settings.check()
    assert {name: value for name, value in settings.meta().items() if name != "method"} == {
        "settings": "dimension 50, window 5, negative 5, sample 0.0001, seed 1, workers 1",
        "epochs": "chars 2, bigrams 1, words 2",
        "min_count": "chars 5, bigrams 10, words 5",
    }
    assert np.exp(training.UNKNOWN) == pytest.approx(1e-5)
    for name in ("chars", "bigrams", "words"):
        with pytest.raises(ConfigError, match=f"min_count of {name} is 0; it has to be at least 1"):
            replace(settings, min_count={**given["min_count"], name: 0}).check()
        with pytest.raises(ConfigError, match=f"epochs of {name} is 0"):
            replace(settings, epochs={**given["epochs"], name: 0}).check()


def test_progress_of_long_texts() -> None:
    told: list[tuple[str, float]] = []
    texts = ["一二"] * 20_001
    assert list(training._followed(iter(texts), 40_002, "reading", lambda *one: told.append(one))) == texts
    assert told == [("reading", n / 40_002) for n in (20_000, 40_000, 40_002)]


def test_bigrams_and_words_of_one_character() -> None:
    assert training._bigrams("一二三") == "一二 二三 三<end>"
    assert training._bigrams("一") == "一<end>"
    assert training._bigrams("一二\t") == "一二"  # the paragraph continues in the next line


def test_a_cut_paragraph_has_one_end(tmp_path: Path) -> None:
    """Its characters are those of one that is not cut, and no bigram ends at the cut."""
    text = "四" + "一二三四" * (MAX_LINE // 2)
    (tmp_path / "text.txt").write_text(text, "utf-8")
    settings: dict[str, Any] = {
        "epochs": dict.fromkeys(KINDS, 1),
        "min_count": dict.fromkeys(KINDS, 1),
        "dimension": 2,
    }
    found = train_vectors([tmp_path / "text.txt"], Lexicon(["一二"]), **settings)
    assert set(found.chars.names) == set(text)
    assert set(found.bigrams.names) == {"一二", "二三", "三四", "四一", "四<end>"}
    assert found.words.names == ("一二",)


def test_sigterm_removes_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*_: Any, **__: Any) -> None:
        with TemporaryDirectory(dir=tmp_path):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(cli_vectors, "train_vectors", train)
    with pytest.raises(SystemExit) as left:
        main(["vectors", "train", "a.txt", "--output", str(tmp_path / "out.safetensors")])
    assert left.value.code == 130
    assert capsys.readouterr().err.splitlines()[-1] == "error: interrupted"
    assert not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) is before
    table = Vectors(("一", "一二", "三"), np.arange(6, dtype=np.float32).reshape(3, 2))
    kept = training._without_single_characters(table)
    assert (kept.names, kept.matrix.tolist()) == (("一二",), [[2.0, 3.0]])


def test_where_vectors_come_from() -> None:
    counts = Counts(kept=1234, duplicates=5, excluded=6, characters=7890)
    assert training._provenance(["x/a.txt", "b.txt"], [], None, counts) == {
        "texts": "a.txt, b.txt",
        "text": "1,234 paragraphs of 7,890 characters; 5 duplicates and 6 excluded paragraphs left out",
        "excluded": "nothing",
        "lexicon": "none",
    }
    known = training._provenance(["a"], ["y/c.bio"], Lexicon(["一", "二"]), counts)
    assert (known["excluded"], known["lexicon"]) == ("c.bio", "2 words")


def test_missing_gensim_is_named(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.delitem(sys.modules, "gensim.models", raising=False)
    with pytest.raises(ConfigError, match=r"hanlattice\[vectors\]"):
        train_vectors([texts])


run = CliRunner().invoke


def test_train_and_info(texts: Path, tmp_path: Path) -> None:
    lexicon, output, compact = tmp_path / "words.txt", tmp_path / "v", tmp_path / "c"
    lexicon.write_text("\n".join(WORDS), encoding="utf-8")
    options = ["--output", output, "--lexicon", lexicon, "--dimension", 8, "--compact", compact, "--words", 3]
    result = run(app, ["train", str(texts), *map(str, options)])
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "3 words" in result.stderr
    full, small = VectorSet.load(output), VectorSet.load(compact)
    assert small.words.names == full.words.names[:3]
    assert small.chars.names == full.chars.names
    assert small.chars.rows.dtype == np.int8

    shown = run(app, ["info", str(compact)])
    assert shown.exit_code == 0
    assert "words     3 × 8, int8" in shown.stdout
    assert small.digest in shown.stdout


@pytest.mark.parametrize("name", ["v", "link", "below/../v"])
def test_full_and_compact_vectors_need_two_files(texts: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "v")
    result = run(app, ["train", str(texts), "--output", str(tmp_path / "v"), "--compact", str(tmp_path / name)])
    assert isinstance(result.exception, ConfigError)
    assert "--output and --compact are the same file" in str(result.exception)
    assert not (tmp_path / "v").exists()


def test_train_with_an_excluded_corpus(texts: Path, tmp_path: Path) -> None:
    secret = texts.read_text(encoding="utf-8").splitlines()[5].rstrip("。")
    corpus = tmp_path / "test.bmes"
    corpus.write_text("\n".join(f"{character} O" for character in secret) + "\n\n", encoding="utf-8")
    result = run(app, ["train", str(texts), "--output", str(tmp_path / "v"), "--exclude", str(corpus), "--quiet"])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    meta = VectorSet.load(tmp_path / "v").meta
    assert "1 excluded paragraphs" in meta["text"]
    assert meta["excluded"] == "test.bmes"


def test_several_lexicons(texts: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("重庆\n", encoding="utf-8")
    Lexicon(["北京"]).save(tmp_path / "b.bin")
    options = ["--lexicon", tmp_path / "a.txt", "--lexicon", tmp_path / "b.bin", "--output", tmp_path / "v"]
    assert run(app, ["train", str(texts), *map(str, options)]).exit_code == 0
    assert set(VectorSet.load(tmp_path / "v").words.names) == {"重庆", "北京"}


def test_convert(tmp_path: Path) -> None:
    (tmp_path / "w.vec").write_text("药店 1 2\n重庆 3 4\n", encoding="utf-8")
    output = tmp_path / "v"
    assert run(app, ["convert", "--words", str(tmp_path / "w.vec"), "--output", str(output)]).exit_code == 0
    made = VectorSet.load(output)
    np.testing.assert_array_equal(made.words.matrix, [[1, 2], [3, 4]])
    assert made.chars.matrix.shape == (0, 2)
    assert isinstance(run(app, ["convert", "--output", str(output)]).exception, ConfigError)


@pytest.mark.parametrize("output", ["missing/v", "."])
def test_an_unwritable_output_is_an_error_before_training(output: str, texts: Path, tmp_path: Path) -> None:
    result = run(app, ["train", "no-such-text", "--output", str(tmp_path / output)])
    assert isinstance(result.exception, DataError)
    assert "no-such-text" not in str(result.exception)


def test_interrupted_training_leaves_nothing_behind(texts: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = "from hanlattice.cli.vectors import app; app()"
    options = ["train", str(texts), "--output", str(tmp_path / "v"), "--epochs", "1000000", "1", "1"]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *options],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 30
        while not list(temporary.glob("*/chars")):
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    finally:
        process.kill()  # it would train for days
    assert not list(temporary.iterdir())
    assert not (tmp_path / "v").exists()
