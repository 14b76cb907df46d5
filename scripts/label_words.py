"""Give the words of a lexicon the entity type that annotators and a model find them to be.

    python scripts/label_words.py TEXT… --lexicon WORDS… --corpus ANNOTATED… --exclude TEST… --output labels.txt

TEXT are files of running text, one a line, plain or compressed by xz, which the packaged model or ``--model``
reads; ANNOTATED are corpora in any of the formats. Of the words in WORDS those that occur in any of them are kept,
and the words of the packaged vectors in any case. A word gets a label when, as a whole entity, it was annotated, or
found twice, or once with a confidence of 0.9; if four times out of five or more it had that label; and if it was an
entity in two of five places or more where it occurs. Documents of ANNOTATED that share 20 characters with TEST
count for nothing. The output, ``word<TAB>label`` or ``word``, is a lexicon file.
"""

import argparse
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.files import atomic_write
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from hanlattice.training.corpora import without_shared
from hanlattice.vectors import default_vectors

LEAST, SURE, PURITY, SHARE = 2, 0.9, 0.8, 0.4
LENGTHS = range(6, 301)  # of the lines that the model reads
TOGETHER = 2_000  # lines


@dataclass
class Evidence:
    """``met``: how often each word occurs anywhere; ``places``: where entities were looked for as well.

    ``found``: how often each string was an entity of each type, ``annotated`` or by the model; ``sure`` are the
    entities of which the model was sure at least once.
    """

    lexicon: Lexicon
    met: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    found: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    sure: set[tuple[str, str]] = field(default_factory=set)

    def words_in(self, texts: list[str]) -> dict[str, int]:
        ids, counts = np.unique(self.lexicon.match_batch(texts, 2).word, return_counts=True)
        return dict(zip(map(self.lexicon.word, ids.tolist()), counts.tolist(), strict=True))

    def read(self, ner: NER, texts: list[str]) -> None:
        """What the model finds."""
        self.places.update(self.words_in(texts))
        for document in ner.pipe(texts, batch_size=64):
            for entity in document.entities:
                self.found[entity.text][entity.label] += 1
                if (entity.score or 0.0) >= SURE:
                    self.sure.add((entity.text, entity.label))

    def believe(self, ner: NER, documents: Iterable[hanlattice.Document]) -> None:
        """What annotators found."""
        for document in documents:
            plain = ner.normaliser(document.text)
            words = self.words_in([plain.text])
            self.met.update(words)
            self.places.update(words)
            for span in document.spans:
                place = span.mapped(plain.normalised)
                word = plain.text[place.start : place.end]
                self.found[word][place.label] += 1
                self.sure.add((word, place.label))

    def label(self, word: str) -> str:
        """Its type, empty where it has none."""
        if word not in self.found:
            return ""
        (label, n), total = self.found[word].most_common(1)[0], self.found[word].total()
        enough = n >= LEAST or (word, label) in self.sure
        return label if enough and n >= PURITY * total and total >= SHARE * self.places[word] else ""


def lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for line in stream)


def usual(texts: Iterable[str], characters: int) -> Iterator[str]:
    """Every line that is new and of a usual length, until so many characters are read."""
    seen, read = set(), 0
    for text in texts:
        if len(text) in LENGTHS and text not in seen:
            seen.add(text)
            read += len(text)
            if read > characters:
                return
            yield text


def together(texts: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(texts, TOGETHER)):
        yield some


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--lexicon", nargs="*", type=Path, default=[], help="more words, where they occur")
    parser.add_argument("--corpus", nargs="*", type=Path, default=[])
    parser.add_argument("--exclude", nargs="*", type=Path, default=[])
    parser.add_argument("--model", help="the packaged one otherwise")
    parser.add_argument("--characters", type=int, default=10_000_000, help="of each file that the model reads")
    a = parser.parse_args()

    ner = hanlattice.load(a.model)
    known = default_vectors().words.names
    further = [entry.text for path in a.lexicon for entry in Lexicon.open(path).entries()]
    evidence = Evidence(Lexicon([*known, *further]))
    for path in a.texts:
        for some in together(lines(path)):
            evidence.met.update(evidence.words_in([ner.normaliser(text).text for text in some]))
        for some in together(usual(lines(path), a.characters)):
            evidence.read(ner, [ner.normaliser(text).text for text in some])
        print(f"{path}: {sum(c.total() for c in evidence.found.values()):,} entities so far", flush=True)
    banned = [document for path in a.exclude for document in corpus.read(path)]
    for path in a.corpus:
        evidence.believe(ner, without_shared(banned, list(corpus.read(path))))
    words = list(dict.fromkeys([*known, *sorted(word for word in further if evidence.met[word])]))
    labels = {word: label for word in words if (label := evidence.label(word))}
    with atomic_write(a.output) as stream:
        stream.writelines(f"{word}\t{labels[word]}\n" if word in labels else f"{word}\n" for word in words)
    print(f"{len(words):,} words, {len(labels):,} of them labelled: {dict(Counter(labels.values()))}")


if __name__ == "__main__":
    main()
