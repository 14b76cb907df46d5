"""Vectors by name, and the safetensors file that holds the vectors of characters, bigrams and words."""

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

from hanlattice.atomic import atomic_write
from hanlattice.errors import DataError
from hanlattice.files import read_lines

Precision = Literal["float16", "int8"]

KINDS = ("chars", "bigrams", "words")
HEADER = "hanlattice vectors"  # the only metadata key: safetensors would write several keys in no fixed order
VERSION = 1
DTYPES = {"U8": "|u1", "I8": "|i1", "F16": "<f2", "F32": "<f4"}
BLOCK = 1 << 20  # bytes of names in which line breaks are counted at once
DEFAULT = Path(__file__).parents[1] / "data" / "vectors.safetensors"


@dataclass(frozen=True, eq=False)
class Vectors:
    """Names and their vectors, the most frequent first. If a name occurs twice, its first vector counts.

    Args:
        names: the names.
        rows: the vectors as stored, float32, float16 or int8 ``[V D]``. Read them with ``matrix`` or ``at``.
        scale: for int8 rows, the factor of each row, float16 ``[V]``.

    Raises:
        DataError: the shapes do not fit together.
    """

    names: tuple[str, ...]
    rows: NDArray[Any]
    scale: NDArray[np.float16] | None = None

    def __post_init__(self) -> None:
        self._check(len(self.names))

    def _check(self, n: int) -> None:
        if self.rows.ndim != 2 or len(self.rows) != n:
            raise DataError(f"{n} names need as many rows of vectors, but the rows are {self.rows.shape}")
        if (self.rows.dtype == np.int8) != (self.scale is not None):
            raise DataError("rows of int8 need a scale, and other rows must not have one")

    @classmethod
    def from_text(cls, path: str | Path) -> "Vectors":
        """Read word2vec's text format: a name and its numbers on each line, with or without a header line.

        Raises:
            DataError: the file cannot be read, a line has the wrong length or something that is not a number, or
                the number of lines differs from the header.
        """
        return _read_text(path)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dimension(self) -> int:
        return self.rows.shape[1]

    @cached_property
    def matrix(self) -> NDArray[np.float32]:
        """The vectors, ``[V D]``. The array is shared: do not change it."""
        matrix = self.rows.astype(np.float32, copy=False)
        if self.scale is not None:
            matrix *= self.scale.astype(np.float32)[:, None]
        return matrix

    def at(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of the rows ``ids``, ``[N D]``; other rows are not read from the file."""
        vectors = self.rows[ids].astype(np.float32)
        return vectors if self.scale is None else vectors * self.scale[ids].astype(np.float32)[:, None]

    @cached_property
    def _index(self) -> dict[str, int]:
        # From the last name to the first, so that the first vector of a name counts.
        return dict(zip(reversed(self.names), range(len(self.names) - 1, -1, -1), strict=True))

    def ids(self, names: Iterable[str]) -> NDArray[np.int64]:
        """The row of each name, ``[N]``: that of the name itself, else of the name in lower case, else -1.

        fastNLP looks names up in the same order.
        """
        index = self._index
        found = (index[name] if name in index else index.get(name.lower(), -1) for name in names)
        return np.fromiter(found, np.int64)

    def top(self, n: int) -> "Vectors":
        """The vectors of the ``n`` most frequent names."""
        return Vectors(self.names[:n], self.rows[:n], None if self.scale is None else self.scale[:n])

    def to(self, precision: Precision) -> "Vectors":
        """The same vectors in half precision, or in int8 with one scale per row.

        Raises:
            DataError: a number is not finite, or is too large for the precision.
        """
        if self.rows.dtype == np.dtype(precision):
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            stored = _to_int8(self) if precision == "int8" else Vectors(self.names, self.matrix.astype(np.float16))
        finite = np.isfinite(stored.rows if stored.scale is None else stored.scale)
        if not finite.all():
            name = self.names[int(np.argwhere(~finite)[0, 0])]
            raise DataError(
                f"the vector of {name!r} has a number that {precision} cannot represent; remove or scale the vector"
            )
        return stored


class _Stored(Vectors):
    """Vectors in a file, mapped into memory: rows are read and names decoded only when they are used."""

    _blob: NDArray[np.uint8]
    _path: str | Path

    def __init__(
        self, blob: NDArray[np.uint8], rows: NDArray[Any], scale: NDArray[np.float16] | None, path: str | Path
    ):
        for name, value in (("_blob", blob), ("rows", rows), ("scale", scale), ("_path", path)):
            object.__setattr__(self, name, value)
        breaks = sum(int(np.count_nonzero(blob[i : i + BLOCK] == ord("\n"))) for i in range(0, len(blob), BLOCK))
        self._check(breaks + 1 if len(rows) else 0)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """
        Raises:
            DataError: the names are not UTF-8.
        """
        try:
            return tuple(self._blob.tobytes().decode().split("\n")) if len(self) else ()
        except UnicodeDecodeError as error:
            raise DataError(
                f"the names are broken: {error}; create or download the file again", self._path
            ) from None


@dataclass(frozen=True, eq=False)
class VectorSet:
    """Vectors of characters, of bigrams and of words.

    Args:
        chars: vectors of characters.
        bigrams: vectors of pairs of characters, ``ab``, and ``b<end>`` for the last character of a text.
        words: vectors of words.
        meta: how the vectors were made.
    """

    chars: Vectors
    bigrams: Vectors
    words: Vectors
    meta: Mapping[str, str] = field(default_factory=dict)

    def kinds(self) -> dict[str, Vectors]:
        """The vectors by kind: ``chars``, ``bigrams``, ``words``."""
        return {kind: getattr(self, kind) for kind in KINDS}

    def top(self, chars: int, bigrams: int, words: int) -> "VectorSet":
        """The vectors of the most frequent names of each kind."""
        return VectorSet(self.chars.top(chars), self.bigrams.top(bigrams), self.words.top(words), self.meta)

    @cached_property
    def digest(self) -> str:
        """A hash of the names and the stored vectors: sixteen hexadecimal digits."""
        digest = blake2b(digest_size=8)
        for vectors in self.kinds().values():
            for array in _tensors(vectors).values():
                digest.update(f"{array.dtype}{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def save(self, path: str | Path, precision: Precision = "float16") -> None:
        """Write a safetensors file, completely or not at all. Equal sets give equal files.

        Raises:
            DataError: the file cannot be written, or the vectors cannot be stored in this precision.
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
        """Open a file that ``save`` wrote. Vectors are mapped into memory and read when they are used.

        Raises:
            DataError: the file is missing or broken, or has another kind or version.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                meta = _meta(file.metadata(), path)
            tensors = _mapped(path)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        except SafetensorError as error:
            raise DataError(f"not a valid safetensors file ({error}); create or download it again", path) from None
        return cls(**{kind: _vectors(tensors, kind, path) for kind in KINDS}, meta=meta)


def default_vectors() -> VectorSet:
    """The vectors inside the package; ``VECTORS.md`` beside the file describes them.

    Raises:
        DataError: this installation does not contain the file.
    """
    if not DEFAULT.exists():
        raise DataError(
            "the packaged vectors are missing; reinstall hanlattice, or name your own file,"
            " made with: hanlattice vectors train",
            DEFAULT,
        )
    return VectorSet.load(DEFAULT)


def _to_int8(vectors: Vectors) -> Vectors:
    matrix = vectors.matrix
    scale = (np.abs(matrix).max(1, initial=0.0) / 127).astype(np.float16)
    divisor = np.where(scale > 0, scale, 1).astype(np.float32)[:, None]
    # The scale is rounded, so the largest number of a row may be a little over 127.
    return Vectors(vectors.names, np.rint(matrix / divisor).clip(-127, 127).astype(np.int8), scale)


def _tensors(vectors: Vectors) -> dict[str, NDArray[Any]]:
    blob = "\n".join(vectors.names)
    if blob.count("\n") > max(len(vectors) - 1, 0):
        raise DataError("a name with a line break cannot be stored; remove the name")
    tensors = {"names": np.frombuffer(blob.encode(), np.uint8), "rows": vectors.rows}
    return tensors if vectors.scale is None else {**tensors, "scale": vectors.scale}


def _mapped(path: str | Path) -> dict[str, NDArray[Any]]:
    """The tensors of a complete safetensors file, as views of the file."""
    data = np.memmap(path, np.uint8, "r").view(np.ndarray)
    begin = 8 + int(data[:8].view("<u8")[0])
    header = json.loads(data[8:begin].tobytes())
    return {
        name: np.ndarray(tensor["shape"], DTYPES[tensor["dtype"]], data, begin + tensor["data_offsets"][0])
        for name, tensor in header.items()
        if tensor.get("dtype") in DTYPES
    }


def _meta(metadata: Mapping[str, str] | None, path: str | Path) -> dict[str, str]:
    if not metadata or HEADER not in metadata:
        raise DataError("a safetensors file without vectors; create one with: hanlattice vectors train", path)
    try:
        header = json.loads(metadata[HEADER])
        version, meta = header["version"], dict(header["meta"])
    except (ValueError, KeyError, TypeError):
        raise DataError("the header is broken; create or download the file again", path) from None
    if version != VERSION:
        raise DataError(
            f"the vectors have version {version}, but this program reads version {VERSION}; create them again", path
        )
    return meta


def _vectors(tensors: Mapping[str, NDArray[Any]], kind: str, path: str | Path) -> Vectors:
    try:
        return _Stored(tensors[f"{kind}.names"], tensors[f"{kind}.rows"], tensors.get(f"{kind}.scale"), path)
    except KeyError as error:
        raise DataError(f"the tensor {error} is missing; create or download the file again", path) from None
    except DataError as error:
        raise DataError(f"the {kind} are broken: {error}; create or download the file again", path) from None


def _read_text(path: str | Path) -> Vectors:
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    announced = dimension = None
    for number, line in enumerate(read_lines(path), 1):
        name, *numbers = line.replace("\t", " ").rstrip(" ").split(" ")
        if number == 1 and len(numbers) == 1 and name.isdecimal() and numbers[0].isdecimal():
            announced, dimension = int(name), int(numbers[0])
            continue
        if not name and not numbers:
            continue
        dimension = dimension or len(numbers)
        if len(numbers) != dimension or not numbers:
            raise DataError(
                f"{len(numbers)} numbers after {name[:20]!r}, expected {dimension or 'some'};"
                " write a name and its numbers on each line, separated by single spaces",
                path,
                number,
            )
        names.append(name)
        rows.append(_numbers(numbers, path, number))
    if not rows:
        raise DataError("has no vectors; write a name and its numbers on each line", path)
    if announced not in (None, len(rows)):
        raise DataError(
            f"the header announces {announced:,} vectors, but the file has {len(rows):,}; it may be incomplete",
            path,
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
