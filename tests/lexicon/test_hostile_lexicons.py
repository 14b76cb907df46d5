"""Compiled lexicons that someone made by hand, words that fill memory, and entries that are none."""

import json
import math
import resource
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tiny
from hanlattice.errors import DataError, HanlatticeError, ModelError
from hanlattice.kernels.library import levels
from hanlattice.lexicon import Lexicon, Word, trie
from hanlattice.lexicon.matches import most_matches
from hanlattice.lexicon.words import LONGEST

LEVELS = [*levels(), None]

# Whatever stands in the arrays of a file, every search ends, without a crash or an error that is not ours.
SEARCHED = """
import signal, sys
from unittest import mock
import numpy as np
from hanlattice.errors import HanlatticeError
from hanlattice.kernels.library import levels, opened
from hanlattice.lexicon import Lexicon, layers, trie

import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
signal.alarm(120)
folder, level = sys.argv[1], sys.argv[2] or None
library = opened(level) if level else None
texts = ["一二三四五" * 3, "一" * 150, "一二三" * 400, "", "\\U0010ffff\\0一\\0" * 5, "一" * 5000]
def tried(what):
    try:
        return what()
    except HanlatticeError as error:
        assert "\\n" not in str(error)
def entries(lexicon):
    lexicon.words_of(found)
with mock.patch.object(trie, "kernels", lambda: library), mock.patch.object(layers, "kernels", lambda: library):
    lexicon = tried(lambda: Lexicon.load(folder))
    if lexicon is None:
        sys.exit()
    for text in texts:
        found = tried(lambda: lexicon.match(text))
        if found is not None:
            assert len(found.word) == 0 or 0 <= found.word.min() and found.word.max() < lexicon.id_count
            assert len(found.word) == 0 or 0 <= found.start.min() and found.end.max() <= len(text)
            tried(lambda: lexicon.words_of(found))
            lexicon.label_ids[found.word], lexicon.weights[found.word]
            [lexicon.label(word) for word in found.word[:50].tolist()]
    tried(lambda: lexicon.match_batch(texts))
    tried(lambda: lexicon.ids(["一", "一二", "二三四", "五" * 900]))
    tried(lambda: list(lexicon.entries()))
    lexicon.add("六七")
    tried(lambda: lexicon.match("六七一二" * 100))
    lexicon.update([f"{i}" for i in range(3000)])
    tried(lambda: lexicon.match("六七一二" * 100))
"""


def parts(path: Path) -> tuple[bytes, dict[str, Any], dict[str, np.ndarray]]:
    """The magic, the header and the arrays of a compiled file."""
    data = path.read_bytes()
    magic, _, rest = data.partition(b"\n")
    line, _, _ = rest.partition(b"\n")
    header, position, arrays = json.loads(line), len(magic) + len(line) + 2, {}
    kinds = {"codes": "<u4", "offsets": "<i8", "cells": "<u8", "first": "<i4", "label_ids": "<i4", "weights": "<f4"}
    for name, length in header["arrays"].items():
        position += -position % 64
        size = length * np.dtype(kinds[name]).itemsize
        arrays[name] = np.frombuffer(data[position : position + size], kinds[name]).copy()
        position += size
    return magic, header, arrays


def put_together(path: Path, magic: bytes, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    out = magic + b"\n" + json.dumps(header, ensure_ascii=False).encode() + b"\n"
    for array in arrays.values():
        out += bytes(-len(out) % 64) + array.tobytes()
    path.write_bytes(out)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    words = [Word("一", "A", 1.0), Word("一二", None, None), Word("二三四", "B", 2.0), Word("三四五", "A", None)]
    Lexicon([*words, *(f"一{chr(0x4E8C + i)}" for i in range(40))]).save(tmp_path / "lexicon.bin")
    magic, header, arrays = parts(tmp_path / "lexicon.bin")
    whole = (tmp_path / "lexicon.bin").read_bytes()
    put_together(tmp_path / "lexicon.bin", magic, header, arrays)
    assert (tmp_path / "lexicon.bin").read_bytes() == whole
    return tmp_path / "lexicon.bin"


def searched(path: Path, level: str | None) -> None:
    command = [sys.executable, "-c", SEARCHED, str(path), level or ""]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def hostile(name: str, arrays: dict[str, np.ndarray]) -> None:
    """Change what a file holds in one way."""
    draw, cells = np.random.default_rng(0), arrays["cells"]
    everything = np.uint64(2**64 - 1)
    match name:
        case "no free cell":
            cells[::2] = everything
        case "all may go on":
            cells[1::2] |= np.uint64(0xFFFFFFFF << 32)
        case "a full table in which all may go on":
            cells[:] = everything
        case "a way round in circles":  # each character leads from the first state to itself, through every text
            slots = len(cells) // 2
            arrays["first"][:] = 5
            cells[::2], cells[1::2] = 0, np.uint64(0xFFFFFFFF << 32 | 1)
            for code in (ord("一"), 0):
                home = int((((5 << 21 | code) * trie.GOLDEN) % 2**64 >> 32) * slots >> 32)
                cells[2 * home] = 5 << 21 | code
        case "states beyond the table":
            arrays["first"][:] = 2**31 - 1
        case "states below it":
            arrays["first"][:] = -(2**31)
        case "words that are not there":
            cells[1::2] |= np.uint64(0xFFFFFFFF)
        case "ends of words anywhere":
            arrays["offsets"][:] = draw.integers(-(2**62), 2**62, len(arrays["offsets"]))
        case "codes that are no characters":
            arrays["codes"][:] = 0xFFFFFFFF
        case "weights that are none":
            arrays["weights"][:] = np.inf
        case "chance":
            for key in ("cells", "first", "codes", "offsets"):
                raw = draw.integers(0, 256, arrays[key].nbytes, np.uint8)
                arrays[key][:] = raw.view(arrays[key].dtype)


HOSTILE = (
    *("no free cell", "all may go on", "a full table in which all may go on", "a way round in circles"),
    *("states beyond the table", "states below it", "words that are not there", "ends of words anywhere"),
    *("codes that are no characters", "weights that are none", "chance"),
)


@pytest.mark.parametrize("level", [LEVELS[0], None] if len(LEVELS) > 1 else [None])
@pytest.mark.parametrize("name", HOSTILE)
def test_no_file_crashes_a_search_or_keeps_it_for_ever(path: Path, name: str, level: str | None) -> None:
    magic, header, arrays = parts(path)
    hostile(name, arrays)
    put_together(path, magic, header, arrays)
    searched(path, level)


@pytest.mark.parametrize("level", LEVELS)
def test_damage_anywhere(path: Path, level: str | None) -> None:
    """Bytes changed by chance, a few dozen times in one process each."""
    code = SEARCHED.replace("signal.alarm(120)", "signal.alarm(240)")
    whole = path.read_bytes()
    draw = np.random.default_rng(1)
    files = []
    for i in range(30):
        changed = bytearray(whole)
        for at in draw.integers(0, len(whole), draw.integers(1, 200)):
            changed[at] = draw.integers(0, 256)
        files.append(path.with_name(f"{i}.bin"))
        files[-1].write_bytes(changed)
    body = code.partition("folder, level")[2].partition("\n")[2]
    loop = (
        f"{code.partition('folder, level')[0]}level = sys.argv[1] or None\nfor folder in sys.argv[2:]:\n"
        + "".join(f"    {line}\n" for line in body.replace("sys.exit()", "continue").splitlines())
    )
    done = subprocess.run(
        [sys.executable, "-c", loop, level or "", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"labels": "ab", "arrays": {}},
        {"labels": [1]},
        {"labels": None},
        {"longest": -1},
        {"longest": LONGEST + 1},
        {"longest": 2.0},
        {"longest": True},
        {"arrays": []},
        *(
            {"arrays": {name: value}}
            for name in ("codes", "offsets", "cells")
            for value in (-1, 1.0, "3", None, True)
        ),
        *({"arrays": {name: -(2**63)}} for name in ("codes", "first")),
        {"arrays": {"cells": 0}},
        {"arrays": {"cells": 4}},
        {"arrays": {"first": 0}},
        {"arrays": {"offsets": 0}},
        {"arrays": {"label_ids": 3}},
        {"arrays": {"weights": 3}},
        {"arrays": {"more": 3}},
    ],
    ids=str,
)
def test_headers_that_lie(path: Path, change: dict[str, Any]) -> None:
    magic, header, arrays = parts(path)
    lied = (
        header["arrays"] | change.get("arrays", {})
        if change.get("arrays")
        else change.get("arrays", header["arrays"])
    )
    header |= change | {"arrays": lied}
    if isinstance(lied, dict):
        for name, length in lied.items():  # so that the size of the file fits
            if type(length) is int and length >= 0:
                array = arrays.get(name, np.zeros(0, "<i4"))
                arrays[name] = np.resize(array, length) if len(array) else np.zeros(length, array.dtype)
    put_together(path, magic, header, arrays)
    with pytest.raises(ModelError, match=r"broken|bytes where"):
        Lexicon.load(path)


def test_a_header_of_many_brackets(path: Path) -> None:
    magic, *_ = parts(path)
    path.write_bytes(magic + b"\n" + b"[" * 100_000 + b"\n")
    with pytest.raises(ModelError, match="the header is broken"):
        Lexicon.load(path)


@pytest.mark.parametrize(
    ("number", "label"), [(-(2**31), None), (-2, None), (-1, None), (1, "B"), (2, None), (9, None)]
)
def test_labels_that_are_not_there_are_none(path: Path, number: int, label: str | None) -> None:
    magic, header, arrays = parts(path)
    arrays["label_ids"][2] = number  # of 二三四
    put_together(path, magic, header, arrays)
    lexicon = Lexicon.load(path)
    assert lexicon.label(2) == label
    assert lexicon.label_ids_of(np.array([2, 0], np.int32)).tolist() == [1 if label else -1, 0]
    ner = tiny.ner()
    with ner.using(lexicon=lexicon):
        assert [label for *_, word, label in tiny.lattice(ner("一二三四五")) if word == "二三四"] == [label]
    lexicon.add("六七", label="C")
    assert lexicon.labels == ("A", "B", "C")


def test_opening_stays_far_below_a_millisecond(tmp_path: Path) -> None:
    """Half a million words; the fastest of several, as others use the machine too."""
    Lexicon(Word(f"{i:06d}", "LOC" if i % 2 else None) for i in range(500_000)).save(tmp_path / "large.bin")
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        Lexicon.load(tmp_path / "large.bin")
        times.append(time.perf_counter() - begin)
    assert min(times) < 1e-3


@pytest.mark.parametrize("level", [LEVELS[0], None] if len(LEVELS) > 1 else [None])
def test_a_table_in_which_keys_crowd_is_built_larger(level: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search looks into a few lines only, and must find all words."""
    if level is None:
        monkeypatch.setattr(trie, "kernels", lambda: None)
    draw = np.random.default_rng(0)
    words = sorted({"".join(map(chr, draw.integers(0x4E00, 0x9FFF, 3))) for _ in range(2000)})
    usual = len(Lexicon(words)._snapshot().layers[0].trie.cells)
    with mock.patch.object(trie, "LINES", 1):
        lexicon = Lexicon(words)
        assert len(lexicon.match("".join(words)).word) >= len(words)
        assert (lexicon.ids(words) == np.arange(len(words))).all()
    assert len(lexicon._snapshot().layers[0].trie.cells) > usual
    assert len(lexicon.match("".join(words)).word) == len(Lexicon(words).match("".join(words)).word)


class TestNestedWords:
    """All stretches of one character are words: the square of the text's length, so there is a limit."""

    words = tuple("一" * n for n in range(1, 501))

    @pytest.mark.parametrize("level", LEVELS)
    def test_both_sides_of_the_limit(self, level: str | None) -> None:
        from hanlattice.kernels.library import opened

        lexicon = Lexicon(self.words)
        library = opened(level) if level else None
        with mock.patch.object(trie, "kernels", return_value=library):
            below = next(n for n in range(200, 1000) if matches_of(n + 1) > most_matches(n + 1))
            assert len(lexicon.match("一" * below).word) == matches_of(below) > 100_000
            for texts in (["一" * (below + 1)], ["一" * 100_000]):
                with pytest.raises(
                    DataError, match=r"more than [\d,]+ words of the lexicon occur in [\d,]+ characters"
                ):
                    lexicon.match_batch(texts)

    def test_of_several_layers_together(self) -> None:
        lexicon = Lexicon(self.words[::2])
        n = next(n for n in range(200, 2000) if matches_of(n) > 1.5 * most_matches(n))
        assert len(lexicon.match("一" * n).word) < most_matches(n)
        with (
            mock.patch("hanlattice.lexicon.layers.SMALL_LAYER", 1),
            mock.patch("hanlattice.lexicon.layers.GROWTH", 0),
        ):
            lexicon.update(self.words[1::2])
            assert len(lexicon._snapshot().layers) == 2
        with pytest.raises(DataError, match="words of the lexicon occur"):
            lexicon.match("一" * n)

    def test_memory_is_bounded(self) -> None:
        """A hundred thousand characters with 50 million matches, which would take 800 MB."""
        lexicon = Lexicon(self.words)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(DataError):
            lexicon.match("一" * 100_000)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB

    def test_a_long_text_of_usual_words_is_no_matter(self) -> None:
        text = "一二三四五六七八九十" * 100_000
        assert len(Lexicon(["一二", "一二三", "五六七", "十一"]).match(text).word) == 4 * 100_000 - 1


def matches_of(n: int) -> int:
    """Of ``n`` equal characters by all words of up to 500 of them."""
    return sum(n - length + 1 for length in range(1, min(n, 500) + 1))


class TestEntries:
    """What cannot be an entry is refused where it is given, and costs no one else an edit."""

    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            (("坏词", "L", "heavy"), "the weight of the word '坏词' is a number up to 3.4e38, not 'heavy'"),
            (("坏词", "L", 1e39), "the weight of the word '坏词' is a number up to 3.4e38, not 1e[+]39"),
            (("坏词", "L", 10**400), "the weight of the word '坏词' is a number"),
            (("坏词", "L", math.nan), "the weight of the word '坏词' is a number up to 3.4e38, not nan"),
            (("坏词", "L", -math.inf), "the weight of the word '坏词' is a number up to 3.4e38, not -inf"),
            (("坏词", "L", True), "the weight of the word '坏词' is a number"),
            (("坏词", "L", Decimal(1)), "the weight of the word '坏词' is a number"),
            (("坏词", 7, 1.0), "the label of the word '坏词' is a string, not 7"),
            (("坏词", b"L", None), "the label of the word '坏词' is a string"),
            ((7, "L", None), "a word of the lexicon is a string, not 7"),
            (("坏词", "L"), "an entry of a lexicon is a word or"),
            (("坏词",), "an entry of a lexicon is a word or"),
            (7, "an entry of a lexicon is a word or"),
            (None, "an entry of a lexicon is a word or"),
            ("长" * (LONGEST + 1), "a word of the lexicon has 1,001 characters, more than 1,000"),
        ],
    )
    def test_refused(self, entry: Any, said: str) -> None:
        lexicon = Lexicon(["一二"])
        lexicon.add("三四", "A", 2)
        with pytest.raises(DataError, match=said) as error:
            lexicon.update(["五六", entry])
        assert "\n" not in str(error.value)
        lexicon.remove("一二")
        assert list(lexicon.entries()) == [Word("三四", "A", 2.0)]

    def test_words_that_are_neither_a_path_nor_entries(self) -> None:
        words: Any = 5
        with pytest.raises(DataError, match="a path, a mapping or entries, not 5"):
            Lexicon().update(words)

    @pytest.mark.parametrize("weight", [0, -3, 2.5, np.float32(2), np.int64(3), Fraction(1, 2), 3.4e38, None])
    def test_weights_that_are_numbers(self, weight: Any) -> None:
        lexicon = Lexicon([Word("一二", None, weight)])
        assert lexicon.weight(0) == (None if weight is None else pytest.approx(float(weight), rel=1e-6))

    def test_the_longest_word(self) -> None:
        word = "长" * LONGEST
        lexicon = Lexicon([word])
        assert lexicon.words_of(lexicon.match(f"很{word}的")) == [word]

    def test_words_that_grow_as_they_are_rewritten(self) -> None:
        lexicon = Lexicon(rewrite=lambda words: words.replace("长", "长长"))
        with pytest.raises(DataError, match="has 1,002 characters"):
            lexicon.add("长" * 501)

    def test_edits_survive_a_lack_of_memory(self) -> None:
        lexicon = Lexicon(["一二"])
        lexicon.add("三四")
        with (
            mock.patch("hanlattice.lexicon.layers.Layer.build", side_effect=MemoryError),
            pytest.raises(MemoryError),
        ):
            lexicon.match("三四")
        assert "三四" in lexicon

    def test_compiled_words_that_are_no_characters(self, path: Path) -> None:
        magic, header, arrays = parts(path)
        arrays["codes"][:] = 0x110000
        put_together(path, magic, header, arrays)
        with pytest.raises(HanlatticeError, match="a number that is not a character"):
            list(Lexicon.load(path).entries())
