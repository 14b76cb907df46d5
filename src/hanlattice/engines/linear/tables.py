"""The tables of a linear tagger: its features, their weights, and how they are stored.

A feature is a key of 64 bits: a character n-gram, the types of neighbouring characters, or the lexicon words around
a character. ``kernels/linear.c`` describes keys, and the columns in which the tags are. Weights are int8. A file
has only those that are not 0, with one bit for each column of a row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hanlattice.errors import ModelError
from hanlattice.kernels.library import aligned_memory, pointer, require_kernels
from hanlattice.kernels.structs import LINEAR_MODEL
from hanlattice.text.code_points import code_points
from hanlattice.text.tidy import is_blank

if TYPE_CHECKING:
    from jaxtyping import Float, Int, Shaped, UInt

    Weights = Mapping[str, Shaped[np.ndarray, "*S"]]

VERSION = 1
SMALLEST = 2  # smaller weights are stored as 0
GROUPS = 4  # of columns: O and single, begin, inside, end
NEVER = -(1 << 28)  # the score of a transition that is not allowed
LARGEST = 1 << 15  # the largest score of a transition, and the limit of its negative
MOST_CHARS = 0xF000  # character ids that fit into a key
LONGEST_GRAM, WIDEST = 4, 3  # the longest n-gram and the widest window that keys and masks have space for
N_TYPE_FEATURES = (1 << 15) + (1 << 9)  # of five and of three neighbouring characters
HASH = np.dtype([("key", np.uint64), ("row", np.uint32), ("mask", np.uint32)])


def lanes_of(n_labels: int) -> int:
    """Columns of each group of tags: one for each label and one more, rounded up to a multiple of 8."""
    return -(-(n_labels + 1) // 8) * 8


def types_of(chars: Sequence[str]) -> UInt[np.ndarray, V]:
    """The type of each character id: of padding, of unknown characters, and of the characters of a vocabulary."""
    codes = code_points("".join(chars))
    types = np.ones(len(codes) + 2, np.uint8)  # 1: Chinese or unknown
    types[0] = 7  # padding
    is_chinese = ((codes >= 0x3400) & (codes <= 0x9FFF)) | (codes >= 0x20000)
    for i in np.flatnonzero(~is_chinese).tolist():
        types[i + 2] = _type(chars[i])
    return types


def _type(character: str) -> int:
    """2 digit, 3 capital, 4 other letter of an alphabet, 5 blank, 6 opening or closing mark, 7 other."""
    if character.isdigit():
        return 2
    if character.isupper():
        return 3
    if character.isalpha():
        return 4
    if is_blank(character):
        return 5
    return 6 if character in "《》〈〉「」『』“”‘’\"'()（）[]【】<>" else 7


@dataclass(frozen=True, eq=False)
class Transitions:
    """Scores of transitions, int32 multiples of the scale; columns as in ``kernels/linear.c``.

    ``fresh [2 lanes, 2 lanes]`` leads from O, single and end to O, single and begin. ``inner [4 lanes]`` leads from
    begin to inside, from inside to inside, from begin to end and from inside to end. ``first`` and ``last`` are
    ``[2 lanes]``.
    """

    fresh: Int[np.ndarray, "F F"]
    inner: Int[np.ndarray, "4 W"]
    first: Int[np.ndarray, F]
    last: Int[np.ndarray, F]


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of a linear tagger.

    Attributes:
        window: characters before and after a character whose n-grams count for it.
        longest: characters of the longest n-gram.
        keys: ``[P]`` of features, sorted; with an n-gram there are its prefixes.
        masks: ``[P]``, one bit for each position that an n-gram has a row for; other features have one bit.
        rows: ``[R 4*lanes]``, one for each bit of the masks.
        transitions: between tags.
        scale: a score is an integer times this number.
    """

    window: int
    longest: int
    keys: UInt[np.ndarray, P]
    masks: UInt[np.ndarray, P]
    rows: Int[np.ndarray, "R C"]
    transitions: Transitions
    scale: float


def allowed(lanes: int, n_labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Which transitions exist, in the layout of :class:`Transitions`."""
    lane = np.arange(lanes)
    label = (lane >= 1) & (lane <= n_labels)
    closed, fresh = np.concatenate([lane <= n_labels, label]), np.concatenate([lane <= n_labels, label])
    return closed[:, None] & fresh, np.broadcast_to(label, (GROUPS, lanes)).copy(), fresh, closed


def prefix_of(convention: str) -> str:
    """The prefix of the weights of a convention; an empty convention is the default one."""
    return f"conventions.{convention}.linear." if convention else "linear."


def stored(tables: Tables, convention: str = "") -> dict[str, Shaped[np.ndarray, "*S"]]:
    """Arrays to write to a file; an empty convention is the default one."""
    prefix = prefix_of(convention)
    used = tables.rows != 0
    t = tables.transitions
    return {
        f"{prefix}version": np.array([VERSION], np.int32),
        f"{prefix}shape": np.array([tables.window, tables.longest, tables.rows.shape[1] // GROUPS], np.int32),
        f"{prefix}scale": np.array([tables.scale], np.float32),
        f"{prefix}keys": tables.keys,
        f"{prefix}masks": tables.masks,
        f"{prefix}columns": np.packbits(used, 1, bitorder="little"),
        f"{prefix}weights": tables.rows[used],
        f"{prefix}fresh": t.fresh,
        f"{prefix}inner": t.inner,
        f"{prefix}first": t.first,
        f"{prefix}last": t.last,
    }


def restored(weights: Weights, n_labels: int, convention: str = "") -> Tables:
    """The tables of a convention, of arrays that were read from a file.

    They are checked, so that wrong contents lead to wrong entities at worst.

    Raises:
        ModelError: the arrays are of another version, or do not fit each other or the labels.
        EngineError: the kernels are not compiled, or do not support this processor.
    """
    prefix = prefix_of(convention)
    version = weights.get(f"{prefix}version")
    if version is None or version.shape != (1,) or version.dtype != np.int32 or version[0] != VERSION:
        raise ModelError("the weights of a linear tagger of another version; train or download the model again")
    lanes = lanes_of(n_labels)
    found = _arrays(weights, prefix, lanes)
    window, longest, stored_lanes = found["shape"].tolist()
    scale = float(found["scale"][0])
    sizes_fit = stored_lanes == lanes and 1 <= window <= WIDEST and 1 <= longest <= LONGEST_GRAM
    if not (sizes_fit and np.isfinite(scale) and 0 < scale < 1e3):
        raise ModelError(f"the weights of the linear tagger are broken ({prefix}shape or {prefix}scale)")
    keys, masks, n_rows = found["keys"], found["masks"], len(found["columns"])
    if len(keys) and (keys[0] == 0 or bool((keys[1:] <= keys[:-1]).any())):
        raise ModelError(f"the weights of the linear tagger are broken ({prefix}keys are not sorted)")
    if int(np.bitwise_count(masks).sum()) != n_rows or n_rows >= 2**31:
        raise ModelError(f"the weights of the linear tagger are broken ({prefix}masks do not fit {prefix}columns)")
    rows = aligned_memory(n_rows * GROUPS * lanes).view(np.int8).reshape(n_rows, GROUPS * lanes)
    columns, kept = (np.ascontiguousarray(found[name]) for name in ("columns", "weights"))
    n = require_kernels().linear_rows(pointer(columns), columns.size, pointer(kept), len(kept), pointer(rows))
    if n != len(kept):
        raise ModelError(
            f"the weights of the linear tagger are broken ({prefix}columns do not fit {prefix}weights)"
        )
    return Tables(window, longest, keys, masks, rows, _limited(found, lanes, n_labels), scale)


def _arrays(weights: Weights, prefix: str, lanes: int) -> dict[str, Any]:
    """The arrays of a convention, of the types and shapes that they have to have.

    Raises:
        ModelError: an array is missing, or has another type or shape.
    """
    n = {name: weights.get(f"{prefix}{name}", np.zeros(1)).shape[:1] for name in ("keys", "columns", "weights")}
    shapes: dict[str, tuple[tuple[int, ...], type]] = {
        "shape": ((3,), np.int32),
        "scale": ((1,), np.float32),
        "keys": (n["keys"] or (0,), np.uint64),
        "masks": (n["keys"] or (0,), np.uint8),
        "columns": ((*n["columns"], GROUPS * lanes // 8), np.uint8),
        "weights": (n["weights"] or (0,), np.int8),
        "fresh": ((2 * lanes, 2 * lanes), np.int32),
        "inner": ((GROUPS, lanes), np.int32),
        "first": ((2 * lanes,), np.int32),
        "last": ((2 * lanes,), np.int32),
    }
    found: dict[str, Any] = {}
    for name, (shape, kind) in shapes.items():
        array = weights.get(f"{prefix}{name}")
        if array is None or array.shape != shape or array.dtype != kind:
            problem = "is missing" if array is None else f"is {array.dtype} {list(array.shape)}"
            raise ModelError(f"the weights of the linear tagger are broken ({prefix}{name} {problem})")
        found[name] = array
    return found


def _limited(found: Mapping[str, Int[np.ndarray, "*S"]], lanes: int, n_labels: int) -> Transitions:
    """The transitions, within limits that no sum exceeds, and without those that do not exist."""
    parts = (found[name] for name in ("fresh", "inner", "first", "last"))
    return Transitions(
        *(
            np.where(exists, part.clip(-LARGEST, LARGEST), NEVER).astype(np.int32)
            for part, exists in zip(parts, allowed(lanes, n_labels), strict=True)
        )
    )


class Native:
    """Tables in the form that the kernels read; it keeps their memory alive.

    Args:
        tables: the tables.
        types: the type of each character id.
        n_kinds: the number of kinds of words, as the reader numbers them.
        n_labels: the number of labels.
        library: the compiled kernels.
    """

    def __init__(self, tables: Tables, types: UInt[np.ndarray, V], n_kinds: int, n_labels: int, library: Any):
        slots = 1 << max(4, int(2 * len(tables.keys) - 1).bit_length())
        entries = np.empty(slots, HASH)
        kept = [np.ascontiguousarray(x) for x in (tables.keys, tables.masks, tables.rows)]
        t = tables.transitions
        kept += [np.ascontiguousarray(x) for x in (t.fresh, t.inner, t.first, t.last)]
        library.linear_index(pointer(entries), slots, len(tables.keys), pointer(kept[0]), pointer(kept[1]))
        library.linear_follow(pointer(entries), slots, len(tables.keys), pointer(kept[0]))
        self._kept = [entries, types, *kept]
        self.struct = LINEAR_MODEL(
            *(lanes_of(n_labels), n_labels, len(types), n_kinds, tables.window, tables.longest),
            *(pointer(types), pointer(entries), slots, len(tables.rows), pointer(kept[2])),
            *map(pointer, kept[3:]),
            tables.scale,
            None,
            1,
        )
        of_types = np.empty(N_TYPE_FEATURES, np.int32)
        library.linear_types(self.address, pointer(of_types))
        self.struct.of_types = pointer(of_types)
        self._kept.append(of_types)

    @property
    def address(self) -> Any:
        """The address of the structure."""
        return ctypes.byref(self.struct)


def columns_of_tags(tags: Sequence[str], labels: Sequence[str], lanes: int) -> Int[np.ndarray, N]:
    """The column of each tag in the scheme BMES."""
    group = {"S": 0, "B": 1, "M": 2, "E": 3}
    number = {label: i for i, label in enumerate(labels, 1)}
    return np.array([0 if tag == "O" else group[tag[0]] * lanes + number[tag[2:]] for tag in tags], np.int64)


def quantised(
    rows: Float[np.ndarray, "R C"], small: Float[np.ndarray, K], n_labels: int
) -> tuple[Int[np.ndarray, "R C"], Transitions, float]:
    """Rows as int8, transitions as int32, and the scale that both share.

    ``small`` has the transitions one after another. Weights beyond 127 times the scale are cut; the scale is the
    smallest for which less than a weight in 100,000 is cut. Weights below `SMALLEST` times the scale become 0.
    """
    lanes = rows.shape[1] // GROUPS
    large = np.abs(rows).ravel()
    n_cut = len(large) // 100_000
    limit = float(np.partition(large, len(large) - 1 - n_cut)[len(large) - 1 - n_cut]) if len(large) else 1.0
    scale = float(np.float32(max(limit, 1e-3) / 127))
    small = np.round(small / scale).clip(-LARGEST, LARGEST).astype(np.int32)
    a, b = 4 * lanes * lanes, 4 * lanes * lanes + 4 * lanes
    parts = {"fresh": small[:a].reshape(2 * lanes, -1), "inner": small[a:b].reshape(4, -1)}
    parts |= {"first": small[b : b + 2 * lanes], "last": small[b + 2 * lanes :]}
    limited = _limited(parts, lanes, n_labels)
    whole = np.round(rows / scale).clip(-127, 127).astype(np.int8)
    whole[np.abs(whole) < SMALLEST] = 0
    return whole, limited, scale
