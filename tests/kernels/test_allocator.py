"""Memory that is given back: a process that reads without end stays as large as it is."""

import os
import subprocess
import sys

import pytest

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
