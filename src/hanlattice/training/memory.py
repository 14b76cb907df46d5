"""Freed memory kept for the next step."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST = 32 * 2**20  # that glibc takes for the second


def keep_freed_memory() -> None:
    """Let glibc keep the memory of freed tensors instead of giving it back after every step.

    A training step frees and asks for the same large blocks again and again; fresh ones have to be zeroed page
    by page by the system, about a sixth of the time of a step on CPUs. Elsewhere than on glibc nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_MMAP_THRESHOLD, _LARGEST)
