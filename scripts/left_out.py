"""Texts that no step of the recipes reads: held-out texts, and texts that a corpus for evaluation shares.

`hanlattice pretrain --held-out` reads this file too: its class ``HeldOut`` finds the data by ``HANLATTICE_DATA``
and the corpora by ``OPEN_CORPORA``.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from hanlattice import corpus
from hanlattice.training.held_out import IsHeldOut, load_held_out

LENGTH = 13  # characters that two texts share, without white space


def runs(text: str) -> set[str]:
    """All substrings of ``LENGTH`` characters, or the whole text if it is shorter; without white space."""
    plain = re.sub(r"\s", "", text)
    return {plain[i : i + LENGTH] for i in range(len(plain) - LENGTH + 1)} or {plain}


def left_out(held_out: Path | None, aside: Iterable[Path] = ()) -> IsHeldOut:
    """Whether a text is left out.

    Args:
        held_out: Python file with a class ``HeldOut``.
        aside: corpora; a text that shares 13 consecutive characters with one of their documents is left out.

    Raises:
        ConfigError: see :func:`hanlattice.training.held_out.load_held_out`.
        DataError: a corpus cannot be read.
    """
    is_held_out = load_held_out(held_out) if held_out else lambda text: False
    shared = {run for path in aside for document in corpus.read(path) for run in runs(document.text)} - {""}
    return lambda text: is_held_out(text) or not shared.isdisjoint(runs(text))


class HeldOut:
    """Whether a text is held out, or shares text with ``aside.jsonl``, on which the packaged models are chosen."""

    def __init__(self) -> None:
        data, corpora = Path(os.environ["HANLATTICE_DATA"]), Path(os.environ["OPEN_CORPORA"])
        self.left_out = left_out(data / "held_out.py", [corpora / "aside.jsonl"])

    def __call__(self, text: str) -> bool:
        return self.left_out(text)
