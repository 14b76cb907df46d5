"""Build a gazetteer from names that a model finds in raw text, annotated names, and typed word lists.

    python scripts/gazetteer.py TEXT… --model MODEL --corpus ANNOTATED… --list FILE=LABEL… --output gazetteer.txt

TEXT are files of running text, plain or compressed with xz, with one paragraph per line. MODEL annotates
``--characters`` of each file; without TEXT, only its normalisation is used. ANNOTATED are corpora with the labels
of the gazetteer. A string gets a label if it was predicted or annotated at least ``--least`` times, if at least
``MIN_PURITY`` of these entities have that label, and if it is an entity in at least ``MIN_SHARE`` of its
occurrences. A word of a typed list keeps the label of its list unless the texts contradict it. A name of
``--names`` keeps its label unless the texts give it another one, have it often and hardly ever as an entity, or
never have it. Screen names behind ``@`` do not count: they show what they are, and nearly any string can be one. A
string that the corpora of ``--check`` have often, and hardly ever as an entity, loses its label.

``--held-out`` is a Python file with a class ``HeldOut``. An instance of it, called with a text, returns whether the
text is held out. Lines that are held out are not used, nor are those that share 13 consecutive characters with a
corpus of ``--aside``. The output, ``word<TAB>label``, is a lexicon file.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.atomic import atomic_write
from hanlattice.compressed import decompressed_lines
from hanlattice.document import Document
from hanlattice.kernels.library import supports_int8
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from hanlattice.training.distillation import sample
from left_out import left_out

MIN_PURITY, MIN_SHARE = 0.75, 0.45
LEAST = 3
MIN_LISTED_SHARE = 0.2  # a listed word that is an entity in fewer of its occurrences loses its label
MIN_OCCURRENCES = 5  # with fewer occurrences, a listed word keeps its label
MIN_NAMED_SHARE = 0.05  # a name that is an entity in fewer of its occurrences loses its label
MIN_NAMED_OCCURRENCES = 50  # with fewer occurrences, a name keeps its label
NAME_LENGTHS = range(2, 17)  # characters
LINE_LENGTHS = range(5, 301)  # characters; the model reads only such lines
BATCH = 4_000  # lines

LabelCounts = dict[str, Counter[str]]  # of each string, how often it is an entity with each label


def distinct_lines(path: Path, characters: int, is_held_out: Callable[[str], bool]) -> Iterator[str]:
    """The lines that the model reads, from lines with about ``characters`` characters spread over a file."""
    for line in dict.fromkeys(sample(decompressed_lines(path), characters)):
        if len(line) in LINE_LENGTHS and not is_held_out(line):
            yield line


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in lists of ``BATCH``."""
    texts = iter(texts)
    while batch := list(islice(texts, BATCH)):
        yield batch


def count_names(ner: NER, document: Document, found: LabelCounts) -> None:
    """Add the entities of a document to ``found``, except screen names behind ``@``."""
    for entity in document.entities:
        if not document.text.endswith("@", 0, entity.start):
            found[ner.normaliser(entity.text).text][entity.label] += 1


def count_predicted(ner: NER, texts: list[str], found: LabelCounts) -> None:
    """Add the entities that the model predicts in the texts to ``found``."""
    for document in ner.pipe(texts, batch_size=64):
        count_names(ner, document, found)


def count_annotated(ner: NER, paths: Iterable[Path], found: LabelCounts) -> list[str]:
    """Add the entities of the corpora to ``found``, and return the texts of the corpora."""
    texts = []
    for path in paths:
        for document in corpus.read(path):
            texts.append(ner.normaliser(document.text).text)
            count_names(ner, document, found)
    return texts


def count_occurrences(words: Iterable[str], batches: Iterable[list[str]]) -> Counter[str]:
    """How often each word occurs in the texts."""
    lexicon, counts = Lexicon(words), Counter[str]()
    for batch in batches:
        ids, times = np.unique(lexicon.match_batch(batch, 2).word, return_counts=True)
        counts.update(dict(zip(map(lexicon.word, ids.tolist()), times.tolist(), strict=True)))
    return counts


def is_rarely_a_name(entities: int, occurrences: int) -> bool:
    """Whether a string is in the texts often, and hardly ever as an entity."""
    return occurrences >= MIN_NAMED_OCCURRENCES and entities < MIN_NAMED_SHARE * occurrences


def without_ordinary_words(labels: Mapping[str, str], ner: NER, paths: Sequence[Path]) -> dict[str, str]:
    """The labels of words without those that the corpora contradict (:func:`is_rarely_a_name`)."""
    found = defaultdict[str, Counter[str]](Counter)
    occurrences = count_occurrences(labels, [count_annotated(ner, paths, found)])
    return {
        word: label
        for word, label in labels.items()
        if not is_rarely_a_name(found[word].total() if word in found else 0, occurrences[word])
    }


def label_of(
    word: str,
    found: LabelCounts,
    occurrences: Counter[str],
    listed: dict[str, str],
    names: dict[str, str],
    least: int = LEAST,
) -> str:
    """The label of a word; empty if it has none.

    Args:
        word: a candidate for the gazetteer
        found: how often each string is an entity with each label
        occurrences: how often each candidate occurs in the texts
        listed: labels of the words of typed lists
        names: labels of names, which count more
        least: a string that is an entity less often has no label, unless it is listed or a name
    """
    if word in found:
        (label, n), total = found[word].most_common(1)[0], found[word].total()
        if n >= least and n >= MIN_PURITY * total and total >= MIN_SHARE * occurrences[word]:
            return label
    if word in names and occurrences[word]:
        total = found[word].total() if word in found else 0
        return "" if is_rarely_a_name(total, occurrences[word]) else names[word]
    if word not in listed:
        return ""
    as_listed = found[word][listed[word]] if word in found else 0
    n_occurrences = occurrences[word]
    contradicted = n_occurrences >= MIN_OCCURRENCES and as_listed < MIN_LISTED_SHARE * n_occurrences
    return "" if contradicted else listed[word]


def listed_words(ner: NER, lists: Iterable[str]) -> dict[str, str]:
    """The labels of the words of typed lists, which ``--list`` names."""
    listed: dict[str, str] = {}
    for given in lists:
        path, _, rest = given.partition("=")
        label, _, least = rest.partition(":")
        words = (ner.normaliser(word.text).text for word in Lexicon.open(path).entries())
        listed.update((word, label) for word in words if len(word) >= int(least or 2))
    return listed


def named(ner: NER, paths: Iterable[Path]) -> dict[str, str]:
    """The labels of the names in lexicon files; words without a label are left out."""
    words = (word for path in paths for word in Lexicon.open(path).entries())
    return {ner.normaliser(word.text).text: word.label for word in words if word.label}


def candidates_of(found: LabelCounts, known: Iterable[str], least: int) -> list[str]:
    """The strings that are an entity ``least`` times or more, and the known ones; all have the length of a name."""
    frequent = (word for word, counts in found.items() if counts.total() >= least)
    return [word for word in dict.fromkeys([*frequent, *known]) if len(word) in NAME_LENGTHS]


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--corpus", nargs="*", type=Path, default=[])
    parser.add_argument(
        "--check",
        nargs="*",
        type=Path,
        default=[],
        help="corpora in which words that are rarely names lose their labels",
    )
    parser.add_argument(
        "--list", nargs="*", default=[], help="FILE=LABEL, or FILE=LABEL:N for words with at least N characters"
    )
    parser.add_argument(
        "--names", nargs="*", type=Path, default=[], help="lexicon files with a label for each name"
    )
    parser.add_argument(
        "--characters", type=int, default=5_000_000, help="how many characters of each file the model reads"
    )
    parser.add_argument(
        "--least", type=int, default=LEAST, help="least number of times that a name is annotated or predicted"
    )
    parser.add_argument("--held-out", type=Path, help="Python file with a class HeldOut")
    parser.add_argument("--aside", nargs="*", type=Path, default=[], help="corpora for evaluation")
    return parser.parse_args()


def main() -> None:
    a = arguments()
    ner = hanlattice.load(a.model, engine="native", threads=1, int8=supports_int8())
    found = defaultdict[str, Counter[str]](Counter)
    text_batches: list[list[str]] = []
    is_held_out = left_out(a.held_out, a.aside)
    for path in a.texts:
        for batch in batches(distinct_lines(path, a.characters, is_held_out)):
            count_predicted(ner, batch, found)
            text_batches.append([n.text for n in ner.normaliser.all(batch)])
        print(f"{path.name}: {sum(c.total() for c in found.values()):,} entities so far", flush=True)
    text_batches.append(count_annotated(ner, a.corpus, found))
    listed, names = listed_words(ner, a.list), named(ner, a.names)
    candidates = candidates_of(found, [*listed, *names], a.least)
    occurrences = count_occurrences(candidates, text_batches)
    labels = {
        word: label for word in candidates if (label := label_of(word, found, occurrences, listed, names, a.least))
    }
    if a.check:
        labels = without_ordinary_words(labels, ner, a.check)
    with atomic_write(a.output) as stream:
        stream.writelines(f"{word}\t{label}\n" for word, label in labels.items())
    print(f"{len(labels):,} of {len(candidates):,} candidates have a label: {dict(Counter(labels.values()))}")


if __name__ == "__main__":
    main()
