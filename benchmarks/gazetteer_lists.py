"""What the words of a gazetteer are worth to a trained model: scores without those of one list, or of one label.

    python benchmarks/gazetteer_lists.py TEXT… --list FILE… [--model FOLDER]

TEXT are annotated corpora. Each FILE is a word list. The words that have a label in the lexicon of the model are
removed from it if they are in the list, and all texts are read again. Nothing is trained, so this is not what the
list is worth in training. A word that is in several lists is removed with each.
"""

import argparse
from collections.abc import Collection, Iterable
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.lexicon.wordlist import read_words


def words_of(path: Path) -> set[str]:
    """The words of a list."""
    return {entry if isinstance(entry, str) else entry[0] for entry in read_words(path)}


def f1_without(ner: hanlattice.NER, removed: Iterable[str], corpora: Collection[list[Document]]) -> list[float]:
    """Micro F1 in percent on each corpus after some words are removed from the lexicon."""
    lexicon = ner.lexicon.copy()
    for word in removed:
        lexicon.remove(word)
    with ner.using(lexicon=lexicon):
        found = [[document.spans for document in ner.pipe(d.text for d in given)] for given in corpora]
    return [
        100 * evaluate_spans([d.spans for d in given], own).micro.f1
        for given, own in zip(corpora, found, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="TEXT", type=Path)
    parser.add_argument("--list", nargs="+", default=[], metavar="FILE", type=Path, help="word lists")
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    a = parser.parse_args()
    ner = hanlattice.load(a.model)
    label_of = {entry.text: entry.label for entry in ner.lexicon.entries() if entry.label}
    removed: dict[str, Collection[str]] = {"nothing": ()}
    for path in a.list:
        removed[path.name] = words_of(path) & label_of.keys()
    for label in sorted(set(label_of.values())):
        removed[label] = [word for word, own in label_of.items() if own == label]
    removed["all words with a label"] = list(label_of)
    corpora = [list(corpus.read(path)) for path in a.corpora]
    print("| removed | words |" + "".join(f" {path.stem} |" for path in a.corpora))
    print("|---" * (2 + len(corpora)) + "|")
    for name, words in removed.items():
        scores = "".join(f" {f1:.2f} |" for f1 in f1_without(ner, words, corpora))
        print(f"| {name} | {len(words):,} |{scores}", flush=True)


if __name__ == "__main__":
    main()
