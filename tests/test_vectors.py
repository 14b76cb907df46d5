"""Vectors: storage and its precision, lookup, word2vec text, training, the command line."""

import gzip
import json
import lzma
import os
import random
import signal
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import save_file
from typer.testing import CliRunner

from hanlattice.cli.vectors import app
from hanlattice.errors import ConfigError, DataError
from hanlattice.lexicon import Lexicon
from hanlattice.vectors import Vectors, VectorSet, default_vectors, storage, train_vectors
from hanlattice.vectors.storage import HEADER, KINDS, Precision
from hanlattice.vectors.texts import RUN, STRETCH, Counts, runs, stretches

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


def vectors(names: str, dimension: int = 4, seed: int = 0) -> Vectors:
    split = tuple(names.split())
    return Vectors(split, np.random.default_rng(seed).normal(size=(len(split), dimension)).astype(np.float32))


@pytest.fixture
def small() -> VectorSet:
    return VectorSet(
        vectors("的 一 a B"),
        vectors("的一 一<end>", seed=1),
        vectors("重庆 药店 渝中区", seed=2),
        {"made": "by hand"},
    )


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


# Storage


def test_half_precision_survives_saving(small: VectorSet, tmp_path: Path) -> None:
    small.save(tmp_path / "v.safetensors")
    loaded = VectorSet.load(tmp_path / "v.safetensors")
    assert loaded.meta == {"made": "by hand"}
    for kind in KINDS:
        before, after = small.kinds()[kind], loaded.kinds()[kind]
        assert after.names == before.names
        assert after.rows.dtype == np.float16
        assert after.matrix.dtype == np.float32
        np.testing.assert_array_equal(after.matrix, before.matrix.astype(np.float16).astype(np.float32))


ROWS = arrays(np.float32, (5, 3), elements=st.floats(-1000, 1000, width=32))


@given(ROWS)
def test_eight_bits_are_off_by_at_most_half_a_step(matrix: np.ndarray) -> None:
    stored = Vectors(tuple("abcde"), matrix).to("int8")
    assert stored.rows.dtype == np.int8
    step = np.abs(matrix).max(1, keepdims=True) / 127
    # The scale is rounded to half precision: 2**-11 of it, or 2**-25 where it is too small for that.
    assert (np.abs(stored.matrix - matrix) <= 0.51 * step + 127 * 2.0**-24).all()


def test_eight_bits_survive_saving_and_being_saved_again(small: VectorSet, tmp_path: Path) -> None:
    small.save(tmp_path / "a", "int8")
    once = VectorSet.load(tmp_path / "a")
    once.save(tmp_path / "b", "int8")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(once.words.matrix, small.words.to("int8").matrix)


def test_zero_rows_and_empty_kinds_are_kept(tmp_path: Path) -> None:
    empty = Vectors((), np.zeros((0, 3), np.float32))
    zero = Vectors(("零",), np.zeros((1, 3), np.float32))
    for precision in ("float16", "int8"):
        VectorSet(zero, empty, empty).save(tmp_path / precision, precision)
        loaded = VectorSet.load(tmp_path / precision)
        assert loaded.bigrams.names == ()
        assert loaded.bigrams.matrix.shape == (0, 3)
        np.testing.assert_array_equal(loaded.chars.matrix, zero.matrix)


@pytest.mark.parametrize("precision", ["float16", "int8"])
@pytest.mark.parametrize("number", [np.nan, np.inf, 1e30])
def test_what_the_precision_cannot_hold_is_refused(number: float, precision: str, tmp_path: Path) -> None:
    bad = Vectors(("好", "坏"), np.array([[1, 2], [number, 0]], np.float32))
    with pytest.raises(DataError, match="'坏'"):
        VectorSet(bad, bad, bad).save(tmp_path / "v", precision)
    assert not list(tmp_path.iterdir())


def test_digest_tells_sets_apart(small: VectorSet) -> None:
    same = VectorSet(small.chars, small.bigrams, small.words, {"made": "otherwise"})
    assert same.digest == small.digest
    renamed = Vectors(("重庆", "药店", "渝中"), small.words.rows)
    changed = Vectors(small.words.names, np.nextafter(small.words.rows, 9))
    digests = {VectorSet(small.chars, small.bigrams, words).digest for words in (small.words, renamed, changed)}
    assert len(digests) == 3


def test_rows_and_names_have_to_agree() -> None:
    with pytest.raises(DataError, match="2 names"):
        Vectors(("a", "b"), np.zeros((3, 2), np.float32))
    with pytest.raises(DataError, match="scale"):
        Vectors(("a",), np.zeros((1, 2), np.int8))
    broken = Vectors(("a\nb",), np.zeros((1, 2), np.float32))
    with pytest.raises(DataError, match="line break"):
        VectorSet(broken, broken, broken).save("never-written")


# Lookup


def test_exact_name_first_then_lower_case() -> None:
    table = vectors("b B a 好")
    assert table.ids(["B", "b", "A", "好", "坏", "", "ß"]).tolist() == [1, 0, 2, 3, -1, -1, -1]
    assert table.ids([]).shape == (0,)


def test_of_equal_names_the_first_counts() -> None:
    assert vectors("甲 乙 甲").ids(["甲"]).tolist() == [0]


def test_top_keeps_the_most_frequent(small: VectorSet) -> None:
    for of_kind in (small.chars, small.chars.to("int8")):
        first = of_kind.top(2)
        assert first.names == ("的", "一")
        np.testing.assert_array_equal(first.matrix, of_kind.matrix[:2])
    assert [len(v) for v in small.top(1, 9, 0).kinds().values()] == [1, 2, 0]


# Broken files


def test_missing_broken_and_foreign_files(small: VectorSet, tmp_path: Path) -> None:
    path = tmp_path / "v.safetensors"
    with pytest.raises(DataError, match="cannot be read"):
        VectorSet.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        VectorSet.load(tmp_path)
    small.save(path)
    whole = path.read_bytes()
    for part in (b"", b"not vectors at all", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(part)
        with pytest.raises(DataError, match=r"v\.safetensors: broken"):
            VectorSet.load(path)
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(DataError, match="not of vectors"):
        VectorSet.load(path)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_file_is_mapped_and_rows_are_read_one_by_one(
    precision: Precision, small: VectorSet, tmp_path: Path
) -> None:
    small.save(tmp_path / "v", precision)
    loaded = VectorSet.load(tmp_path / "v").words
    assert not loaded.rows.flags.owndata
    assert not loaded.rows.flags.writeable
    chosen = np.array([len(loaded) - 1, 0, 0])
    np.testing.assert_array_equal(loaded.at(chosen), loaded.matrix[chosen])
    small.save(tmp_path / "v", precision)  # in place of the one that is open
    assert loaded.names == small.words.names


HEADERS = {
    "header is broken": ["[]", "{", '{"version": 1}', '{"version": 1, "meta": 3}'],
    "version 9": ['{"version": 9, "meta": {}}'],
    r"chars\.names.* missing": [json.dumps({"version": 1, "meta": {}})],
}


@pytest.mark.parametrize(("message", "header"), [(m, h) for m, hs in HEADERS.items() for h in hs])
def test_headers_that_are_not_ours(message: str, header: str, tmp_path: Path) -> None:
    save_file({"other": np.zeros(3)}, tmp_path / "v", {HEADER: header})
    with pytest.raises(DataError, match=message):
        VectorSet.load(tmp_path / "v")


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (b"a\nb\nc", np.zeros((2, 3), np.float16)),
        (b"a\nb", np.zeros(2, np.float16)),
        (b"a\nb", np.zeros((2, 3), np.int8)),
    ],
)
def test_tensors_that_do_not_fit_together(names: bytes, rows: np.ndarray, tmp_path: Path) -> None:
    tensors = {f"{kind}.names": np.frombuffer(names, np.uint8) for kind in KINDS}
    tensors |= {f"{kind}.rows": rows for kind in KINDS}
    save_file(tensors, tmp_path / "v", {HEADER: '{"version": 1, "meta": {}}'})
    with pytest.raises(DataError, match="chars are broken"):
        VectorSet.load(tmp_path / "v")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    tensors: dict[str, np.ndarray] = {f"{kind}.names": np.frombuffer(b"\xff\nb", np.uint8) for kind in KINDS}
    tensors |= {f"{kind}.rows": np.zeros((2, 3), np.float16) for kind in KINDS}
    save_file(tensors, tmp_path / "v", {HEADER: '{"version": 1, "meta": {}}'})
    loaded = VectorSet.load(tmp_path / "v")
    with pytest.raises(DataError, match="v: its names are broken"):
        loaded.words.ids(["b"])


def test_the_packaged_set_is_told_when_missing(
    monkeypatch: pytest.MonkeyPatch, small: VectorSet, tmp_path: Path
) -> None:
    monkeypatch.setattr(storage, "DEFAULT", tmp_path / "vectors.safetensors")
    with pytest.raises(DataError, match="reinstall hanlattice"):
        default_vectors()
    small.save(tmp_path / "vectors.safetensors", "int8")
    assert default_vectors().words.names == small.words.names


# word2vec text


@pytest.mark.parametrize("header", ["", "2 3\n", "\ufeff2 3\r\n"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n", "\n\n"])
def test_word2vec_text(header: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_bytes((header + f"好 1 -2.5 3e-2{end}\u3000\t4 5 6{end}").encode())
    read = Vectors.from_text(path)
    assert read.names == ("好", "\u3000")
    np.testing.assert_array_equal(read.matrix, np.array([[1, -2.5, 0.03], [4, 5, 6]], np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("好 1 2\n坏 1\n", "v.vec:2: 1 numbers after '坏', expected 2"),
        ("1 2\n好 1 2 3\n", "v.vec:2: 3 numbers after '好', expected 2"),
        ("好 1 2\n\n坏 1 2 3\n", "v.vec:3: 3 numbers"),
        ("好\n", "v.vec:1: 0 numbers"),
        ("好 1 x\n", "v.vec:1: 'x' is not a finite number"),
        ("好 1 2\n坏 1 nan\n", "v.vec:2: 'nan' is not a finite number"),
        ("3 2\n好 1 2\n坏 1 2\n", "promises 3 vectors, but 2 follow"),
        ("", "holds no vectors"),
        ("0 50\n", "holds no vectors"),
    ],
)
def test_broken_word2vec_text(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        Vectors.from_text(path)
    assert message in str(caught.value)


# Texts


def test_texts_are_normalised_cut_and_counted(tmp_path: Path) -> None:
    long = "长" * (STRETCH + 1)
    content = f"\ufeffＡ B\u3000c\n\n{long}\nab C\nａ b  c\n a b c \n"
    packed = {
        "t.txt": content.encode(),
        "t.xz": lzma.compress(content.encode()),
        "t.gz": gzip.compress(content.encode()),
    }
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data)
        counts, told = Counts(), []
        assert list(stretches([tmp_path / name], set(), counts, told.append)) == [
            "abc", "长" * STRETCH, "长", "abc", "abc"
        ]  # fmt: skip
        assert counts == Counts(kept=4, duplicates=1, excluded=0, characters=9 + STRETCH + 1)
        assert told[-1] == 1


def test_a_paragraph_that_shares_a_run_with_a_test_set_is_left_out(tmp_path: Path) -> None:
    secret = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
    lines = [
        "开头" + secret[1 : RUN + 1] + "结尾",
        "开头" + secret[1:RUN] + "结尾",
        secret[:RUN],
        secret[: RUN - 1],
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    counts = Counts()
    kept = list(stretches([tmp_path / "t.txt"], runs([secret, "短"]), counts))
    assert kept == [lines[1], lines[3]]
    assert counts.excluded == 2


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.txt", "好\n坏".encode("gb18030"), "t.txt:1: byte 0xba at position 1 is not UTF-8"),
        ("t.xz", lzma.compress("好\n".encode() * 9999)[:-20], "t.xz: cannot be unpacked"),
        (
            "t.gz",
            gzip.compress(random.Random(1).randbytes(999).hex().encode())[:-99],
            "t.gz: cannot be unpacked",
        ),
        ("t.xz", b"plain", "t.xz: cannot be unpacked"),
        ("t.gz", b"plain", "t.gz: cannot be unpacked"),
        ("t.txt", None, "t.txt: cannot be read"),
    ],
)
def test_unreadable_texts(name: str, data: bytes | None, message: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(stretches([tmp_path / name], set(), Counts()))
    assert message in str(caught.value)


# Training


def test_every_name_that_is_frequent_enough_has_a_vector(texts: Path, trained: VectorSet) -> None:
    lines = [
        "".join(unicodedata.normalize("NFKC", line).lower().split())
        for line in dict.fromkeys(texts.read_text(encoding="utf-8").splitlines())
    ]
    chars = Counter("".join(lines))
    bigrams = Counter(b for line in lines if line for b in [*map("".join, pairwise(line)), line[-1] + "<end>"])
    assert set(trained.chars.names) == {char for char, n in chars.items() if n >= 5}
    assert set(trained.bigrams.names) == {bigram for bigram, n in bigrams.items() if n >= 10}
    # Texts are in lower case, words as given: 'Apple' is not among them, and 去 and 新 are characters.
    assert set(trained.words.names) == {word for word in WORDS if len(word) > 1 and word != "Apple"}
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


def test_companions_come_closer_than_strangers(tmp_path: Path) -> None:
    draw = random.Random(3)
    groups = ["猫狗猪羊牛马", "茶酒汤水奶粥"]
    lines = ["".join(draw.choices(draw.choice(groups), k=30)) for _ in range(1500)]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    once = {"chars": 3, "bigrams": 1, "words": 1}
    table = train_vectors([tmp_path / "t.txt"], dimension=10, epochs=once).chars
    unit = table.matrix / np.linalg.norm(table.matrix, axis=1, keepdims=True)
    first, second = (unit[table.ids(group)] for group in groups)
    assert (first @ first.T).min() > (first @ second.T).max()


def test_progress_of_each_stage_rises_to_the_end(texts: Path) -> None:
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
        "cutting words",
        "training words",
    ]
    for done in told.values():
        assert done == sorted(done)
        assert done[-1] == 1


def test_no_lexicon_no_words(texts: Path) -> None:
    made = train_vectors([texts], dimension=4)
    assert made.words.names == ()
    assert made.words.dimension == 4


def test_too_little_text(tmp_path: Path) -> None:
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
def test_settings_out_of_range(settings: dict, message: str, texts: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        train_vectors([texts], **settings)


def test_the_missing_extra_is_named(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.delitem(sys.modules, "gensim.models", raising=False)
    with pytest.raises(ConfigError, match=r"hanlattice\[vectors\]"):
        train_vectors([texts])


# The command line

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
def test_an_output_that_cannot_be_written_is_told_at_once(output: str, texts: Path, tmp_path: Path) -> None:
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
    until = time.monotonic() + 30
    while not list(temporary.glob("*/chars")):
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    assert not list(temporary.iterdir())
    assert not (tmp_path / "v").exists()
