"""Memory that is given back: a process that reads without end stays as large as it is."""

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from hanlattice.kernels.allocator import keep_freed_memory, return_freed_memory

# Large arrays are freed, and small ones that came after them stay: the heap keeps all memory before these.
READING = """
import numpy as np
from pathlib import Path
from hanlattice.kernels.allocator import return_freed_memory
{call}
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * {page}
np.ones(2**22, np.uint8)  # freed at once: from now on the heap would do
before = resident()
large = [np.ones(2**20, np.uint8) for _ in range(50)]
small = [np.ones(2**16, np.uint8) for _ in range(20)]  # the first ones fill holes that importing left
del large
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and glibc are Linux's")
def test_large_arrays_leave_nothing_behind_small_ones() -> None:
    def grown(call: str) -> int:
        program = READING.format(call=call, page=os.sysconf("SC_PAGE_SIZE"))
        return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)

    by_itself, returned = grown(""), grown("return_freed_memory()")
    assert by_itself > 40 * 2**20
    assert returned < 4 * 2**20


# Blocks that glibc takes from the system one by one, unless it is told to keep those of this size.
KEEPING = """
import numpy as np
from pathlib import Path
from hanlattice.kernels.allocator import keep_freed_memory
{call}
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * {page}
before = resident()
large = [np.ones(2**24, np.uint8) for _ in range(4)]
del large
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and glibc are Linux's")
def test_the_memory_of_freed_blocks_is_kept_for_the_next_step() -> None:
    def kept(call: str) -> int:
        program = KEEPING.format(call=call, page=os.sysconf("SC_PAGE_SIZE"))
        return int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)

    assert kept("") < 20 * 2**20
    assert kept("keep_freed_memory()") > 40 * 2**20


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


@pytest.mark.parametrize(
    ("system", "has_glibc", "expected"),
    [
        ("linux", True, [(TRIM_THRESHOLD, 2147483647), (MMAP_THRESHOLD, 33554432), (MMAP_THRESHOLD, 131072)]),
        ("linux", False, []),
        ("darwin", True, []),
    ],
)
def test_parameters_of_glibc(
    system: str, has_glibc: bool, expected: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_to: list[tuple[int, int]] = []
    library = SimpleNamespace(**({"mallopt": lambda *pair: set_to.append(pair)} if has_glibc else {}))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(sys, "platform", system)
    keep_freed_memory()
    return_freed_memory()
    assert set_to == expected
