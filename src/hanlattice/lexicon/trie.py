"""A trie in one hash table, and the lock-step search for every word of it in a text.

A state of the trie *is* its slot in an open-addressing table, and the slot holds the key it was reached by,
``parent << 21 | character``. One gather therefore both checks a transition and names the next state,
and nothing has to be numbered or sorted to build it. Beside the key, in the same line of the cache, is what to do
there: the word that ends, and which characters may go on, told by the last five bits of their codes. Those bits
spare most of the looks into the table that find nothing, each of which is a miss of the cache where it is large.
A key whose slot is taken goes to another one in the same line of the cache, and only where that is full to the next
line: so one fetch from memory tells nearly always whether a key is there.

The start positions of a text advance side by side; those that fall off the trie drop out: by a kernel in C
a few dozen at a time, and where there is none by numpy, all at once, one character a round. Without the kernel a
short text is walked in plain Python, which is quicker there.
"""

from collections.abc import Sequence
from ctypes import CDLL, byref
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hanlattice.kernels.library import kernels, pointer
from hanlattice.kernels.structs import MATCHES, TRIE
from hanlattice.lexicon.matches import Int32, Int64, Matches, joined, too_many
from hanlattice.text.code_points import UInt32

UInt64 = NDArray[np.uint64]

CHARACTER_BITS = 21  # Unicode ends at 0x10FFFF
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: Fibonacci hashing
GOLDEN64, FULL = np.uint64(GOLDEN), (1 << 64) - 1
HALF = np.uint64(32)  # bits
FURTHER = np.uint32(31)  # the bits of a character that tell whether it may go on
SLOTS_PER_STATE = 2.5  # fewer save memory, more save a second look where two keys want one slot
LINE = 4  # slots in a line of the cache
LINES = 64  # that a key is looked for in, at most: as in trie.c; a table where one lies further on is not built
WINDOW = 1 << 16  # start positions that numpy searches together: they fit uint16 (radix sort) and the cache


class Piece(NamedTuple):
    """Matches of one length: where they start (relative to the window) and which word each one is."""

    length: int
    starts: NDArray[np.intp]
    words: Int32


@dataclass(frozen=True, slots=True, eq=False)
class Trie:
    """Immutable arrays; they may be memory-mapped and shared, and hold what anyone wrote into a file.

    Whatever they hold, a search ends and stays inside them, and finds words ``0 <= word < n_ids``: states beyond
    the table are none, a key is looked for in `LINES` lines, and no word has more than ``longest`` characters.

    ``cells [slots 2]``, whole lines of them: the transition that leads to each slot, 0 where the slot is free, and
    ``further << 32 | word + 1``, where bit ``c`` of ``further`` tells that characters ending with ``c`` may go on.
    The root has no slot; as a parent it is the number after the last one.
    ``first [largest first character + 2]``: the state after a first character, or -1; the last entry is -1.
    """

    cells: UInt64
    first: Int32
    n_ids: int
    longest: int

    @classmethod
    def build(cls, codes: UInt32, offsets: Int64) -> "Trie":
        """The trie of the distinct, non-empty words ``codes[offsets[i]:offsets[i + 1]]``, level by level."""
        lines = int(_count_states(codes, offsets) * SLOTS_PER_STATE / LINE) + 2
        while (built := cls._of_lines(lines, codes, offsets)) is None:
            lines *= 2
        return built

    @classmethod
    def _of_lines(cls, lines: int, codes: UInt32, offsets: Int64) -> "Trie | None":
        """In a table of so many lines, unless keys crowd together in it."""
        try:
            return cls._filled(lines * LINE, codes, offsets)
        except _Crowded:
            return None

    @classmethod
    def _filled(cls, slots: int, codes: UInt32, offsets: Int64) -> "Trie":
        lengths = np.diff(offsets)
        cells = _lines_of_zeros(slots)
        keys, values = cells.T
        keys[0] = 1  # taken, so that no state is 0, and no transition has the key 0 of a free slot
        states = np.full(len(lengths), slots, np.int64)
        words = np.arange(len(lengths))
        for depth in range(int(lengths.max(initial=0))):
            words = words[lengths[words] > depth]
            parents, characters = states[words], codes[offsets[words] + depth]
            if depth:
                _mark_further(values, parents, characters)
            reached = _insert(keys, _key(parents, characters))
            states[words] = reached
            ends = lengths[words] == depth + 1
            values[reached[ends]] |= (words[ends] + 1).astype(np.uint64)
        firsts = codes[offsets[:-1]]
        first = np.full(int(firsts.max(initial=0)) + 2, -1, np.int32)
        if len(firsts):
            used = np.unique(firsts)
            first[used] = _insert(keys, _key(np.full(len(used), slots), used))
        return cls(cells, first, len(lengths), int(lengths.max(initial=0)))

    @property
    def n_words(self) -> int:
        """How many distinct words there are."""
        return int(np.count_nonzero(self.cells[:, 1].astype(np.uint32)))

    def search(self, codes: UInt32, low: int, high: int, min_length: int, most: int) -> Matches:
        """Every word from ``codes[low:high]`` on, ordered by (start, end); ``codes`` ends with a boundary.

        Raises:
            DataError: there are more than ``most``.
        """
        library = kernels()
        if library is not None:
            return self._by_kernel(library, codes, low, high, min_length, most)
        windows = [(start, min(start + WINDOW, high)) for start in range(low, max(high, low + 1), WINDOW)]
        return joined([in_order(self._pieces(codes, *window, min_length, most), window[0]) for window in windows])

    def _by_kernel(self, library: CDLL, codes: UInt32, low: int, high: int, min_length: int, most: int) -> Matches:
        trie = TRIE(
            pointer(self.cells), len(self.cells), pointer(self.first), len(self.first), self.n_ids, self.longest
        )
        room, count = -1, 2 * (high - low)
        while room < count:  # there were more than expected: again, with room for all
            if room >= 0 and count > most:
                raise too_many(len(codes) - 1)
            room = count
            met, found = np.empty((3, room), np.int32), np.empty((3, room), np.int32)
            count = library.trie_search(
                byref(trie),
                pointer(codes),
                low,
                high,
                min_length,
                most,
                room,
                byref(MATCHES(*map(pointer, met))),
                byref(MATCHES(*map(pointer, found))),
            )
        return Matches(*found[:, :count])

    def _pieces(self, codes: UInt32, low: int, high: int, min_length: int, most: int) -> list[Piece]:
        """A piece a length.

        Raises:
            DataError: they hold more than ``most`` matches.
        """
        window = codes[low:high]
        reached = self.first.take(window, mode="clip")  # larger characters read the last entry, -1
        starts = np.flatnonzero((reached >= 0) & (reached < len(self.cells)))
        states = reached[starts].astype(np.int64)
        values = self._whole.take(states).view(np.uint64)[1::2]
        pieces = []
        length = 1
        while len(starts) and length <= self.longest:
            if length >= min_length:
                words = self._words(values)
                ends = np.flatnonzero(words >= 0)
                if len(ends):
                    pieces.append(Piece(length, starts[ends], words[ends]))
                    most -= len(ends)
                if most < 0:
                    raise too_many(len(codes) - 1)
            following = codes.take(starts + (low + length))
            may_go_on = values >> ((following & FURTHER) + np.uint32(32)) & np.uint64(1)
            inner = np.flatnonzero((may_go_on != 0) & (following != 0))
            starts = starts[inner]
            hits, states, values = self._probe(_key(states[inner], following[inner]))
            starts = starts[hits]
            length += 1
        return pieces

    def walk(self, codes: Sequence[int], min_length: int = 1) -> list[tuple[int, int, int]]:
        """Every word in the code points of a short text, as (start, end, word) in this order."""
        cells, first, slots = self.cells.reshape(-1).data, self.first.data, len(self.cells)
        n_ids, longest = self.n_ids, self.longest
        found = []
        for start, code in enumerate(codes):
            if code >= len(first) or not 0 <= (state := first[code]) < slots:
                continue
            end = start + 1
            while True:
                value = cells[2 * state + 1]
                if 0 < (word := value & 0xFFFFFFFF) <= n_ids and end - start >= min_length:
                    found.append((start, end, word - 1))
                if end == len(codes) or end - start >= longest or not codes[end]:
                    break
                if not value >> ((codes[end] & 31) + 32) & 1:
                    break
                key = state << CHARACTER_BITS | codes[end]
                home, look = ((key * GOLDEN & FULL) >> 32) * slots >> 32, 0  # as _home
                state = home
                while (seen := cells[2 * state]) != key and seen and look < LINES * LINE:
                    look += 1
                    state = ((home & -LINE) + (look & -LINE)) % slots | (home + look) % LINE  # as _place
                if seen != key:
                    break
                end += 1
        return found

    def find(self, codes: UInt32, offsets: Int64) -> Int32:
        """Number of each whole word ``codes[offsets[i]:offsets[i + 1]]``, or -1."""
        lengths = np.diff(offsets)
        found = np.full(len(lengths), -1, np.int32)
        words = np.flatnonzero(lengths > 0)
        states = np.full(len(words), len(self.cells), np.int64)
        depth = 0
        while len(words):
            hits, states, values = self._probe(_key(states, codes[offsets[words] + depth]))
            words = words[hits]
            depth += 1
            ends = lengths[words] == depth
            found[words[ends]] = self._words(values[ends])
            words, states = words[~ends], states[~ends]
        return found

    def _words(self, values: UInt64) -> Int32:
        """The words that end there, or -1."""
        words = values.astype(np.uint32)
        return np.where(words <= self.n_ids, words, np.uint32(0)).astype(np.int32) - np.int32(1)

    @property
    def _whole(self) -> NDArray[np.complex128]:
        """The cells as things to fetch in one piece; no array with gaps can be taken from without being copied."""
        return self.cells.view(np.complex128)[:, 0]

    def _probe(self, keys: UInt64) -> tuple[NDArray[np.intp], Int64, UInt64]:
        """The indices of the keys that are there, and for each of them its slot and the value in it."""
        whole = self._whole
        slots = _home(keys, len(whole))
        cells = whole.take(slots)
        seen = cells.view(np.uint64)[::2]
        hit = seen == keys
        open_ = np.flatnonzero(~hit & (seen != 0))
        homes, look = slots.copy(), 0
        while len(open_) and look < LINES * LINE:
            look += 1
            slots[open_] = tried = _place(homes[open_], look, len(whole))
            next_cells = whole.take(tried)
            seen = next_cells.view(np.uint64)[::2]
            found = seen == keys[open_]
            reached = open_[found]
            hit[reached], cells[reached] = True, next_cells[found]
            open_ = open_[~found & (seen != 0)]
        hits = np.flatnonzero(hit)
        return hits, slots[hits], cells.view(np.uint64)[1::2].take(hits)


def in_order(pieces: Sequence[Piece], low: int) -> Matches:
    """The matches of pieces, which come shortest first, ordered by (start, end)."""
    if not pieces:
        return Matches(*(np.empty(0, np.int32) for _ in Matches._fields))
    starts = np.concatenate([piece.starts for piece in pieces])
    words = np.concatenate([piece.words for piece in pieces])
    lengths = np.repeat([piece.length for piece in pieces], [len(piece.starts) for piece in pieces])
    order = np.argsort(starts.astype(np.uint16), kind="stable")
    starts = starts[order].astype(np.int32) + np.int32(low)
    return Matches(starts, starts + lengths[order].astype(np.int32), words[order])


def _lines_of_zeros(slots: int) -> UInt64:
    """``[slots 2]``, beginning with a line of the cache."""
    size = 16 * slots
    memory = np.zeros(size + 16 * LINE, np.uint8)
    start = -memory.ctypes.data % (16 * LINE)
    return memory[start : start + size].view(np.uint64).reshape(slots, 2)


def _key(states: Int64, characters: UInt32) -> UInt64:
    return (states << CHARACTER_BITS | characters).view(np.uint64)


def _home(keys: UInt64, slots: int) -> Int64:
    """The preferred slot of each key: the high half of its hash, scaled to the table."""
    return ((keys * GOLDEN64 >> HALF) * np.uint64(slots) >> HALF).view(np.int64)


def _mark_further(values: UInt64, parents: Int64, characters: UInt32) -> None:
    """One bit after the other: what is set twice by one statement is set."""
    bits = characters & FURTHER
    for bit in range(32):
        values[parents[bits == bit]] |= np.uint64(1 << (32 + bit))


def _place(homes: Int64, look: int, count: int) -> Int64:
    """Where a key is looked for after ``look`` other places: around the line of its home, then around the next."""
    lines = ((homes & -LINE) + (look & -LINE)) % count
    return lines | (homes + look & LINE - 1)


class _Crowded(Exception):
    """A key does not come to lie near its home."""


def _insert(table: UInt64, keys: UInt64) -> Int64:
    """Put every key in the table once, and return its slot: equal keys probe alike, so they meet.

    Raises:
        _Crowded: one would lie further from its home than a search goes.
    """
    homes = _home(keys, len(table))
    slots = homes.copy()
    open_ = np.arange(len(keys))
    look = 0
    while len(open_):
        tried, wanted = slots[open_], keys[open_]
        free = table[tried] == 0
        table[tried[free]] = wanted[free]
        missed = table[tried] != wanted
        open_ = open_[missed]
        look += 1
        if look == LINES * LINE and len(open_):
            raise _Crowded
        slots[open_] = _place(homes[open_], look, len(table))
    return slots


def _count_states(codes: UInt32, offsets: Int64) -> int:
    """Number of distinct prefixes, a few in a hundred too low: marks in a table that collide count once."""
    lengths = np.diff(offsets)
    words = np.arange(len(lengths))
    hashes = np.zeros(len(lengths), np.uint64)
    marks = np.zeros(16 * len(codes), np.bool_)
    for depth in range(int(lengths.max(initial=0))):
        words = words[lengths[words] > depth]
        hashes[words] = (hashes[words] ^ codes[offsets[words] + depth]) * GOLDEN64
        hashes[words] ^= hashes[words] >> np.uint64(29)
        marks[_home(hashes[words], len(marks))] = True
    return int(np.count_nonzero(marks))
