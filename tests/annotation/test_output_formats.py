"""Joining the parts of a run into one file."""

import io
from pathlib import Path

import pytest

from hanlattice.annotation.output_formats import OUTPUT_FORMATS, ROW_GROUP


@pytest.mark.parametrize("sizes", [[3], [ROW_GROUP - 1, 1, 2], [ROW_GROUP + 5, 7], [9, ROW_GROUP, 1]], ids=str)
def test_parquet_parts_are_joined_with_every_row_once(sizes: list[int], tmp_path: Path) -> None:
    """Also where the parts together, or one of them, exceed a row group."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parts, first = [], 0
    for i, size in enumerate(sizes):
        parts.append(tmp_path / f"part-{i}.parquet")
        pq.write_table(pa.table({"n": list(range(first, first + size))}), parts[-1])
        first += size
    stream = io.BytesIO()
    OUTPUT_FORMATS["parquet"].join(parts, stream)
    with pq.ParquetFile(io.BytesIO(stream.getvalue())) as file:
        assert file.read().column("n").to_pylist() == list(range(first))
        assert file.num_row_groups == (1 if sum(sizes) <= ROW_GROUP else 2)
