"""The spans that a kernel has found, out of the memory that it filled."""

from collections.abc import Sequence

from hanlattice.spans import FoundSpans

_FIELDS = 5  # of 8 bytes: sentence, start, end, label, probability, as in the structure Found of the kernels


def memory_for(n_chars: int) -> bytearray:
    """Memory for one span for every character."""
    return bytearray(8 * _FIELDS * n_chars)


def spans_in(memory: bytearray, n_sentences: int, count: int, labels: Sequence[str]) -> FoundSpans:
    """The first ``count`` spans in the memory that a kernel has filled.

    Args:
        memory: of :func:`memory_for`.
        n_sentences: the number of sentences.
        count: the number of spans.
        labels: the names of the labels.
    """
    if not count:
        return FoundSpans(n_sentences, [], [], [], [], [])
    whole, last = memoryview(memory), _FIELDS * count
    numbers = whole.cast("q")
    sentence, start, end, label = [numbers[field:last:_FIELDS].tolist() for field in range(_FIELDS - 1)]
    score: list[float] = whole.cast("d")[_FIELDS - 1 : last : _FIELDS].tolist()  # type: ignore[assignment]
    return FoundSpans(n_sentences, sentence, start, end, [labels[i] for i in label], score)
