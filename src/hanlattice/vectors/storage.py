"""Vectors by name, and the one safetensors file that holds those of characters, bigrams and words."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors import numpy as safetensors

from hanlattice.errors import DataError
from hanlattice.files import atomic_write, read_lines

Precision = Literal["float16", "int8"]

KINDS = ("chars", "bigrams", "words")
HEADER = "hanlattice vectors"  # the file's one metadata key: several would be written in no fixed order
VERSION = 1
DTYPES = {"U8": "|u1", "I8": "|i1", "F16": "<f2", "F32": "<f4"}
PIECE = 1 << 20  # bytes of names that are counted at once
DEFAULT = Path(__file__).parents[1] / "data" / "vectors.safetensors"


@dataclass(frozen=True, eq=False)
class Vectors:
    """Names in order of falling frequency, with one vector each. Of equal names the first counts.

    ``rows`` are the vectors as stored, ``[V D]`` of float32, float16 or int8; int8 rows have a ``scale``,
    float16 ``[V]``, that multiplies them. Read them through ``matrix``.
    """

    names: tuple[str, ...]
    rows: NDArray[Any]
    scale: NDArray[np.float16] | None = None

    def __post_init__(self) -> None:
        self._check(len(self.names))

    def _check(self, n: int) -> None:
        if self.rows.ndim != 2 or len(self.rows) != n:
            raise DataError(f"{n} names need as many rows of vectors, not {self.rows.shape}")
        if (self.rows.dtype == np.int8) != (self.scale is not None):
            raise DataError("rows of int8, and no others, need a scale")

    @classmethod
    def from_text(cls, path: str | Path) -> "Vectors":
        """Vectors from word2vec's text format: a name and its numbers a line, with a header line or without.

        Raises:
            DataError: the file cannot be read; a line is too short, too long or holds what is no number; or
                the header promises another number of lines.
        """
        return _read_text(path)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dimension(self) -> int:
        return self.rows.shape[1]

    @cached_property
    def matrix(self) -> NDArray[np.float32]:
        """``[V D]``; read-only by contract: it is shared."""
        matrix = self.rows.astype(np.float32, copy=False)
        if self.scale is not None:
            matrix *= self.scale.astype(np.float32)[:, None]
        return matrix

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some rows; no others are read."""
        vectors = self.rows[ids].astype(np.float32)
        return vectors if self.scale is None else vectors * self.scale[ids].astype(np.float32)[:, None]

    @cached_property
    def _index(self) -> dict[str, int]:
        return dict(zip(reversed(self.names), range(len(self.names) - 1, -1, -1), strict=True))

    def ids(self, names: Iterable[str]) -> NDArray[np.int64]:
        """The row of each name, else that of the name in lower case, else -1 (the rule of fastNLP)."""
        index = self._index
        found = (index[name] if name in index else index.get(name.lower(), -1) for name in names)
        return np.fromiter(found, np.int64)

    def top(self, n: int) -> "Vectors":
        """The ``n`` most frequent."""
        return Vectors(self.names[:n], self.rows[:n], None if self.scale is None else self.scale[:n])

    def to(self, precision: Precision) -> "Vectors":
        """The same vectors, stored in half precision, or in 8 bits with one scale a row.

        Raises:
            DataError: a number is not finite, or too large for the precision.
        """
        if self.rows.dtype == np.dtype(precision):
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            stored = _to_int8(self) if precision == "int8" else Vectors(self.names, self.matrix.astype(np.float16))
        finite = np.isfinite(stored.rows if stored.scale is None else stored.scale)
        if not finite.all():
            name = self.names[int(np.argwhere(~finite)[0, 0])]
            raise DataError(f"the vector of {name!r} holds a number that {precision} cannot; remove or scale it")
        return stored


class _Stored(Vectors):
    """Vectors in a file: nothing is in memory, and names are no strings, before somebody asks for them."""

    _blob: NDArray[np.uint8]
    _path: str | Path

    def __init__(
        self, blob: NDArray[np.uint8], rows: NDArray[Any], scale: NDArray[np.float16] | None, path: str | Path
    ):
        for name, value in (("_blob", blob), ("rows", rows), ("scale", scale), ("_path", path)):
            object.__setattr__(self, name, value)
        breaks = sum(int(np.count_nonzero(blob[i : i + PIECE] == ord("\n"))) for i in range(0, len(blob), PIECE))
        self._check(breaks + 1 if len(rows) else 0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """
        Raises:
            DataError: they are not UTF-8.
        """
        try:
            return tuple(self._blob.tobytes().decode().split("\n")) if len(self) else ()
        except UnicodeDecodeError as error:
            raise DataError(f"its names are broken: {error}; make or fetch the file again", self._path) from None


@dataclass(frozen=True, eq=False)
class VectorSet:
    """Vectors of characters, of bigrams (``ab``, and ``b<end>`` at the end of a text) and of words.

    ``meta`` tells how they were made.
    """

    chars: Vectors
    bigrams: Vectors
    words: Vectors
    meta: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> dict[str, Vectors]:
        return {kind: getattr(self, kind) for kind in KINDS}

    def top(self, chars: int, bigrams: int, words: int) -> "VectorSet":
        """The most frequent of each kind."""
        return VectorSet(self.chars.top(chars), self.bigrams.top(bigrams), self.words.top(words), self.meta)

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that tell sets apart by their names and vectors as stored."""
        digest = blake2b(digest_size=8)
        for vectors in self.kinds().values():
            for array in _tensors(vectors).values():
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def save(self, path: str | Path, precision: Precision = "float16") -> None:
        """Write one safetensors file, whole or not at all; equal sets give equal files.

        Raises:
            DataError: the file cannot be written, or the vectors cannot be stored so.
        """
        tensors = {
            f"{kind}.{name}": np.ascontiguousarray(array)
            for kind, vectors in self.kinds().items()
            for name, array in _tensors(vectors.to(precision)).items()
        }
        header = json.dumps({"version": VERSION, "meta": dict(self.meta)}, ensure_ascii=False, sort_keys=True)
        with atomic_write(path, "wb") as stream:
            stream.write(safetensors.save(tensors, {HEADER: header}))

    @classmethod
    def load(cls, path: str | Path) -> "VectorSet":
        """Open a file of ``save``; vectors are mapped into memory and read when they are used.

        Raises:
            DataError: the file is missing, broken, of another kind or of another version.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                meta = _meta(file.metadata(), path)
            tensors = _mapped(path)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        except SafetensorError as error:
            raise DataError(f"broken, or no safetensors file ({error}); make or fetch it again", path) from None
        return cls(**{kind: _vectors(tensors, kind, path) for kind in KINDS}, meta=meta)


def default_vectors() -> VectorSet:
    """The compact set inside the package; its card is ``VECTORS.md`` beside it.

    Raises:
        DataError: this installation came without it.
    """
    if not DEFAULT.exists():
        raise DataError(
            "the package's own vectors are missing; reinstall hanlattice, or name a file of your own"
            " made with: hanlattice vectors train",
            DEFAULT,
        )
    return VectorSet.load(DEFAULT)


def _to_int8(vectors: Vectors) -> Vectors:
    matrix = vectors.matrix
    scale = (np.abs(matrix).max(1, initial=0.0) / 127).astype(np.float16)
    divisor = np.where(scale > 0, scale, 1).astype(np.float32)[:, None]
    # The scale was rounded, so the largest number of a row may come to a little more than 127.
    return Vectors(vectors.names, np.rint(matrix / divisor).clip(-127, 127).astype(np.int8), scale)


def _tensors(vectors: Vectors) -> dict[str, NDArray[Any]]:
    blob = "\n".join(vectors.names)
    if blob.count("\n") > max(len(vectors) - 1, 0):
        raise DataError("a name with a line break cannot be stored; remove it")
    tensors = {"names": np.frombuffer(blob.encode(), np.uint8), "rows": vectors.rows}
    return tensors if vectors.scale is None else {**tensors, "scale": vectors.scale}


def _mapped(path: str | Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file that is known to be whole, as views of the file."""
    data = np.memmap(path, np.uint8, "r").view(np.ndarray)
    begin = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(data[8:begin].tobytes())
    return {
        name: np.ndarray(told["shape"], DTYPES[told["dtype"]], data, begin + told["data_offsets"][0])
        for name, told in header.items()
        if told.get("dtype") in DTYPES
    }


def _meta(metadata: Mapping[str, str] | None, path: str | Path) -> dict[str, str]:
    if not metadata or HEADER not in metadata:
        raise DataError("a safetensors file, but not of vectors; make one with: hanlattice vectors train", path)
    try:
        header = json.loads(metadata[HEADER])
        version, meta = header["version"], dict(header["meta"])
    except (ValueError, KeyError, TypeError):
        raise DataError("its header is broken; make or fetch the file again", path) from None
    if version != VERSION:
        raise DataError(f"vectors of version {version}, this program reads {VERSION}; make them again", path)
    return meta


def _vectors(tensors: Mapping[str, NDArray[Any]], kind: str, path: str | Path) -> Vectors:
    try:
        return _Stored(tensors[f"{kind}.names"], tensors[f"{kind}.rows"], tensors.get(f"{kind}.scale"), path)
    except KeyError as error:
        raise DataError(f"the tensor {error} is missing; make or fetch the file again", path) from None
    except DataError as error:
        raise DataError(f"its {kind} are broken: {error}; make or fetch the file again", path) from None


def _read_text(path: str | Path) -> Vectors:
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    promised = dimension = None
    for number, line in enumerate(read_lines(path), 1):
        name, *numbers = line.replace("\t", " ").rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and name.isdecimal() and numbers[0].isdecimal():
            promised, dimension = int(name), int(numbers[0])
            continue
        if not name and not numbers:
            continue
        dimension = dimension or len(numbers)
        if len(numbers) != dimension or not numbers:
            raise DataError(
                f"{len(numbers)} numbers after {name[:20]!r}, expected {dimension or 'some'};"
                " each line needs a name and its numbers, with single spaces between",
                path,
                number,
            )
        names.append(name)
        rows.append(_numbers(numbers, path, number))
    if not rows:
        raise DataError("holds no vectors; each line needs a name and its numbers", path)
    if promised not in (None, len(rows)):
        raise DataError(
            f"the first line promises {promised:,} vectors, but {len(rows):,} follow; was it cut?", path
        )
    return Vectors(tuple(names), np.stack(rows))


def _numbers(fields: list[str], path: str | Path, line: int) -> NDArray[np.float32]:
    for text in fields:
        try:
            finite = np.isfinite(float(text))
        except ValueError:
            finite = False
        if not finite:
            raise DataError(f"{text[:20]!r} is not a finite number", path, line)
    return np.array(fields, np.float32)
