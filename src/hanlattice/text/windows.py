"""Split long texts into sentences and overlapping windows."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hanlattice.errors import HanlatticeError

_PUNCTUATED = r"""[。｡！？!?；…]+[”’」』）)】》〉〕］\]"']*\s*"""
_PARAGRAPH = r"(?>\r\n|[\n\r\u2028])\s+|\u2029\s*"
_SENTENCE_END = re.compile(f"{_PUNCTUATED}|{_PARAGRAPH}")
_FIRST_OF_END = re.compile("[。｡！？!?；…\r\n\u2028\u2029]")  # searched much faster than `_SENTENCE_END`
_PAUSES = ("\n\r\u2028", "，,、：:；; \t\u3000")  # characters to split after, in order of preference


def sentences(text: str) -> list[tuple[int, int]]:
    """Ranges that cover the text without gaps, split after ``。｡！？!?；…`` and between paragraphs.

    Closing quotes and brackets belong to the sentence that they close, as does the white space after it. A line end
    separates paragraphs only if an empty or an indented line follows. Any other line end may come from wrapping,
    even inside a word.
    """
    cuts = [0]
    for mark in _FIRST_OF_END.finditer(text):
        if mark.start() >= cuts[-1] and (match := _SENTENCE_END.match(text, mark.start())):
            cuts.append(match.end())
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return list(pairwise(cuts))


class Window(NamedTuple):
    """The characters ``[start, end)`` are read together; spans are taken from ``[core_start, core_end)`` only."""

    start: int
    end: int
    core_start: int
    core_end: int


def windows(text: str, size: int, overlap: int) -> list[Window]:
    """Split a text into windows of at most ``size`` characters, whose cores cover it without gaps or overlaps.

    A window has as many whole sentences as fit. A sentence longer than ``size`` is split at a line end, or else at
    a comma or a space, if there is one in the second half, into windows that share ``overlap`` characters around
    each split. So every span of at most ``overlap`` characters in a sentence is complete in the window from which
    it is taken::

        sentence   ━━━━━━━━━━━━━━━━━━━━━━━━━
        window 1   [ core       |  ]
        window 2             [  |   core   ]     shared: overlap characters

    Raises:
        HanlatticeError: the overlap is negative or not smaller than the size.
    """
    _refuse_wide_overlap(size, overlap)
    if 0 < len(text) <= size:
        return [Window(0, len(text), 0, len(text))]
    found: list[Window] = []
    pack_start = pack_end = 0
    for start, end in sentences(text):
        if end - pack_start > size:
            found.extend(_cut(text, pack_start, pack_end, size, overlap))
            pack_start = start
        pack_end = end
    return [*found, *_cut(text, pack_start, pack_end, size, overlap)]


class WindowsOfTexts(NamedTuple):
    """The windows of several texts.

    Attributes:
        texts: the text of each window, in order.
        owner: the index of the text that each window is from.
        start: where each window starts in its text.
        first: the index of the first window of each text, and the number of windows.
        several: the windows of each text, by index, that is not one window as a whole.
    """

    texts: Sequence[str]
    owner: Sequence[int]
    start: Sequence[int]
    first: Sequence[int]
    several: dict[int, list[Window]]

    def of(self, index: int) -> list[Window]:
        """The windows of one text."""
        found = self.several.get(index)
        if found is None:
            n = len(self.texts[self.first[index]])
            return [Window(0, n, 0, n)]
        return found


def windows_of_texts(texts: Sequence[str], size: int, overlap: int) -> WindowsOfTexts:
    """Split several texts into windows; see :func:`windows`. A text that is short enough needs no `Window`.

    Raises:
        HanlatticeError: the overlap is negative or not smaller than the size.
    """
    _refuse_wide_overlap(size, overlap)
    n = len(texts)
    if n == 1 and 0 < len(texts[0]) <= size:  # by far the most frequent call
        return WindowsOfTexts(texts, (0,), (0,), (0, 1), {})
    if all(texts) and max(map(len, texts), default=0) <= size:  # each is one window
        return WindowsOfTexts(texts, list(range(n)), [0] * n, list(range(n + 1)), {})
    parts: list[str] = []
    owner: list[int] = []
    start: list[int] = []
    first = [0]
    several: dict[int, list[Window]] = {}
    for i, text in enumerate(texts):
        found = windows(text, size, overlap)
        if len(found) != 1 or len(text) > size:
            several[i] = found
        parts.extend([text[window.start : window.end] for window in found])
        owner.extend([i] * len(found))
        start.extend([window.start for window in found])
        first.append(len(parts))
    return WindowsOfTexts(parts, owner, start, first, several)


def _refuse_wide_overlap(size: int, overlap: int) -> None:
    """
    Raises:
        HanlatticeError: the overlap is negative or not smaller than the size.
    """
    if not 0 <= overlap < size:
        raise HanlatticeError(f"windows of {size} characters cannot overlap by {overlap}; choose 0 to {size - 1}")


def _cut(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[Window]:
    """The windows of a range: one if it fits, none if it is empty."""
    before, after = (overlap + 1) // 2, overlap // 2
    core = start
    while end - start > size:
        cut = _pause(text, start + max(size // 2, before + 1), start + size - after)
        yield Window(start, cut + after, core, cut)
        start, core = cut - before, cut
    if core < end:
        yield Window(start, end, core, end)


def _pause(text: str, low: int, high: int) -> int:
    """The last position in ``[low, high]`` after a line end, else the last after another pause, else ``high``."""
    for pauses in _PAUSES:
        last = max(text.rfind(pause, low - 1, high) for pause in pauses)
        if last >= 0:
            return last + 1
    return high
