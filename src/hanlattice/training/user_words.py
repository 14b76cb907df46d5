"""Simulates user dictionaries during training.

Some gold names become words in the lattice that a user added, most of them without their vector. Most have no
label, some have their own, a few have a wrong label or wrong boundaries. Some ordinary words become user words too.
Some sentences are read with a large general dictionary: many of their words are user words, and so are compounds
that no lexicon contains. So the model learns how far it can rely on words that users add later.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hanlattice.inputs.encoded import Encoded
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.spans import Span

CHOSEN = 0.7  # share of the names that become user words
UNLABELLED, LABELLED, MISLABELLED = 0.6, 0.36, 0.005  # shares of these names; the others get wrong boundaries
ORDINARY = 0.15  # share of the sentences in which one ordinary word or compound becomes a user word
FORGOTTEN = 0.85  # share of these names that lose their vector
LARGE = 0.2  # share of the sentences with a large user dictionary, mostly of ordinary words
COMPOUNDS = 0.06  # compounds in a large dictionary, per character of the sentence
IN_LARGE = 0.3  # share of the names that are in a large dictionary
LONGEST = 24  # characters of a user word


@dataclass(frozen=True)
class UserWords:
    """Simulates user words in encoded sentences; ``labels`` are the entity labels of the annotation convention."""

    vocabulary: Vocabulary
    labels: Sequence[str]
    min_word_length: int = 2

    def __call__(
        self, sentence: Encoded, gold: Sequence[Span], draw: np.random.Generator, *, all_names: bool = False
    ) -> Encoded:
        """The sentence, in which some names and perhaps ordinary words have become user words.

        Args:
            sentence: the sentence
            gold: its entities
            draw: source of random numbers
            all_names: every name becomes a user word, as for names that only a user's dictionary can know
        """
        if not all_names and draw.random() < LARGE:
            return self._from_large_dictionary(sentence, gold, draw)
        added: dict[tuple[int, int], tuple[int, bool]] = {}  # span -> kind, whether its vector is left out
        for span in gold:
            if not self._is_word(span.start, span.end) or span.gaps or not (all_names or draw.random() <= CHOSEN):
                continue
            start, end, kind = self._simulated(span, len(sentence), draw)
            added[start, end] = kind, draw.random() < FORGOTTEN
        if len(sentence.words) and draw.random() < ORDINARY:
            i = int(draw.integers(len(sentence.words)))
            is_compound = draw.random() < 0.5
            word = self._compound(sentence, draw) if is_compound else (int(sentence.start[i]), int(sentence.end[i]))
            if self._is_word(*word) and all((span.start, span.end) != word for span in gold):
                added[word] = self._kind(None), draw.random() < 0.5
        return _with_words(sentence, added) if added else sentence

    def _from_large_dictionary(self, sentence: Encoded, gold: Sequence[Span], draw: np.random.Generator) -> Encoded:
        """The sentence, read with a large dictionary without labels.

        User words without a vector are a random share of all words, some compounds of ordinary words, which the
        lexicon does not contain, and some of the names.
        """
        chosen = draw.random(len(sentence.words)) < draw.random()
        kind = self._kind(None)
        read = replace(
            sentence,
            words=np.where(chosen, 0, sentence.words),
            word_labels=np.where(chosen, kind, sentence.word_labels),
        )
        names = {(span.start, span.end) for span in gold if self._is_word(span.start, span.end) and not span.gaps}
        known = set(zip(sentence.start.tolist(), sentence.end.tolist(), strict=True))
        added = {span for span in sorted(names) if draw.random() < IN_LARGE}
        if known:
            compounds = (self._compound(sentence, draw) for _ in range(draw.poisson(COMPOUNDS * len(sentence))))
            added.update(span for span in compounds if self._is_word(*span) and span not in names | known)
        return _with_words(read, dict.fromkeys(added, (kind, True))) if added else read

    def _compound(self, sentence: Encoded, draw: np.random.Generator) -> tuple[int, int]:
        """A random word of the lattice together with the next word or character, or the character before it."""
        i = int(draw.integers(len(sentence.words)))
        start, end = int(sentence.start[i]), int(sentence.end[i])
        next_words = sentence.end[sentence.start == end]
        if len(next_words) and draw.random() < 0.5:
            return start, int(draw.choice(next_words))
        if draw.random() < 0.5:
            return max(start - 1, 0), end
        return start, min(end + 1, len(sentence))

    def _simulated(self, span: Span, n: int, draw: np.random.Generator) -> tuple[int, int, int]:
        """Start, end and kind of the user word for a name in a sentence of ``n`` characters."""
        how = draw.random()
        start, end = span.start, span.end
        if how < UNLABELLED:
            return start, end, self._kind(None)
        if how < UNLABELLED + LABELLED:
            return start, end, self._kind(span.label)
        if how < UNLABELLED + LABELLED + MISLABELLED:
            return start, end, self._kind(self.labels[int(draw.integers(len(self.labels)))])
        shift = int(draw.choice([-1, 1]))
        cut = (start + shift, end) if draw.random() < 0.5 else (start, end + shift)
        inside = cut[0] >= 0 and cut[1] <= n and self._is_word(*cut)
        return (*(cut if inside else (start, end)), self._kind(None))

    def _is_word(self, start: int, end: int) -> bool:
        return self.min_word_length <= end - start <= LONGEST

    def _kind(self, label: str | None) -> int:
        known = self.vocabulary.word_labels
        return self.vocabulary.user_kind + (known.index(label) + 1 if label in known else 0)


def _with_words(sentence: Encoded, added: dict[tuple[int, int], tuple[int, bool]]) -> Encoded:
    """The sentence with words at the spans of ``added``; each has a kind, and whether its vector is left out."""
    rows = {
        (start, end): (word, kind)
        for start, end, word, kind in zip(
            sentence.start.tolist(),
            sentence.end.tolist(),
            sentence.words.tolist(),
            sentence.word_labels.tolist(),
            strict=True,
        )
    }
    for place, (kind, forgotten) in added.items():
        word = rows.get(place, (0, 0))[0]
        rows[place] = 0 if forgotten else word, kind
    ordered = sorted(rows)
    start, end = (np.array(places, np.int64) for places in zip(*ordered, strict=True))
    words, kinds = (np.array(column, np.int64) for column in zip(*(rows[at] for at in ordered), strict=True))
    return replace(sentence, words=words, start=start, end=end, word_labels=kinds)
