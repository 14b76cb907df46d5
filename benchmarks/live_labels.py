"""The effect of adding words to the lexicon of a model, without and with labels, on text of another kind.

    python benchmarks/live_labels.py --words TRAIN --test TEST [--map NAME=PER] [--model FOLDER] [--least 2]

Nothing is trained. The words are the entities of TRAIN with at least ``--least`` characters and a label that the
model predicts, after ``--map``. A word with several labels gets the most frequent one. Entities of TEST with other
labels are left out.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document, Entity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", required=True, help="corpus whose entities are the words")
    parser.add_argument("--test", required=True, help="corpus to score on")
    parser.add_argument(
        "--map", default="", help="labels of the corpora and the labels of the model, such as NAME=PER"
    )
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--least", type=int, default=2, help="minimum length of a word")
    options = parser.parse_args()

    names = dict(pair.split("=") for pair in options.map.split(",") if pair)
    ner = hanlattice.load(options.model)
    labels_of: dict[str, Counter[str]] = defaultdict(Counter)
    for document in known(options.words, names, ner.labels):
        for entity in document.entities:
            if len(entity.text) >= options.least:
                labels_of[entity.text][entity.label] += 1
    test = list(known(options.test, names, ner.labels))
    gold = [entity.text for document in test for entity in document.entities]
    seen = sum(text in labels_of for text in gold)
    print(f"{len(labels_of):,} words; {seen:,} of the {len(gold):,} test entities are among them\n")
    print("| the lexicon | P | R | F1 |\n|---|---|---|---|")
    lists: dict[str, list[tuple[str, str | None, None]]] = {
        "unchanged": [],
        "with the words": [(word, None, None) for word in labels_of],
        "with the words and their labels": [
            (word, found.most_common(1)[0][0], None) for word, found in labels_of.items()
        ],
    }
    for title, words in lists.items():
        lexicon = ner.lexicon.copy()
        lexicon.update(words)
        with ner.using(lexicon=lexicon):
            score = hanlattice.evaluate(ner, test).micro
        print(f"| {title} | {100 * score.precision:.2f} | {100 * score.recall:.2f} | {100 * score.f1:.2f} |")


def known(path: str, names: dict[str, str], labels: tuple[str, ...]) -> Iterator[Document]:
    """Documents of a corpus, with the entities whose labels the model can predict, under its label names."""
    for document in corpus.read(path):
        entities = (Entity(e.text, names.get(e.label, e.label), e.start, e.end) for e in document.entities)
        yield Document(document.text, tuple(e for e in entities if e.label in labels))


if __name__ == "__main__":
    main()
