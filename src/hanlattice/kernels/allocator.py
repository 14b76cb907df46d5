"""What glibc does with freed memory: keep it for the next step, or give it back. Elsewhere nothing happens."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST = 32 * 2**20  # that glibc takes for the second
_USUAL = 128 * 2**10  # that glibc begins with, and by itself raises


def keep_freed_memory() -> None:
    """For training: freed tensors stay with the process instead of being given back after every step.

    A training step frees and asks for the same large blocks again and again; fresh ones have to be zeroed page
    by page by the system, about a sixth of the time of a step on CPUs.
    """
    _set(_TRIM_THRESHOLD, 2**31 - 1)
    _set(_MMAP_THRESHOLD, _LARGEST)


def return_freed_memory() -> None:
    """For reading without end: a large array is a mapping of its own, given back when it is freed.

    By itself glibc begins to take large arrays from its heap once the first of them was freed. Batches of all sizes
    then leave holes between small blocks in use, and memory grows for hours although nothing is kept.
    """
    _set(_MMAP_THRESHOLD, _USUAL)


def _set(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(option, value)
