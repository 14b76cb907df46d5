"""Compiled lexicons: a JSON header and raw arrays in one file, which is opened by memory mapping.

A file may be damaged or malicious. Opening it checks the header and the lengths of the arrays, which takes a
fraction of a millisecond whatever the size of the file. The contents of the arrays are checked where they are used:
a search stays inside the table and the text and always ends (see :class:`hanlattice.lexicon.trie.Trie`), a label id
out of range means no label, and the text of a word is checked when it is read. So wrong contents lead to wrong
matches or to an error of one line, and to nothing worse. To detect damage as such, use the digests of a model
folder.

If a file is truncated while it is mapped, the process ends, as with all memory mapping. To replace a file, rename
another one to its path.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hanlattice.atomic import atomic_write
from hanlattice.errors import DataError, ModelError
from hanlattice.lexicon.layers import Layer, Snapshot
from hanlattice.lexicon.trie import LINE, Trie
from hanlattice.lexicon.words import LONGEST, WordTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"hanlattice lexicon v4\n"
FAMILY = b"hanlattice lexicon "
FILE_NAME = "lexicon.bin"  # the name of the file in a folder
ALIGNMENT = 64
DTYPES = {
    "codes": "<u4",
    "offsets": "<i8",
    "cells": "<u8",
    "first": "<i4",
    "label_ids": "<i4",
    "weights": "<f4",
}


def file_at(path: str | Path) -> Path:
    """The file of a compiled lexicon: the path itself, or the file in a folder."""
    path = Path(path)
    return path / FILE_NAME if path.is_dir() else path


def is_compiled(path: Path) -> bool:
    """Whether there is a file that starts like a compiled lexicon of any version.

    A pipe is not looked into, because it can be read only once.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        if not path.is_file():
            return False
        with open(path, "rb") as stream:
            return stream.read(len(FAMILY)) == FAMILY
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def write(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot that has at most one layer and no removed words."""
    layer = snapshot.layers[0] if snapshot.layers else Layer.build(0, WordTable.of([]))
    arrays: dict[str, NDArray[Any]] = {
        "codes": layer.words.codes,
        "offsets": layer.words.offsets,
        "cells": layer.trie.cells.reshape(-1),
        "first": layer.trie.first,
    }
    if snapshot.labels:
        arrays["label_ids"] = snapshot.label_ids
    if not np.isnan(snapshot.weights).all():
        arrays["weights"] = snapshot.weights
    lengths = {name: len(array) for name, array in arrays.items()}
    header = {"labels": snapshot.labels, "longest": layer.trie.longest, "arrays": lengths}
    with atomic_write(path, "wb") as stream:
        stream.write(MAGIC + json.dumps(header, ensure_ascii=False).encode() + b"\n")
        for name, array in arrays.items():
            stream.write(bytes(-stream.tell() % ALIGNMENT))
            stream.write(np.ascontiguousarray(array, DTYPES[name]).data)


def read(path: Path) -> Snapshot:
    """Map a compiled lexicon into memory; only its header is read immediately.

    Raises:
        ModelError: the file has another format or version, or is broken.
        DataError: the file cannot be read.
    """
    try:
        return _read(path)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def _read(path: Path) -> Snapshot:
    with open(path, "rb") as stream:
        magic = stream.readline(len(MAGIC))
        if not magic.startswith(FAMILY):
            raise ModelError(f"{path}: not a compiled lexicon; build one with: hanlattice lexicon build")
        if magic != MAGIC:
            raise ModelError(f"{path}: a compiled lexicon of another version; build it again from its words")
        try:
            header = json.loads(stream.readline())
            labels, lengths, longest = tuple(header["labels"]), header["arrays"], header["longest"]
            _refuse_misfits(labels, lengths, longest)
            places, position = {}, stream.tell()
            for name, length in lengths.items():
                position += -position % ALIGNMENT
                places[name] = position
                position += length * np.dtype(DTYPES[name]).itemsize
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ModelError(f"{path}: the header is broken; build it again from its words") from None
        # All of this file: a new one may have been renamed to its path since it was opened.
        size = os.fstat(stream.fileno()).st_size
        if size != position:
            raise ModelError(f"{path}: {size:,} bytes, not {position:,}; build it again from its words")
        data = np.memmap(stream, np.uint8, "r").view(np.ndarray)
    arrays = {
        name: data[start : start + lengths[name] * np.dtype(DTYPES[name]).itemsize].view(DTYPES[name])
        for name, start in places.items()
    }
    words = WordTable(arrays["codes"], arrays["offsets"])
    if not len(words):
        return Snapshot()
    return Snapshot(
        (Layer(0, words, Trie(arrays["cells"].reshape(-1, 2), arrays["first"], len(words), longest)),),
        labels,
        arrays.get("label_ids", np.broadcast_to(np.int32(-1), len(words))),
        arrays.get("weights", np.broadcast_to(np.float32(np.nan), len(words))),
    )


def _refuse_misfits(labels: tuple[Any, ...], lengths: dict[str, Any], longest: Any) -> None:
    """Check the fields of a header.

    Raises:
        ValueError: arrays are missing or unknown, or their lengths contradict each other.
    """
    for number in (longest, *lengths.values()):
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!r} is not a length")
    if not all(isinstance(label, str) for label in labels):
        raise ValueError("a label is not a string")
    if not {"codes", "offsets", "cells", "first"} <= lengths.keys() <= DTYPES.keys():
        raise ValueError("unknown or missing arrays")
    n_words = lengths["offsets"] - 1
    of_words = (lengths.get(name, n_words) for name in ("label_ids", "weights"))
    whole_lines = lengths["cells"] > 0 and lengths["cells"] % (2 * LINE) == 0
    if n_words < 0 or set(of_words) != {n_words} or not whole_lines or not lengths["first"] or longest > LONGEST:
        raise ValueError("lengths that contradict each other")
