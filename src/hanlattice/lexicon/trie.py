"""A trie in a hash table, and the search for all of its words in a text.

A state of the trie *is* a slot of an open-addressing hash table. The slot has the key of the transition that leads
to it, ``parent << 21 | character``, so one look-up both checks a transition and finds the next state, and no states
have to be numbered when the table is built. The value beside the key has the word that ends in this state, and a
set of 32 bits: bit c is set if a character whose last five bits are c can follow. These bits avoid most failed
look-ups, each of which would be a cache miss in a large table::

    cell   key    parent state << 21 | character             0 if the slot is free
           value  32 bits of following characters | word id + 1   0 if no word ends here

If the slot of a key is taken, the key goes to another slot of the same cache line, and to the next line if this one
is full. So one memory access nearly always decides whether a key exists.

A search starts at every position of a text. All start positions advance together, one character in each round; a
position drops out when it has no transition. The C kernel advances a few dozen positions at a time. Without the
kernel, numpy advances all of them; for short texts plain Python (`Trie.walk`) is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL, Structure, byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from hanlattice.kernels.library import aligned_memory, kernels, pointer, pointers
from hanlattice.kernels.structs import MATCHES, TRIE
from hanlattice.lexicon.matches import Matches, joined, too_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    UInt64 = NDArray[np.uint64]

    from hanlattice.lexicon.matches import Int32, Int64
    from hanlattice.text.code_points import UInt32


CHARACTER_BITS = 21  # Unicode ends at 0x10FFFF
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: Fibonacci hashing
GOLDEN64, FULL = np.uint64(GOLDEN), (1 << 64) - 1
HALF = np.uint64(32)  # bits
FOLLOWING = np.uint32(31)  # mask of the last five bits of a character, the number of its bit in a value
SLOTS_PER_STATE = 2.5  # fewer need less memory, more have fewer collisions
LINE = 4  # slots in a cache line
# Largest number of cache lines searched for a key, as in trie.c. A table that needs more is built larger.
LINES = 64
WINDOW = 1 << 16  # start positions that numpy searches together: they fit uint16, for which numpy has a radix sort


class MatchesOfLength(NamedTuple):
    """Matches of one length: their starts, relative to the window, and their word ids."""

    length: int
    starts: NDArray[np.intp]
    words: Int32


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Trie:
    """An immutable trie; its arrays may be memory-mapped from a file that is damaged or malicious.

    Whatever the arrays contain, a search ends, stays inside them, and finds words ``0 <= word < n_ids``: states
    beyond the table count as missing, a key is searched in `LINES` cache lines, and matches have at most
    ``longest`` characters.

    ``cells [slots 2]`` are pairs of key and value, in whole cache lines. The root has no slot; as a parent it has
    the number ``slots``. ``first [largest first character + 2]`` maps a first character to its state, or to -1; the
    last entry is -1.
    """

    cells: UInt64
    first: Int32
    n_ids: int
    longest: int
    n_distinct: int | None = None  # if known since it was built

    @classmethod
    def build(cls, codes: UInt32, offsets: Int64) -> Trie:
        """The trie of the distinct, non-empty words ``codes[offsets[i]:offsets[i + 1]]``, built level by level."""
        return cls._of(codes, offsets, None, len(offsets) - 1)

    @classmethod
    def of_text(cls, codes: UInt32, offsets: Int64, text: UInt32) -> Trie:
        """A trie of those words that may occur in a text, with the same ids.

        It finds the same matches in this text as the trie of all words. Choosing the words takes a few nanoseconds
        per word, much less than building the trie of all.
        """
        ids = _chosen(codes, offsets, text)
        lengths = offsets[ids + 1] - offsets[ids]
        own = np.zeros(len(ids) + 1, np.int64)
        np.cumsum(lengths, out=own[1:])
        places = np.arange(own[-1]) + np.repeat(offsets[ids] - own[:-1], lengths)
        return cls._of(codes[places], own, ids, len(offsets) - 1)

    @classmethod
    def _of(cls, codes: UInt32, offsets: Int64, ids: Int32 | None, n_ids: int) -> Trie:
        lines = int(_count_states(codes, offsets) * SLOTS_PER_STATE / LINE) + 2
        while (built := cls._of_lines(lines, codes, offsets, ids, n_ids)) is None:
            lines *= 2
        return built

    @classmethod
    def _of_lines(cls, lines: int, codes: UInt32, offsets: Int64, ids: Int32 | None, n_ids: int) -> Trie | None:
        """The trie in a table with ``lines`` cache lines; None if a key has no free slot near its home."""
        try:
            return cls._filled(lines * LINE, codes, offsets, ids, n_ids)
        except _Crowded:
            return None

    @classmethod
    def _filled(cls, slots: int, codes: UInt32, offsets: Int64, ids: Int32 | None, n_ids: int) -> Trie:
        """The trie in a table with this number of slots.

        Raises:
            _Crowded: a key has no free slot near its home.
        """
        library = kernels()
        lengths = np.diff(offsets)
        cells = aligned_memory(16 * slots, zeros=True).view(np.uint64).reshape(slots, 2)
        if library is not None:
            first = np.full(int(codes[offsets[:-1]].max(initial=0)) + 2, -1, np.int32)
            codes, offsets = np.ascontiguousarray(codes), np.ascontiguousarray(offsets, np.int64)
            arrays = (pointer(first), pointer(codes), pointer(offsets))
            n = library.trie_build(pointer(cells), slots, *arrays, pointer(ids), len(lengths), LINES)
            if n < 0:
                raise _Crowded
            return cls(cells, first, n_ids, int(lengths.max(initial=0)), n)
        keys, values = cells.T
        # Slot 0 is reserved, so no state has the number 0, and no transition has the key 0, which marks a free
        # slot.
        keys[0] = 1
        states = np.full(len(lengths), slots, np.int64)
        words = np.arange(len(lengths))
        for depth in range(int(lengths.max(initial=0))):
            words = words[lengths[words] > depth]
            parents, characters = states[words], codes[offsets[words] + depth]
            if depth:
                _mark_following(values, parents, characters)
            reached = _insert(keys, _key(parents, characters))
            states[words] = reached
            ends = lengths[words] == depth + 1
            ended = words[ends] if ids is None else ids[words[ends]]
            values[reached[ends]] |= (ended + 1).astype(np.uint64)
        firsts = codes[offsets[:-1]]
        first = np.full(int(firsts.max(initial=0)) + 2, -1, np.int32)
        if len(firsts):
            used = np.unique(firsts)
            first[used] = _insert(keys, _key(np.full(len(used), slots), used))
        return cls(cells, first, n_ids, int(lengths.max(initial=0)))

    @property
    def n_words(self) -> int:
        """The number of distinct words."""
        if self.n_distinct is not None:
            return self.n_distinct
        return int(np.count_nonzero(self.cells[:, 1].astype(np.uint32)))

    def search(self, codes: UInt32, low: int, high: int, min_length: int, most: int) -> Matches:
        """Every word that starts in ``codes[low:high]``, ordered by (start, end).

        Args:
            codes: code points of a text, followed by a boundary.
            low: the first start position.
            high: the end of the start positions.
            min_length: the fewest characters of a match.
            most: the largest number of matches.

        Raises:
            DataError: there are more than ``most`` matches.
        """
        library = kernels()
        if library is not None:
            return self._by_kernel(library, codes, low, high, min_length, most)
        windows = [(start, min(start + WINDOW, high)) for start in range(low, max(high, low + 1), WINDOW)]
        return joined(
            [in_order(self._by_length(codes, *window, min_length, most), window[0]) for window in windows]
        )

    def for_kernels(self) -> Structure:
        """What the kernels read; it refers to the memory of this trie."""
        found = _STRUCTS.get(self)
        if found is None:
            table, first = (pointer(self.cells), len(self.cells)), (pointer(self.first), len(self.first))
            found = _STRUCTS[self] = TRIE(*table, *first, self.n_ids, self.longest)
        return found

    def _by_kernel(self, library: CDLL, codes: UInt32, low: int, high: int, min_length: int, most: int) -> Matches:
        trie = self.for_kernels()
        capacity, count = -1, 2 * (high - low)
        while capacity < count:  # if there are more matches than expected, search again with memory for all
            if capacity >= 0 and count > most:
                raise too_many(len(codes) - 1)
            capacity = count
            memory = np.empty((6, max(capacity, 1)), np.int32)
            rows = pointers(memory)
            count = library.trie_search(
                byref(trie),
                pointer(codes),
                low,
                high,
                min_length,
                most,
                capacity,
                byref(MATCHES(*rows[:3])),
                byref(MATCHES(*rows[3:])),
            )
        return Matches(*memory[3:, :count])

    def _by_length(self, codes: UInt32, low: int, high: int, min_length: int, most: int) -> list[MatchesOfLength]:
        """The matches that start in ``codes[low:high]``, grouped by length, the shortest first.

        Raises:
            DataError: there are more than ``most`` matches.
        """
        window = codes[low:high]
        reached = self.first.take(window, mode="clip")  # larger characters get the last entry, -1
        starts = np.flatnonzero((reached >= 0) & (reached < len(self.cells)))
        states = reached[starts].astype(np.int64)
        values = self._pairs.take(states).view(np.uint64)[1::2]
        by_length = []
        length = 1
        while len(starts) and length <= self.longest:
            if length >= min_length:
                words = self._words(values)
                ends = np.flatnonzero(words >= 0)
                if len(ends):
                    by_length.append(MatchesOfLength(length, starts[ends], words[ends]))
                    most -= len(ends)
                if most < 0:
                    raise too_many(len(codes) - 1)
            following = codes.take(starts + (low + length))
            can_follow = values >> ((following & FOLLOWING) + np.uint32(32)) & np.uint64(1)
            inner = np.flatnonzero((can_follow != 0) & (following != 0))
            starts = starts[inner]
            hits, states, values = self._probe(_key(states[inner], following[inner]))
            starts = starts[hits]
            length += 1
        return by_length

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
                home, probe = ((key * GOLDEN & FULL) >> 32) * slots >> 32, 0  # as _home
                state = home
                while (seen := cells[2 * state]) != key and seen and probe < LINES * LINE:
                    probe += 1
                    state = ((home & -LINE) + (probe & -LINE)) % slots | (home + probe) % LINE  # as _probed
                if seen != key:
                    break
                end += 1
        return found

    def find(self, codes: UInt32, offsets: Int64) -> Int32:
        """The id of each word ``codes[offsets[i]:offsets[i + 1]]``, or -1."""
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
        """The ids of the words in values of cells, or -1."""
        words = values.astype(np.uint32)
        return np.where(words <= self.n_ids, words, np.uint32(0)).astype(np.int32) - np.int32(1)

    @property
    def _pairs(self) -> NDArray[np.complex128]:
        """The cells as one contiguous array of 16-byte items, one for each pair of key and value.

        ``take`` would first copy a column of ``cells``, which is not contiguous. Complex numbers only serve as a
        type of 16 bytes.
        """
        return self.cells.view(np.complex128)[:, 0]

    def _probe(self, keys: UInt64) -> tuple[NDArray[np.intp], Int64, UInt64]:
        """The indices of the keys that exist, and for each of them its slot and its value."""
        pairs = self._pairs
        slots = _home(keys, len(pairs))
        cells = pairs.take(slots)
        seen = cells.view(np.uint64)[::2]
        hit = seen == keys
        open_ = np.flatnonzero(~hit & (seen != 0))
        homes, probe = slots.copy(), 0
        while len(open_) and probe < LINES * LINE:
            probe += 1
            slots[open_] = tried = _probed(homes[open_], probe, len(pairs))
            next_cells = pairs.take(tried)
            seen = next_cells.view(np.uint64)[::2]
            found = seen == keys[open_]
            reached = open_[found]
            hit[reached], cells[reached] = True, next_cells[found]
            open_ = open_[~found & (seen != 0)]
        hits = np.flatnonzero(hit)
        return hits, slots[hits], cells.view(np.uint64)[1::2].take(hits)


_STRUCTS: WeakKeyDictionary[Trie, Structure] = WeakKeyDictionary()
"""What ``trie.c`` reads of each trie, made by the first search."""


def in_order(pieces: Sequence[MatchesOfLength], low: int) -> Matches:
    """Matches by length, the shortest first, as one list ordered by (start, end)."""
    if not pieces:
        return Matches(*(np.empty(0, np.int32) for _ in Matches._fields))
    starts = np.concatenate([piece.starts for piece in pieces])
    words = np.concatenate([piece.words for piece in pieces])
    lengths = np.repeat([piece.length for piece in pieces], [len(piece.starts) for piece in pieces])
    order = np.argsort(starts.astype(np.uint16), kind="stable")
    starts = starts[order].astype(np.int32) + np.int32(low)
    return Matches(starts, starts + lengths[order].astype(np.int32), words[order])


def _key(states: Int64, characters: UInt32) -> UInt64:
    """The keys of the transitions from states by characters."""
    return (states << CHARACTER_BITS | characters).view(np.uint64)


def _home(keys: UInt64, slots: int) -> Int64:
    """The first slot to try for each key: the upper half of its hash, scaled to the table."""
    return ((keys * GOLDEN64 >> HALF) * np.uint64(slots) >> HALF).view(np.int64)


def _mark_following(values: UInt64, parents: Int64, characters: UInt32) -> None:
    """Set the bit of each character in the value of its parent.

    ``|=`` applies one update to a parent that occurs repeatedly, so each of the 32 bits is set separately.
    """
    bits = characters & FOLLOWING
    for bit in range(32):
        values[parents[bits == bit]] |= np.uint64(1 << (32 + bit))


def _probed(homes: Int64, probe: int, count: int) -> Int64:
    """The slot to try after ``probe`` others: all of the home's cache line, then all of the next line."""
    lines = ((homes & -LINE) + (probe & -LINE)) % count
    return lines | (homes + probe & LINE - 1)


class _Crowded(Exception):
    """A key has no free slot near its home."""


def _insert(table: UInt64, keys: UInt64) -> Int64:
    """Insert every key once and return the slot of each; equal keys try the same slots, so they get the same one.

    Raises:
        _Crowded: a key would be further from its home than a search goes.
    """
    homes = _home(keys, len(table))
    slots = homes.copy()
    open_ = np.arange(len(keys))
    probe = 0
    while len(open_):
        tried, wanted = slots[open_], keys[open_]
        free = table[tried] == 0
        table[tried[free]] = wanted[free]
        missed = table[tried] != wanted
        open_ = open_[missed]
        probe += 1
        if probe == LINES * LINE and len(open_):
            raise _Crowded
        slots[open_] = _probed(homes[open_], probe, len(table))
    return slots


def _count_states(codes: UInt32, offsets: Int64) -> int:
    """The number of distinct prefixes. It is a few percent too low, as prefixes with equal hashes count once."""
    n_marks = 16 * len(codes)
    library = kernels()
    if library is not None:
        marks = np.zeros(n_marks // 64 + 1, np.uint64)
        codes, offsets = np.ascontiguousarray(codes), np.ascontiguousarray(offsets, np.int64)
        return int(library.trie_count(pointer(codes), pointer(offsets), len(offsets) - 1, pointer(marks), n_marks))
    lengths = np.diff(offsets)
    words = np.arange(len(lengths))
    hashes = np.zeros(len(lengths), np.uint64)
    is_marked = np.zeros(n_marks, np.bool_)
    for depth in range(int(lengths.max(initial=0))):
        words = words[lengths[words] > depth]
        hashes[words] = (hashes[words] ^ codes[offsets[words] + depth]) * GOLDEN64
        hashes[words] ^= hashes[words] >> np.uint64(29)
        is_marked[_home(hashes[words], n_marks)] = True
    return int(np.count_nonzero(is_marked))


def _chosen(codes: UInt32, offsets: Int64, text: UInt32) -> Int32:
    """The words whose first two characters follow each other in a text, and those of one character of it.

    The kernel also chooses a few others.
    """
    library = kernels()
    n = len(offsets) - 1
    if library is not None:
        codes, text = np.ascontiguousarray(codes), np.ascontiguousarray(text)
        offsets = np.ascontiguousarray(offsets, np.int64)
        chosen = np.empty(n, np.int32)
        arguments = pointer(codes), pointer(offsets), n, pointer(text), len(text), pointer(chosen)
        return chosen[: library.trie_choose(*arguments)].copy()
    starts = offsets[:-1]
    second = np.where(np.diff(offsets) > 1, codes[np.minimum(starts + 1, len(codes) - 1)], 0)
    after = np.append(text[1:], np.uint32(0))
    wanted = np.concatenate([_pair(text, after), _pair(text, np.zeros_like(text))])
    return np.flatnonzero(np.isin(_pair(codes[starts], second), wanted)).astype(np.int32)


def _pair(first: UInt32, second: UInt32) -> Int64:
    """One number for two characters."""
    return first.astype(np.int64) << CHARACTER_BITS | second
