"""Give the words of a lexicon the entity type that a model finds them to be in raw text.

    python scripts/label_words.py TEXT… --output labels.txt [--model DIR] [--characters 9000000]

TEXT are files of running text, one a line, plain or compressed by xz. A word gets a label when, as a whole entity,
it was found at least twice, four times out of five or more with that label, and in two of five places or more where
the word occurs at all. The output, ``word<TAB>label``, is a lexicon file: a gazetteer where there is none.
"""

import argparse
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice.files import atomic_write
from hanlattice.lexicon import Lexicon
from hanlattice.vectors import default_vectors

LEAST, PURITY, SHARE = 2, 0.8, 0.4
LENGTHS = range(6, 301)  # of the lines that are read
TOGETHER = 2_000  # lines


def lines(path: Path, characters: int, step: int) -> Iterator[str]:
    """Every ``step``-th line that is new and of a usual length, until so many characters are read."""
    seen, read = set(), 0
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as stream:
        for line in islice(stream, 0, None, step):
            text = line.rstrip("\n")
            if len(text) in LENGTHS and text not in seen:
                seen.add(text)
                read += len(text)
                if read > characters:
                    return
                yield text


def together(texts: Iterator[str]) -> Iterator[list[str]]:
    while some := list(islice(texts, TOGETHER)):
        yield some


def labelled(
    found: dict[str, Counter[str]], places: Counter[str], words: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """The words that are an entity of one type often enough, with that type."""
    for word in words:
        if word in found:
            (label, n), total = found[word].most_common(1)[0], found[word].total()
            if n >= LEAST and n >= PURITY * total and total >= SHARE * places[word]:
                yield word, label


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", help="the packaged one otherwise")
    parser.add_argument("--characters", type=int, default=9_000_000, help="read of each file")
    parser.add_argument("--step", type=int, default=1, help="read every so many-th line")
    a = parser.parse_args()

    ner = hanlattice.load(a.model)
    words = default_vectors().words.names
    lexicon = Lexicon(words)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    places: Counter[str] = Counter()
    for path in a.texts:
        for some in together(lines(path, a.characters, a.step)):
            texts = [ner.normaliser(text).text for text in some]
            ids, counts = np.unique(lexicon.match_batch(texts, 2).word, return_counts=True)
            places.update(dict(zip(map(lexicon.word, ids.tolist()), counts.tolist(), strict=True)))
            for document in ner.pipe(texts, batch_size=64):
                for entity in document.entities:
                    found[entity.text][entity.label] += 1
        print(f"{path}: {sum(c.total() for c in found.values()):,} entities so far", flush=True)
    kept = list(labelled(found, places, words))
    with atomic_write(a.output) as stream:
        stream.writelines(f"{word}\t{label}\n" for word, label in kept)
    print(f"{len(kept):,} of {len(words):,} words labelled: {dict(Counter(label for _, label in kept))}")


if __name__ == "__main__":
    main()
