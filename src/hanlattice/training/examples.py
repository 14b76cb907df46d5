"""From documents to training examples: windows of the text, their ids, and batches of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hanlattice.config.settings import AuxiliaryConfig, Config, TextConfig
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError
from hanlattice.inputs.encoded import Encoded
from hanlattice.inputs.reader import Reader
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.text.windows import windows
from hanlattice.training.noise import without_punctuation
from hanlattice.training.window import AnnotatedWindow


@dataclass(frozen=True)
class Example:
    """A window as the model reads it, and its gold spans."""

    encoded: Encoded
    spans: tuple[Span, ...]

    @property
    def window(self) -> AnnotatedWindow:
        return AnnotatedWindow(self.encoded.text, self.spans)


def annotated_windows(
    documents: Sequence[Document], config: TextConfig, normaliser: Normaliser
) -> tuple[list[AnnotatedWindow], int]:
    """Windows of the documents with their gold spans.

    Returns:
        The windows, and the number of entities that no window contains completely. Entities whose characters all
        disappear in normalisation are among them.
    """
    found, lost = [], 0
    for document in documents:
        plain = normaliser(document.text)
        spans = [s.mapped(plain.normalised) for s in document.spans]
        spans = [s for s in spans if s.start < s.end]
        contained: set[Span] = set()
        for w in windows(plain.text, config.window, config.overlap):
            inside = [s for s in spans if w.start <= s.start and s.end <= w.end]
            contained.update(inside)
            local = tuple(s.moved(-w.start) for s in inside)
            found.append(AnnotatedWindow(plain.text[w.start : w.end], local))
        lost += len(document.spans) - sum(s in contained for s in spans)
    return found, lost


def labels_of(found: Iterable[AnnotatedWindow]) -> tuple[str, ...]:
    """The labels of all spans, sorted."""
    return tuple(sorted({span.label for window in found for span in window.spans}))


def refuse_unlabelled(windows: Mapping[str, Sequence[AnnotatedWindow]], config: Config) -> None:
    """Check that there is an entity to learn in each training corpus.

    Args:
        windows: the windows of ``data.train``, under an empty name, and of further corpora, by name.
        config: the settings of the run.

    Raises:
        DataError: no window of a corpus has one.
    """
    further: dict[str, AuxiliaryConfig] = {**config.conventions, **config.auxiliary}
    for name, found in windows.items():
        if not labels_of(found):
            raise DataError(
                f"has no entity that this tagger can learn: all are discontinuous, or longer than text.window"
                f" ({config.text.window} characters)",
                further[name].corpus[0] if name else config.data.train[0],
            )


def examples(found: Iterable[AnnotatedWindow], reader: Reader, lexicon: Lexicon) -> list[Example]:
    """Windows as ids, with the words that match in them; empty windows are left out."""
    found = [window for window in found if window.text]
    encoded = reader.read([window.text for window in found], lexicon)
    return [Example(e, window.spans) for e, window in zip(encoded, found, strict=True)]


def unpunctuated(documents: Iterable[Document]) -> list[Document]:
    """The documents without punctuation: see :func:`hanlattice.training.noise.without_punctuation`."""
    bare = [without_punctuation(AnnotatedWindow(d.text, tuple(d.spans))) for d in documents]
    return [Document(w.text, tuple(Entity.of(w.text, span) for span in w.spans)) for w in bare]


def batches(data: Sequence[Example], size: int, bucket: int, draw: np.random.Generator) -> list[list[int]]:
    """Indices of examples, in batches of similar length and in random order.

    The examples are shuffled, cut into buckets of ``bucket`` batches and sorted within each bucket by their number
    of characters and words. Then the batches are shuffled. With a ``bucket`` of 0 nothing is sorted.

    Args:
        data: the examples.
        size: examples in a batch.
        bucket: batches in a bucket.
        draw: source of random numbers.
    """
    order = draw.permutation(len(data))
    bucket_size = max(size * bucket, 1)
    if bucket:
        order = np.concatenate(
            [
                sorted(order[i : i + bucket_size], key=lambda j: data[j].encoded.n_nodes)
                for i in range(0, len(order), bucket_size)
            ]
        )
    cut = [order[i : i + size].tolist() for i in range(0, len(order), size)]
    return [cut[i] for i in draw.permutation(len(cut))]
