"""What glibc does with freed memory: keep it, or return it to the system. Without glibc nothing happens."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of glibc's mallopt
_LARGEST = 32 * 2**20  # the largest value of the second
_DEFAULT = 128 * 2**10  # its default, which glibc raises by itself


def keep_freed_memory() -> None:
    """For training: keep the memory of freed tensors in the process instead of returning it after every step.

    A training step frees and allocates the same large blocks again and again. The system has to zero new ones page
    by page, which takes about a sixth of the time of a step on CPUs.
    """
    _set(_TRIM_THRESHOLD, 2**31 - 1)
    _set(_MMAP_THRESHOLD, _LARGEST)


def return_freed_memory() -> None:
    """For long-running inference: return the memory of a large array to the system when it is freed.

    By default glibc takes large arrays from its heap once the first of them was freed. Batches of different sizes
    then leave holes between small blocks in use, and memory grows for hours although nothing leaks.
    """
    _set(_MMAP_THRESHOLD, _DEFAULT)


def _set(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(option, value)
