"""Parquet and Arrow files, and folders of them as Hugging Face ``datasets`` saves them.

A row has the columns of any of the JSON formats. Defects give the number of a row, from 1, as their line. Tags that
are numbers get their names from the file, or from the ``dataset_info.json`` beside it. Needs pyarrow.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.json_rows.row_formats import ROW_FORMATS, describe, recognise
from hanlattice.corpus.json_rows.rows import Row
from hanlattice.corpus.source import Source
from hanlattice.document import Document
from hanlattice.errors import DataError

_HEAD = 500
"""Number of rows from which the format is recognised."""

_SPLITS = frozenset({"train", "dev", "validation", "valid", "val", "test"})

_BATCH = 1000
"""Number of rows of Parquet per batch."""

_STREAM = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream."""


def sniff_parquet(path: Path) -> str | None:
    """Evidence for this format, or ``None``: the path is a Parquet file, or a folder of Parquet files."""
    if path.is_dir():
        return "a folder of Parquet files" if any(path.glob("*.parquet")) else None
    return "a Parquet file" if _begins(path, b"PAR1") else None


def sniff_arrow(path: Path) -> str | None:
    """Evidence for this format, or ``None``: the path is an Arrow file, or a folder that ``datasets`` saved."""
    if path.is_dir():
        names = ("dataset_dict.json", "dataset_info.json", "*.arrow")
        return "a folder of Arrow files" if any(any(path.glob(name)) for name in names) else None
    return "an Arrow file" if _begins(path, b"ARROW1", _STREAM) else None


def read(
    path: str | Path,
    *,
    scheme: str | None = None,
    strict: bool = False,
    ends: str | None = None,
    units: str | None = None,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document per row, or per sentence; the files of a folder are sorted by name.

    Raises:
        DataError: pyarrow is not installed, a file cannot be read, a folder holds several splits, no format
            recognises the rows, or a row cannot be read and there is no ``on_defect``.
    """
    path, source = Path(path), Source(str(path), None, on_defect, ends, units, scheme, strict)
    if find_spec("pyarrow") is None:
        raise DataError("Parquet and Arrow need pyarrow; install it: pip install 'hanlattice[bulk]'", path)
    found = _rows(path)
    head = list(islice(found, _HEAD))
    if not head:
        raise DataError("the table has no rows; name a table with documents", path)
    detected = recognise([row for _, row in head])
    if detected is None:
        description = describe(row for _, row in head)
        fix = "name the columns text and entities, or tokens and ner_tags"
        raise DataError(f"no known format has {description}; {fix}", path)
    yield from ROW_FORMATS[detected.format].documents(chain(head, found), source)


def _rows(path: Path) -> Iterator[Row]:
    number = 0
    for file in _files(path):
        try:
            with open(file, "rb") as stream:
                schema, found = _opened(stream, file)
                _refuse_repeated(schema.names, file)
                names = _names(schema, file)
                for row in found:
                    number += 1
                    yield number, _with_names(row, names)
        except DataError:
            raise
        except (OSError, ValueError) as error:
            raise DataError(
                f"cannot be read: {' '.join(str(error).split())}; create or download it again", file
            ) from None


def _refuse_repeated(names: Sequence[str], file: Path) -> None:
    """
    Raises:
        DataError: two columns have the same name.
    """
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(f"has two columns {twice[0]!r}; rename one of them", file)


def _files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder.

    Raises:
        DataError: the folder holds several splits.
    """
    if not path.is_dir():
        return [path]
    files = sorted([*path.glob("*.parquet"), *path.glob("*.arrow")])
    folders = sorted(inner.name for inner in path.iterdir() if inner.is_dir() and any(inner.glob("*.arrow")))
    splits = sorted({file.stem.split("-")[0] for file in files})
    is_split = any("-of-" in file.stem for file in files) or len(_SPLITS.intersection(splits)) > 1
    if folders or (len(splits) > 1 and is_split):
        named = ", ".join(folders or splits)
        raise DataError(f"holds several splits: {named}; name one of them", path)
    return files


def _opened(stream: IO[bytes], file: Path) -> tuple[Any, Iterator[Any]]:
    """The schema of a Parquet file, Arrow stream or Arrow file, and its rows, read batch by batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _begins(file, b"PAR1"):
        table = pq.ParquetFile(stream)
        return table.schema_arrow, _flat(table.iter_batches(_BATCH), file)
    opened = pa.ipc.open_stream if _begins(file, _STREAM) else pa.ipc.open_file
    reader = opened(stream)
    if hasattr(reader, "num_record_batches"):
        return reader.schema, _flat((reader.get_batch(i) for i in range(reader.num_record_batches)), file)
    return reader.schema, _flat(reader, file)


def _flat(batches: Any, file: Path) -> Iterator[Any]:
    first = 1
    for batch in batches:
        try:
            rows = batch.to_pylist()
        except UnicodeDecodeError:
            rows = _up_to_the_error(batch, first, file)
        yield from rows
        first += batch.num_rows


def _up_to_the_error(batch: Any, first: int, file: Path) -> Iterator[Any]:
    """The rows of a batch before the first one with a string that is not UTF-8.

    Raises:
        DataError: this row is reached.
    """
    for i in range(batch.num_rows):
        try:
            [row] = batch.slice(i, 1).to_pylist()
        except UnicodeDecodeError as error:
            byte = f"the byte {error.object[error.start]:#04x} of a string"
            message = f"{byte} is not UTF-8; create the file again with strings in UTF-8"
            raise DataError(message, file, first + i) from None
        yield row


def _names(schema: Any, file: Path) -> dict[str, list[str]]:
    """For each column of class numbers, the names of the classes, from the schema or ``dataset_info.json``."""
    metadata = (schema.metadata or {}).get(b"huggingface")
    path = file.parent / "dataset_info.json"
    info: Any = {}
    if metadata is not None:
        info, path = _table(json.loads(metadata), file).get("info"), file
    elif path.is_file():
        info = json.loads(path.read_text(encoding="utf-8"))
    features = _table(_table(info, path).get("features"), path)
    found = {name: _class_names(feature) for name, feature in features.items()}
    return {name: names for name, names in found.items() if names}


def _table(value: Any, file: Path) -> Mapping[str, Any]:
    """A table of the description of a dataset, which may be left out.

    Raises:
        DataError: it is something else.
    """
    if not isinstance(value or {}, Mapping):
        raise DataError(f"describes its features with {json.dumps(value)[:40]}; write a table, or delete it", file)
    return value or {}


def _class_names(feature: Any) -> list[str]:
    """The names of a class label, or of a sequence of class labels; empty for other features."""
    if isinstance(feature, list) and feature:
        return _class_names(feature[0])
    if not isinstance(feature, Mapping):
        return []
    if feature.get("_type") == "ClassLabel":
        return list(feature.get("names") or ())
    return _class_names(feature.get("feature"))


def _with_names(row: Any, names: Mapping[str, list[str]]) -> Any:
    """The row with the names of classes instead of their numbers."""
    changed = {
        name: [known[n] if type(n) is int and 0 <= n < len(known) else n for n in row[name]]
        for name, known in names.items()
        if isinstance(row.get(name), list)
    }
    return {**row, **changed}


def _begins(path: Path, *marks: bytes) -> bool:
    if not path.is_file():
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(8).startswith(marks)
    except OSError:  # reading the file will report it
        return False
