"""Changes the matched words of sentences in each epoch, so that a tagger does not rely on its lexicon alone.

Lexicons contain most names of the training corpora, but few names of other texts. So some matches lose their label,
and some are left out. Some gold names and ordinary words become words that a user added, as in
:mod:`hanlattice.training.user_words`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.spans import Span
from hanlattice.training.user_words import (
    CHOSEN,
    COMPOUNDS,
    IN_LARGE,
    LABELLED,
    LARGE,
    LONGEST,
    MISLABELLED,
    UNLABELLED,
)

LEFT_OUT = -1  # the kind of words that the kernels skip
# Share of the sentences with an ordinary user word. It is larger than for other taggers, which recognise a large
# dictionary by the number of user words in a sentence. The features of a linear tagger do not show this number.
ORDINARY = 0.35


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
    return sentences.with_arrays(word_labels=np.where(chance < drop, LEFT_OUT, kinds))


def with_user_words(
    sentences: Sentences, gold: GoldSpans, vocabulary: Vocabulary, share: float, draw: np.random.Generator
) -> Sentences:
    """The sentences; in a ``share`` of them some names and some ordinary words are words that a user added.

    Most names have no label, others have their own, and a few another one or wrong boundaries. In some sentences a
    large dictionary without labels is simulated: it has few of the names and many ordinary words.
    """
    n = len(sentences)
    is_changed, is_large = draw.random(n) < share, draw.random(n) < LARGE
    names = np.flatnonzero(
        is_changed[gold.sentence]
        & (draw.random(len(gold.start)) < np.where(is_large, IN_LARGE, CHOSEN)[gold.sentence])
    )
    kind, end = _kinds_of_names(gold, names, is_large[gold.sentence[names]], vocabulary, draw)
    length = np.diff(sentences.first_char)
    counts = np.where(is_large, draw.poisson(COMPOUNDS * length), draw.random(n) < ORDINARY)
    ordinary = _ordinary(sentences, gold, np.repeat(np.arange(n), np.where(is_changed, counts, 0)), draw)
    return _added(
        sentences,
        np.concatenate([gold.sentence[names], ordinary[0]]),
        np.concatenate([gold.start[names], ordinary[1]]),
        np.concatenate([end, ordinary[2]]),
        np.concatenate([kind, np.zeros(len(ordinary[0]), np.int64)]) + vocabulary.user_kind,
    )


def _kinds_of_names(
    gold: GoldSpans,
    names: Int[np.ndarray, "K"],
    is_unlabelled: Bool[np.ndarray, "K"],
    vocabulary: Vocabulary,
    draw: np.random.Generator,
) -> tuple[Int[np.ndarray, "K"], Int[np.ndarray, "K"]]:
    """The row of the label of each name, 0 for none, and its end as a user word."""
    start, end, label = gold.start[names], gold.end[names], gold.label[names]
    how = np.where(is_unlabelled, 0.0, draw.random(len(names)))
    rows = {name: i for i, name in enumerate(vocabulary.word_labels, 1)}
    row_of = np.array([rows.get(name, 0) for name in vocabulary.labels], np.int64)
    other = draw.integers(0, max(len(row_of), 1), len(label))
    kind = np.zeros(len(label), np.int64)
    is_labelled, is_other = how >= UNLABELLED, how >= UNLABELLED + LABELLED
    kind[is_labelled] = row_of[label[is_labelled]]
    kind[is_other] = row_of[other[is_other]]
    is_shifted = how >= UNLABELLED + LABELLED + MISLABELLED
    kind[is_shifted] = 0
    return kind, np.where(is_shifted & (end - start > 2), end - 1, end)


def _ordinary(
    sentences: Sentences, gold: GoldSpans, sentence: Int[np.ndarray, "K"], draw: np.random.Generator
) -> tuple[Int[np.ndarray, "P"], Int[np.ndarray, "P"], Int[np.ndarray, "P"]]:
    """Words that are not names, at most one for each entry of ``sentence``: their sentences, starts and ends.

    Half of them are matched words. The others are compounds: a matched word with the next one, or with the
    character before or after it.
    """
    n_words = np.diff(sentences.first_word)
    sentence = sentence[n_words[sentence] > 0]
    i = sentences.first_word[sentence] + np.floor(draw.random(len(sentence)) * n_words[sentence]).astype(np.int64)
    start, end = sentences.start[i], sentences.end[i]
    longest = np.diff(sentences.first_char)[sentence]
    size = int(np.diff(sentences.first_char).max(initial=0)) + 1  # more than any position
    begins = np.repeat(np.arange(len(n_words)), n_words) * size + sentences.start
    order = np.argsort(begins, kind="stable")
    following = np.minimum(np.searchsorted(begins, sentence * size + end, sorter=order), len(order) - 1)
    follows = begins[order[following]] == sentence * size + end
    how = draw.random(len(i))
    end = np.select(
        [how < 0.5, (how < 0.7) & follows, how < 0.85],
        [end, sentences.end[order[following]], np.minimum(end + 1, longest)],
        end,
    )
    start = np.where(how >= 0.85, np.maximum(start - 1, 0), start)
    is_name = np.isin((sentence * size + start) * size + end, (gold.sentence * size + gold.start) * size + gold.end)
    kept = ~is_name & (end - start >= 2) & (end - start <= LONGEST)
    return sentence[kept], start[kept], end[kept]


def _added(
    sentences: Sentences, sentence: np.ndarray, start: np.ndarray, end: np.ndarray, kind: np.ndarray
) -> Sentences:
    """The sentences with further words, each instead of the matched word with the same characters."""
    n_words = np.diff(sentences.first_word)
    size = int(np.diff(sentences.first_char).max(initial=0)) + 1  # more than any position
    matched = np.repeat(np.arange(len(n_words)), n_words)
    is_replaced = np.isin(
        (matched * size + sentences.start) * size + sentences.end, (sentence * size + start) * size + end
    )
    labels = np.where(is_replaced, LEFT_OUT, sentences.word_labels)
    order = np.argsort(np.concatenate([matched, sentence]), kind="stable")
    first = np.zeros(len(sentences) + 1, np.int64)
    np.cumsum(n_words + np.bincount(sentence, minlength=len(sentences)), out=first[1:])
    return sentences.with_arrays(
        words=np.concatenate([sentences.words, np.zeros(len(kind), np.int64)])[order],
        start=np.concatenate([sentences.start, start])[order],
        end=np.concatenate([sentences.end, end])[order],
        word_labels=np.concatenate([labels, kind])[order],
        first_word=first,
    )


def kinds_without_label(vocabulary: Vocabulary) -> Int[np.ndarray, "K"]:
    """For each kind of words, the kind of the same words without a label."""
    n = vocabulary.user_kind
    return np.repeat(np.array([0, n]), n)[: vocabulary.n_word_kinds]
