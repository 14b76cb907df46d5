"""A warning for processors on which bfloat16 is slower than float32."""

import math
import time
from collections.abc import Callable

import torch
from torch.nn import functional

SLOW = 1.5  # from this ratio on, bfloat16 is reported as slow
SIZE, REPEATS = 256, 5


def bfloat16_slowdown(size: int = SIZE, repeats: int = REPEATS) -> float:
    """How many times longer a product of ``[size, size]`` matrices takes in bfloat16 than in float32.

    It is measured, because the processor's flags do not say whether torch uses its instructions. The shortest of
    several times counts, so that other processes hardly disturb it.
    """
    seconds = {}
    for kind in (torch.float32, torch.bfloat16):
        matrix = torch.ones(size, size, dtype=kind)
        functional.linear(matrix, matrix)  # the first call includes one-time work
        seconds[kind] = math.inf
        for _ in range(repeats):
            began = time.perf_counter()
            functional.linear(matrix, matrix)
            seconds[kind] = min(seconds[kind], time.perf_counter() - began)
    return seconds[torch.bfloat16] / seconds[torch.float32]


def warn_of_slow_bfloat16(setting: str, precision: str, device: str, say: Callable[[str], object]) -> None:
    """Print one line if a run computes in bfloat16 on a processor that is slower in it.

    Args:
        setting: the name of the option
        precision: its value
        device: where the run computes
        say: prints a message for the user
    """
    if precision != "bfloat16" or device != "cpu":
        return
    slowdown = bfloat16_slowdown()
    if slowdown >= SLOW:
        say(
            f"warning: this processor multiplies bfloat16 {slowdown:.2g} times slower than float32;"
            f" {setting} float32 is recommended here"
        )
