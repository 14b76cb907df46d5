"""Chunks of input files: each limit ends one; they have numbers, lines and parts of the size of the file."""

import gzip
import json
from pathlib import Path

import pytest

from hanlattice.annotation import inputs as inputs_of
from hanlattice.annotation.chunk import Chunk
from hanlattice.annotation.input_formats import INPUT_FORMATS
from hanlattice.annotation.input_formats.base import Limits, decoded
from hanlattice.annotation.inputs import Input, find_inputs

N = 10
ROW = "一二三四五六"  # 18 bytes, and one for the line break


def source(folder: Path, kind: str) -> Input:
    path = folder / f"a.{kind}"
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"text": [ROW] * N}), path)
    else:
        row = json.dumps({"text": ROW}, ensure_ascii=False) if kind == "jsonl" else ROW
        head = ["text"] if kind in ("csv", "tsv") else []
        path.write_text("\n".join([*head, *[row] * N]) + "\n", "utf-8")
    (found,) = find_inputs([str(path)], None, folder / "out")
    return found


def chunks(given: Input, limits: Limits) -> list[Chunk]:
    return list(INPUT_FORMATS[given.format].chunks(given, limits))


def sizes(found: list[Chunk], kind: str) -> list[int]:
    made = [INPUT_FORMATS[chunk.format].rows(chunk, "text", "entities") for chunk in found]
    assert all(text == ROW for rows in made for text in rows.texts), kind
    return [len(rows.texts) for rows in made]


@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv", "tsv", "parquet"])
def test_limits(kind: str, tmp_path: Path) -> None:
    given = source(tmp_path, kind)
    assert sizes(chunks(given, Limits(N)), kind) == [N]
    assert sizes(chunks(given, Limits(N + 1)), kind) == [N]
    assert sizes(chunks(given, Limits(4)), kind) == [4, 4, 2]
    assert sizes(chunks(given, Limits(1)), kind) == [1] * N
    assert sizes(chunks(given, Limits(N, size=1)), kind) == [1] * N


@pytest.mark.parametrize(("kind", "bytes_of_row"), [("txt", 19), ("jsonl", 19 + 12), ("csv", 6)])
def test_the_row_that_reaches_the_size_ends_a_chunk(kind: str, bytes_of_row: int, tmp_path: Path) -> None:
    """CSV counts characters, which are known without encoding them again."""
    given = source(tmp_path, kind)
    assert sizes(chunks(given, Limits(N, size=2 * bytes_of_row)), kind) == [2] * 5
    assert sizes(chunks(given, Limits(N, size=2 * bytes_of_row + 1)), kind) == [3, 3, 3, 1]


def test_rows_of_parquet_count_as_equally_large(tmp_path: Path) -> None:
    given = source(tmp_path, "parquet")
    bytes_of_all = N * (18 + 4)  # and four bytes for each offset
    for size in (bytes_of_all // 2, bytes_of_all // 3):
        found = sizes(chunks(given, Limits(N, size=size)), "parquet")
        assert sum(found) == N
        assert 1 < len(found) < N
        assert max(found) <= size / 18


@pytest.mark.parametrize("kind", ["txt", "jsonl", "csv", "parquet"])
def test_numbers_and_first_lines(kind: str, tmp_path: Path) -> None:
    given = source(tmp_path, kind)
    found = chunks(given, Limits(3))
    assert [chunk.number for chunk in found] == [0, 1, 2, 3]
    assert {(chunk.file, chunk.format) for chunk in found} == {(str(given.path), given.format)}
    lines = [line for chunk in found for line in INPUT_FORMATS[kind_of(kind)].rows(chunk, "text", "entities").lines]
    assert lines == list(range(2, N + 2) if kind == "csv" else range(1, N + 1))


def kind_of(kind: str) -> str:
    return "text" if kind == "txt" else kind


def test_the_sizes_of_chunks_are_parts_of_the_file(tmp_path: Path) -> None:
    given = source(tmp_path, "parquet")
    assert [chunk.size for chunk in chunks(given, Limits(5))] == [given.size // 2] * 2
    given = source(tmp_path, "txt")
    assert sum(chunk.size for chunk in chunks(given, Limits(3))) == given.size
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(given.path.read_bytes()))
    (given,) = find_inputs([str(packed)], None, tmp_path / "out")
    assert given.packed
    assert sum(chunk.size for chunk in chunks(given, Limits(3))) == given.size


def test_a_line_of_the_largest_size_is_read_and_a_longer_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs_of, "MAX_LINE_BYTES", 10)
    path = tmp_path / "a.txt"
    path.write_bytes(b"123456789\n1234567890\n12345678901234567890123\n1\n123456789")
    (given,) = find_inputs([str(path)], None, tmp_path / "out")
    (chunk,) = chunks(given, Limits(N))
    assert chunk.rows == [b"123456789\n", None, None, b"1\n", b"123456789"]


def test_lines_without_their_ends() -> None:
    assert decoded("\ufeff一\r\n".encode(), 1) == "一"
    assert decoded("\ufeff一\n".encode(), 2) == "\ufeff一"
    assert decoded(b"a\r\r\n", 1) == "a\r"
    bad = decoded(b"a\xff\n", 3)
    assert not isinstance(bad, str)
    assert (bad.line, bad.reason, bad.row) == (3, "byte 0xff at position 2 is not UTF-8", "a\\xff")


class TestFiles:
    def test_folders_and_globs_take_files_with_known_endings(self, tmp_path: Path) -> None:
        names = ["a.txt", "b.csv", "c.md", ".d.txt", "_e.txt", "f.jsonl.gz", "out.jsonl", "in/g.pq", "_in/h.txt"]
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("x", "utf-8")

        def found(*given: str, kind: str | None = None) -> list[str]:
            files = find_inputs([str(tmp_path / name) for name in given], kind, tmp_path / "out.jsonl")
            return [file.path.relative_to(tmp_path).as_posix() for file in files]

        assert found("") == ["a.txt", "b.csv", "f.jsonl.gz", "in/g.pq"]
        assert found("", kind="text") == ["a.txt", "b.csv", "c.md", "f.jsonl.gz", "in/g.pq"]
        assert found("*.txt") == ["_e.txt", "a.txt"]
        assert found("**/*.pq") == ["in/g.pq"]
        assert found("b.csv", "a.txt", "b.csv", "") == ["b.csv", "a.txt", "f.jsonl.gz", "in/g.pq"]
        assert found("c.md", kind="text") == ["c.md"]

    def test_the_files_of_the_output_are_no_input(self, tmp_path: Path) -> None:
        for name in ("out.jsonl", "out.jsonl.bad.jsonl", "out.jsonl.parts/0.jsonl", "in.jsonl"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text("{}", "utf-8")
        for given in (tmp_path, tmp_path / "**" / "*.jsonl"):
            found = find_inputs([str(given)], None, tmp_path / "out.jsonl")
            assert [file.path.name for file in found] == ["in.jsonl"]
