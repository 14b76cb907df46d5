"""Sentences and overlapping windows of long texts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from hanlattice.errors import HanlatticeError
from hanlattice.spans import Span

if TYPE_CHECKING:
    pass


_PUNCTUATED = r"""[。｡！？!?；…]+[”’」』）)】》〉〕］\]"']*\s*"""


_PARAGRAPH = r"(?>\r\n|[\n\r\u2028])\s+|\u2029\s*"


_SENTENCE_END = re.compile(f"{_PUNCTUATED}|{_PARAGRAPH}")


_PAUSES = ("\n\r\u2028", "，,、：:；; \t\u3000")  # the better ones first


def sentences(text: str) -> list[tuple[int, int]]:
    """Ranges that cover the text without a gap, cut after ``。！？!?；…`` and between paragraphs.

    Closing quotes and brackets stay with the sentence they close, and so does white space. A line end is one of a
    paragraph where an empty or an indented line follows; else the text may have been wrapped there, amid a word.
    """
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return list(pairwise(cuts))


class Window(NamedTuple):
    """A window reads ``[start, end)`` together, and answers for ``[core_start, core_end)``."""

    start: int
    end: int
    core_start: int
    core_end: int


def windows(text: str, size: int, overlap: int) -> list[Window]:
    """Cuts a text into windows of at most ``size`` characters whose cores follow one another without a gap.

    Whole sentences are packed together. A sentence longer than ``size`` is cut, at a line end or else at a comma
    or a space where there is one in the later half, into windows that share ``overlap`` characters around each cut:
    so every span of at most ``overlap`` characters in a sentence lies whole in the window that answers for it.

    Raises:
        HanlatticeError: the overlap is negative or not smaller than the size.
    """
    if not 0 <= overlap < size:
        raise HanlatticeError(f"windows of {size} characters cannot overlap by {overlap}; choose 0 to {size - 1}")
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


def _cut(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[Window]:
    """Windows over a range; one where it fits, none where it is empty."""
    before, after = (overlap + 1) // 2, overlap // 2
    core = start
    while end - start > size:
        cut = _pause(text, start + max(size // 2, before + 1), start + size - after)
        yield Window(start, cut + after, core, cut)
        start, core = cut - before, cut
    if core < end:
        yield Window(start, end, core, end)


def _pause(text: str, low: int, high: int) -> int:
    """The last place in ``[low, high]`` that follows a pause, or ``high``."""
    for pauses in _PAUSES:
        last = max(text.rfind(pause, low - 1, high) for pause in pauses)
        if last >= 0:
            return last + 1
    return high


def merge(windows: Sequence[Window], found: Iterable[Iterable[Span]], nested: bool = False) -> list[Span]:
    """Spans of the whole text from the spans found in each window (with offsets into that window's text).

    A window answers for the spans whose middle character lies in its core, so one that two windows see is
    counted once. Where the windows disagree about a span at their border, spans might overlap; unless
    ``nested`` spans are wanted, the one that starts first is kept.
    """
    kept: list[Span] = []
    for span in sorted(_answers(windows, found)):
        if nested or not kept or kept[-1].end <= span.start:
            kept.append(span)
    return kept


def _answers(windows: Sequence[Window], found: Iterable[Iterable[Span]]) -> Iterator[Span]:
    for window, spans in zip(windows, found, strict=True):
        for span in spans:
            span = span.moved(window.start)
            if window.core_start <= (span.start + span.end - 1) // 2 < window.core_end:
                yield span
