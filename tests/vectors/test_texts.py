"""The text for training vectors: normalised, without duplicates and excluded texts."""

import gzip
import lzma
import random
from pathlib import Path

import pytest

from hanlattice.errors import DataError
from hanlattice.files import BLOCK
from hanlattice.vectors.texts import CUT, MAX_LINE, OVERLAP, Counts, ngrams, training_lines


def test_texts_are_normalised_cut_and_counted(tmp_path: Path) -> None:
    long = "长" * (MAX_LINE + 1)
    content = f"\ufeffＡ B\u3000c\n\n{long}\nab C\nａ b  c\n a b c \n"
    packed = {
        "t.txt": content.encode(),
        "t.xz": lzma.compress(content.encode()),
        "t.gz": gzip.compress(content.encode()),
    }
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data)
        counts = Counts()
        told: list[float] = []
        assert list(training_lines([tmp_path / name], set(), counts, told.append)) == [
            "abc", "长" * MAX_LINE + CUT, "长", "abc", "abc"
        ]  # fmt: skip
        assert counts == Counts(kept=4, duplicates=1, excluded=0, characters=9 + MAX_LINE + 1)
        assert told[-1] == 1


def test_a_paragraph_that_overlaps_a_test_set_is_left_out(tmp_path: Path) -> None:
    secret = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
    lines = [
        "开头" + secret[1 : OVERLAP + 1] + "结尾",
        "开头" + secret[1:OVERLAP] + "结尾",
        secret[:OVERLAP],
        secret[: OVERLAP - 1],
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    counts = Counts()
    kept = list(training_lines([tmp_path / "t.txt"], ngrams([secret, "短"]), counts))
    assert kept == [lines[1], lines[3]]
    assert counts.excluded == 2


def test_white_space_does_not_hide_an_excluded_text(tmp_path: Path) -> None:
    secret = "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉戌亥"
    (tmp_path / "t.txt").write_text(" ".join(secret) + "\n好", encoding="utf-8")
    for excluded in (secret, "\u3000".join(secret)):
        counts = Counts()
        assert list(training_lines([tmp_path / "t.txt"], ngrams([excluded]), counts)) == ["好"]
        assert counts.excluded == 1


def test_lengths_are_those_of_the_documentation() -> None:
    assert (OVERLAP, MAX_LINE) == (20, 5000)


def test_progress_is_reported_after_each_block_and_each_file(tmp_path: Path) -> None:
    sizes = {"a.txt": 3 * BLOCK, "b.txt": 2}
    for name, n in sizes.items():
        (tmp_path / name).write_bytes(b"x\n" * (n // 2))
    reported: list[float] = []
    list(training_lines([tmp_path / name for name in sizes], set(), Counts(), reported.append))
    assert reported == sorted(reported)
    assert len(reported) >= 5
    assert (reported[0], reported[-2:]) == (BLOCK / (3 * BLOCK + 2), [1.0, 1.0])
    (tmp_path / "empty.txt").touch()
    reported.clear()
    assert list(training_lines([tmp_path / "empty.txt"], set(), Counts(), reported.append)) == []
    assert reported == [0.0]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.txt", "好\n坏".encode("gb18030"), "t.txt:1: byte 0xba at position 1 is not UTF-8"),
        ("t.xz", lzma.compress("好\n".encode() * 9999)[:-20], "t.xz: cannot be decompressed"),
        (
            "t.gz",
            gzip.compress(random.Random(1).randbytes(999).hex().encode())[:-99],
            "t.gz: cannot be decompressed",
        ),
        ("t.xz", b"plain", "t.xz: cannot be decompressed"),
        ("t.gz", b"plain", "t.gz: cannot be decompressed"),
        ("t.txt", None, "t.txt: cannot be read"),
    ],
)
def test_unreadable_texts_are_errors(name: str, data: bytes | None, message: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError) as caught:
        list(training_lines([tmp_path / name], set(), Counts()))
    assert message in str(caught.value)
