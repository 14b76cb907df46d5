"""A lexicon with entity labels: names that a model finds in raw text, annotated names, and typed word lists.

    python scripts/gazetteer.py TEXT… --model MODEL --corpus ANNOTATED… --list FILE=LABEL… --output gazetteer.txt

TEXT are files of running text, one paragraph a line, plain or compressed by xz. MODEL reads ``--characters`` of
each. ANNOTATED are corpora with the labels that the gazetteer shall have. A string gets a label when it was found
or annotated at least ``LEAST`` times, at least ``PURITY`` of these with that label, and as an entity in at least
``SHARE`` of the places where it occurs. A word of a typed list keeps the label of its list unless the texts
contradict it. Lines that ``--held-out`` names (a Python file with a class ``HeldOut``, whose objects say whether a
text is held out) are left out. The output, ``word<TAB>label``, is a lexicon file.
"""

import argparse
import lzma
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.files import atomic_write
from hanlattice.kernels.library import supports_int8
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from open_corpora import held_out

LEAST, PURITY, SHARE = 3, 0.75, 0.45
CONTRADICTED = 0.2  # share of places below which a listed word is no name
KNOWN_PLACES = 5  # places from which on a share means something
LENGTHS = range(2, 17)  # of names
LINES = range(5, 301)  # lengths of the lines that the model reads
BATCH = 4_000  # lines

Found = dict[str, Counter[str]]


def lines(path: Path) -> Iterator[str]:
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as stream:
        yield from (line.rstrip("\n") for line in stream)


def sample(path: Path, characters: int, is_held_out: Callable[[str], bool]) -> Iterator[str]:
    """Lines spread evenly over a file, each once, about so many characters."""
    total = sum(len(line) for line in lines(path))
    step, seen, place = max(total / characters, 1.0), set[str](), 0.0
    for number, line in enumerate(lines(path)):
        if number < place:
            continue
        place += step
        if len(line) in LINES and line not in seen and not is_held_out(line):
            seen.add(line)
            yield line


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    texts = iter(texts)
    while some := list(islice(texts, BATCH)):
        yield some


def read(ner: NER, texts: list[str], found: Found) -> None:
    for document in ner.pipe(texts, batch_size=64):
        for entity in document.entities:
            found[ner.normaliser(entity.text).text][entity.label] += 1


def annotated(ner: NER, paths: Iterable[Path], found: Found) -> list[str]:
    """The texts of the corpora; their entities are counted."""
    texts = []
    for path in paths:
        for document in corpus.read(path):
            texts.append(ner.normaliser(document.text).text)
            for entity in document.entities:
                found[ner.normaliser(entity.text).text][entity.label] += 1
    return texts


def places(words: Iterable[str], texts: Iterable[list[str]]) -> Counter[str]:
    """In how many places each word occurs."""
    lexicon, counts = Lexicon(words), Counter[str]()
    for some in texts:
        ids, times = np.unique(lexicon.match_batch(some, 2).word, return_counts=True)
        counts.update(dict(zip(map(lexicon.word, ids.tolist()), times.tolist(), strict=True)))
    return counts


def label_of(word: str, found: Found, occurs: Counter[str], listed: dict[str, str]) -> str:
    """Its label, empty where it has none."""
    if word in found:
        (label, n), total = found[word].most_common(1)[0], found[word].total()
        if n >= LEAST and n >= PURITY * total and total >= SHARE * occurs[word]:
            return label
    if word not in listed:
        return ""
    as_listed = found[word][listed[word]] if word in found else 0
    contradicted = occurs[word] >= KNOWN_PLACES and as_listed < CONTRADICTED * occurs[word]
    return "" if contradicted else listed[word]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--corpus", nargs="*", type=Path, default=[])
    parser.add_argument("--list", nargs="*", default=[], help="FILE=LABEL, or FILE=LABEL:N for words of N or more")
    parser.add_argument("--characters", type=int, default=5_000_000, help="of each file that the model reads")
    parser.add_argument("--held-out", type=Path)
    a = parser.parse_args()

    ner = hanlattice.load(a.model, engine="native", threads=1, int8=supports_int8())
    found = defaultdict[str, Counter[str]](Counter)
    read_texts: list[list[str]] = []
    is_held_out = held_out(a.held_out) if a.held_out else lambda text: False
    for path in a.texts:
        for some in batches(sample(path, a.characters, is_held_out)):
            read(ner, some, found)
            read_texts.append([n.text for n in ner.normaliser.all(some)])
        print(f"{path.name}: {sum(c.total() for c in found.values()):,} entities so far", flush=True)
    read_texts.append(annotated(ner, a.corpus, found))
    listed: dict[str, str] = {}
    for given in a.list:
        path, _, rest = given.partition("=")
        label, _, least = rest.partition(":")
        words = (ner.normaliser(word.text).text for word in Lexicon.open(path).entries())
        listed.update((word, label) for word in words if len(word) >= int(least or 2))
    candidates = [w for w, counts in found.items() if counts.total() >= LEAST and len(w) in LENGTHS]
    candidates = list(dict.fromkeys([*candidates, *(w for w in listed if len(w) in LENGTHS)]))
    occurs = places(candidates, read_texts)
    labels = {word: label for word in candidates if (label := label_of(word, found, occurs, listed))}
    with atomic_write(a.output) as stream:
        stream.writelines(f"{word}\t{label}\n" for word, label in labels.items())
    print(f"{len(labels):,} of {len(candidates):,} candidates have a label: {dict(Counter(labels.values()))}")


if __name__ == "__main__":
    main()
