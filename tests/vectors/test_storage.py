"""Vectors in memory and in files: precision, look-up, broken files, word2vec text."""

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from safetensors.numpy import save_file

from hanlattice.errors import DataError
from hanlattice.vectors import Vectors, VectorSet, default_vectors, storage
from hanlattice.vectors.storage import HEADER, KINDS, Precision


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


def test_half_precision_is_kept_by_saving(small: VectorSet, tmp_path: Path) -> None:
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
def test_int8_is_off_by_at_most_half_a_step(matrix: np.ndarray) -> None:
    stored = Vectors(tuple("abcde"), matrix).to("int8")
    assert stored.rows.dtype == np.int8
    step = np.abs(matrix).max(1, keepdims=True) / 127
    # The scale is rounded to half precision: 2**-11 of it, or 2**-25 where it is too small for that.
    assert (np.abs(stored.matrix - matrix) <= 0.51 * step + 127 * 2.0**-24).all()


def test_int8_is_kept_by_saving_twice(small: VectorSet, tmp_path: Path) -> None:
    small.save(tmp_path / "a", "int8")
    once = VectorSet.load(tmp_path / "a")
    once.save(tmp_path / "b", "int8")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(once.words.matrix, small.words.to("int8").matrix)


def test_the_order_of_what_is_recorded_changes_no_file(small: VectorSet, tmp_path: Path) -> None:
    for name, meta in (("a", {"x": "1", "y": "2"}), ("b", {"y": "2", "x": "1"})):
        VectorSet(small.chars, small.bigrams, small.words, meta).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    for precision, kind in (("float16", np.float16), ("int8", np.int8)):
        assert small.chars.to(precision).rows.dtype == kind  # type: ignore[arg-type]
    half = small.chars.to("float16")
    assert half.to("float16") is half


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
def test_numbers_that_the_precision_cannot_represent_are_errors(
    number: float, precision: Literal["float16", "int8"], tmp_path: Path
) -> None:
    bad = Vectors(("好", "坏"), np.array([[1, 2], [number, 0]], np.float32))
    with pytest.raises(DataError, match="'坏'"):
        VectorSet(bad, bad, bad).save(tmp_path / "v", precision)
    assert not list(tmp_path.iterdir())


def test_digest_differs_between_sets(small: VectorSet) -> None:
    same = VectorSet(small.chars, small.bigrams, small.words, {"made": "otherwise"})
    assert same.digest == small.digest
    renamed = Vectors(("重庆", "药店", "渝中"), small.words.rows)
    changed = Vectors(small.words.names, np.nextafter(small.words.rows, 9))
    digests = {VectorSet(small.chars, small.bigrams, words).digest for words in (small.words, renamed, changed)}
    assert len(digests) == 3


def test_rows_and_names_have_to_match() -> None:
    with pytest.raises(DataError, match="2 names"):
        Vectors(("a", "b"), np.zeros((3, 2), np.float32))
    with pytest.raises(DataError, match="scale"):
        Vectors(("a",), np.zeros((1, 2), np.int8))
    broken = Vectors(("a\nb",), np.zeros((1, 2), np.float32))
    with pytest.raises(DataError, match="line break"):
        VectorSet(broken, broken, broken).save("never-written")


def test_lookup_falls_back_to_lower_case() -> None:
    table = vectors("b B a 好")
    assert table.ids(["B", "b", "A", "好", "坏", "", "ß"]).tolist() == [1, 0, 2, 3, -1, -1, -1]
    assert table.ids([]).shape == (0,)


def test_the_first_of_equal_names_counts() -> None:
    assert vectors("甲 乙 甲").ids(["甲"]).tolist() == [0]


def test_top_keeps_the_most_frequent(small: VectorSet) -> None:
    for of_kind in (small.chars, small.chars.to("int8")):
        first = of_kind.top(2)
        assert first.names == ("的", "一")
        np.testing.assert_array_equal(first.matrix, of_kind.matrix[:2])
    assert [len(v) for v in small.top(1, 9, 0).kinds().values()] == [1, 2, 0]


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
        with pytest.raises(DataError, match=r"v\.safetensors: not a valid safetensors file"):
            VectorSet.load(path)
    save_file({"weight": np.zeros(3)}, path)
    with pytest.raises(DataError, match="without vectors"):
        VectorSet.load(path)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_file_is_mapped_and_rows_are_read_on_demand(
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
def test_foreign_headers_are_errors(message: str, header: str, tmp_path: Path) -> None:
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
def test_inconsistent_tensors_are_errors(names: bytes, rows: np.ndarray, tmp_path: Path) -> None:
    tensors = {f"{kind}.names": np.frombuffer(names, np.uint8) for kind in KINDS}
    tensors |= {f"{kind}.rows": rows for kind in KINDS}
    save_file(tensors, tmp_path / "v", {HEADER: '{"version": 1, "meta": {}}'})
    with pytest.raises(DataError, match="chars are broken"):
        VectorSet.load(tmp_path / "v")


def test_names_that_are_not_utf8_are_errors(tmp_path: Path) -> None:
    tensors: dict[str, np.ndarray] = {f"{kind}.names": np.frombuffer(b"\xff\nb", np.uint8) for kind in KINDS}
    tensors |= {f"{kind}.rows": np.zeros((2, 3), np.float16) for kind in KINDS}
    save_file(tensors, tmp_path / "v", {HEADER: '{"version": 1, "meta": {}}'})
    loaded = VectorSet.load(tmp_path / "v")
    with pytest.raises(DataError, match="v: the names are broken"):
        loaded.words.ids(["b"])


def test_missing_packaged_vectors_are_an_error(
    monkeypatch: pytest.MonkeyPatch, small: VectorSet, tmp_path: Path
) -> None:
    monkeypatch.setattr(storage, "DEFAULT", tmp_path / "vectors.safetensors")
    with pytest.raises(DataError, match="reinstall hanlattice"):
        default_vectors()
    small.save(tmp_path / "vectors.safetensors", "int8")
    assert default_vectors().words.names == small.words.names


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
        ("3 2\n好 1 2\n坏 1 2\n", "announces 3 vectors, but the file has 2"),
        ("", "has no vectors"),
        ("0 50\n", "has no vectors"),
    ],
)
def test_broken_word2vec_text_is_an_error(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        Vectors.from_text(path)
    assert message in str(caught.value)


def test_a_digest_has_sixteen_digits(small: VectorSet) -> None:
    assert len(small.digest) == 16
    assert int(small.digest, 16) >= 0


def test_the_largest_number_of_a_row_is_127_in_int8() -> None:
    stored = Vectors(("a", "b", "c"), np.array([[1, -0.5], [0, 0], [-4, 3]], np.float32)).to("int8")
    assert np.abs(stored.rows).max(1).tolist() == [127, 0, 127]
    assert stored.matrix.min() == pytest.approx(-4, rel=1e-3)
