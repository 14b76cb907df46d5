"""Label the words of a lexicon with the entity types that annotators and a model give them.

    python scripts/label_words.py TEXT… --lexicon WORDS… --corpus ANNOTATED… --exclude TEST… --output labels.txt

TEXT are files of running text, plain or compressed with xz, with one text per line. The packaged model, or
``--model``, annotates them. ANNOTATED are corpora in any supported format. The output has all words of the packaged
vectors, and the words of WORDS that occur in TEXT or ANNOTATED.

A word gets a label if all of the following hold:

- it was an entity with that label in ANNOTATED, or the model predicted it at least twice, or once with a confidence
  of at least 0.9;
- at least 80 % of its entities have that label;
- it is an entity in at least 40 % of its occurrences.

Documents of ANNOTATED that share 20 consecutive characters with a document of TEST are not used. The output,
``word<TAB>label`` or ``word``, is a lexicon file.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.atomic import atomic_write
from hanlattice.compressed import decompressed_lines
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from hanlattice.training.corpora import without_shared
from hanlattice.vectors import default_vectors

MIN_COUNT, MIN_CONFIDENCE, MIN_PURITY, MIN_SHARE = 2, 0.9, 0.8, 0.4
LINE_LENGTHS = range(6, 301)  # characters; the model reads only such lines
BATCH = 2_000  # lines


@dataclass
class Evidence:
    """Counts from which labels are chosen.

    Attributes:
        lexicon: the words that are counted
        seen: how often each word occurs in all texts
        occurrences: how often each word occurs in texts that have entities, predicted or annotated
        found: of each string, how often it was an entity with each label
        confident: pairs of a string and a label that were annotated, or predicted with high confidence
    """

    lexicon: Lexicon
    seen: Counter[str] = field(default_factory=Counter)
    occurrences: Counter[str] = field(default_factory=Counter)
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    confident: set[tuple[str, str]] = field(default_factory=set)

    def words_in(self, texts: list[str]) -> dict[str, int]:
        """How often each word of the lexicon occurs in the texts."""
        ids, counts = np.unique(self.lexicon.match_batch(texts, 2).word, return_counts=True)
        return dict(zip(map(self.lexicon.word, ids.tolist()), counts.tolist(), strict=True))

    def add_predicted(self, ner: NER, texts: list[str]) -> None:
        """Count the entities that the model predicts in the texts."""
        self.occurrences.update(self.words_in(texts))
        for document in ner.pipe(texts, batch_size=64):
            for entity in document.entities:
                self.found[entity.text][entity.label] += 1
                if (entity.score or 0.0) >= MIN_CONFIDENCE:
                    self.confident.add((entity.text, entity.label))

    def add_annotated(self, ner: NER, documents: Iterable[hanlattice.Document]) -> None:
        """Count the entities of annotated documents."""
        for document in documents:
            plain = ner.normaliser(document.text)
            words = self.words_in([plain.text])
            self.seen.update(words)
            self.occurrences.update(words)
            for original in document.spans:
                span = original.mapped(plain.normalised)
                word = plain.text[span.start : span.end]
                self.found[word][span.label] += 1
                self.confident.add((word, span.label))

    def label(self, word: str) -> str:
        """The label of a word; empty if it has none."""
        if word not in self.found:
            return ""
        (label, n), total = self.found[word].most_common(1)[0], self.found[word].total()
        enough = n >= MIN_COUNT or (word, label) in self.confident
        return label if enough and n >= MIN_PURITY * total and total >= MIN_SHARE * self.occurrences[word] else ""


def distinct(texts: Iterable[str], characters: int) -> Iterator[str]:
    """Distinct texts with a length in ``LINE_LENGTHS``, up to a total number of characters."""
    seen, total = set(), 0
    for text in texts:
        if len(text) in LINE_LENGTHS and text not in seen:
            seen.add(text)
            total += len(text)
            if total > characters:
                return
            yield text


def batches(texts: Iterator[str]) -> Iterator[list[str]]:
    """The texts in lists of ``BATCH``."""
    while batch := list(islice(texts, BATCH)):
        yield batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--lexicon",
        nargs="*",
        type=Path,
        default=[],
        help="word lists; their words are kept if they occur in the texts or corpora",
    )
    parser.add_argument("--corpus", nargs="*", type=Path, default=[], help="annotated corpora")
    parser.add_argument("--exclude", nargs="*", type=Path, default=[], help="test corpora")
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument(
        "--characters", type=int, default=10_000_000, help="how many characters of each file the model reads"
    )
    a = parser.parse_args()

    ner = hanlattice.load(a.model)
    known = default_vectors().words.names
    further = [entry.text for path in a.lexicon for entry in Lexicon.open(path).entries()]
    evidence = Evidence(Lexicon([*known, *further]))
    for path in a.texts:
        for batch in batches(decompressed_lines(path)):
            evidence.seen.update(evidence.words_in([ner.normaliser(text).text for text in batch]))
        for batch in batches(distinct(decompressed_lines(path), a.characters)):
            evidence.add_predicted(ner, [ner.normaliser(text).text for text in batch])
        print(f"{path}: {sum(c.total() for c in evidence.found.values()):,} entities so far", flush=True)
    banned = [document for path in a.exclude for document in corpus.read(path)]
    for path in a.corpus:
        evidence.add_annotated(ner, without_shared(banned, list(corpus.read(path))))
    words = list(dict.fromkeys([*known, *sorted(word for word in further if evidence.seen[word])]))
    labels = {word: label for word in words if (label := evidence.label(word))}
    with atomic_write(a.output) as stream:
        stream.writelines(f"{word}\t{labels[word]}\n" if word in labels else f"{word}\n" for word in words)
    print(f"{len(words):,} words, {len(labels):,} of them labelled: {dict(Counter(labels.values()))}")


if __name__ == "__main__":
    main()
