"""Changes the matched words of sentences in each epoch, so that a tagger does not rely on its lexicon alone.

Lexicons contain most names of the training corpora, but few names of other texts. So some matches lose their label,
and some are left out. Some gold names become words that a user added, as in :mod:`hanlattice.training.user_words`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.spans import Span
from hanlattice.training.user_words import CHOSEN, LABELLED, MISLABELLED, UNLABELLED

LEFT_OUT = -1  # the kind of words that the kernels skip


@dataclass(frozen=True)
class GoldSpans:
    """The gold spans of sentences: one row for each span, with its sentence and the number of its label."""

    sentence: Int[np.ndarray, "E"]
    start: Int[np.ndarray, "E"]
    end: Int[np.ndarray, "E"]
    label: Int[np.ndarray, "E"]

    @classmethod
    def of(cls, spans: Sequence[Sequence[Span]], labels: Sequence[str]) -> "GoldSpans":
        """The spans of each sentence."""
        number = {label: i for i, label in enumerate(labels)}
        rows = [(i, s.start, s.end, number[s.label]) for i, found in enumerate(spans) for s in found]
        return cls(*np.array(rows, np.int64).reshape(-1, 4).T)


def varied(
    sentences: Sentences,
    *,
    forget: float,
    drop: float,
    kind_without_label: Int[np.ndarray, "K"],
    draw: np.random.Generator,
) -> Sentences:
    """The sentences, in which a share of the matched words has lost its label and another share is left out.

    ``kind_without_label`` is, for each kind of words, the kind of the same words without a label.
    """
    chance = draw.random(len(sentences.word_labels))
    kinds = np.where(chance < drop + forget, kind_without_label[sentences.word_labels], sentences.word_labels)
    return replace(sentences, word_labels=np.where(chance < drop, LEFT_OUT, kinds))


def with_user_words(
    sentences: Sentences, gold: GoldSpans, vocabulary: Vocabulary, share: float, draw: np.random.Generator
) -> Sentences:
    """The sentences; in a ``share`` of them most gold names are words that a user added.

    Most of these have no label, others have their own, and a few another one or wrong boundaries.
    """
    chosen = (draw.random(len(sentences)) < share)[gold.sentence] & (draw.random(len(gold.start)) < CHOSEN)
    sentence, start, end, label = (x[chosen] for x in (gold.sentence, gold.start, gold.end, gold.label))
    how = draw.random(len(start))
    rows = {name: i for i, name in enumerate(vocabulary.word_labels, 1)}
    row_of = np.array([rows.get(name, 0) for name in vocabulary.labels], np.int64)
    other = draw.integers(0, max(len(row_of), 1), len(label))
    kind = np.zeros(len(label), np.int64)
    is_labelled, is_other = how >= UNLABELLED, how >= UNLABELLED + LABELLED
    kind[is_labelled] = row_of[label[is_labelled]]
    kind[is_other] = row_of[other[is_other]]
    is_shifted = how >= UNLABELLED + LABELLED + MISLABELLED
    kind[is_shifted] = 0
    end = np.where(is_shifted & (end - start > 2), end - 1, end)
    return _added(sentences, sentence, start, end, kind + len(vocabulary.word_labels) + 1)


def _added(
    sentences: Sentences, sentence: np.ndarray, start: np.ndarray, end: np.ndarray, kind: np.ndarray
) -> Sentences:
    """The sentences with further words."""
    n_words = np.diff(sentences.first_word)
    order = np.argsort(np.concatenate([np.repeat(np.arange(len(sentences)), n_words), sentence]), kind="stable")
    first = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(n_words + np.bincount(sentence, minlength=len(sentences)), out=first[1:])
    return replace(
        sentences,
        words=np.concatenate([sentences.words, np.zeros(len(kind), np.int64)])[order],
        start=np.concatenate([sentences.start, start])[order],
        end=np.concatenate([sentences.end, end])[order],
        word_labels=np.concatenate([sentences.word_labels, kind])[order],
        first_word=first,
    )


def kinds_without_label(vocabulary: Vocabulary) -> Int[np.ndarray, "K"]:
    """For each kind of words, the kind of the same words without a label."""
    n = len(vocabulary.word_labels) + 1
    return np.repeat(np.array([0, n]), n)[: vocabulary.n_word_kinds]
