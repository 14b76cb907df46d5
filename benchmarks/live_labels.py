"""What words added to a model's lexicon are worth on text of another kind, without and with a label, untrained.

python benchmarks/live_labels.py --words TRAIN --test TEST [--map NAME=PER] [--model FOLDER] [--least 2]

The words are the entities of TRAIN, those of at least ``--least`` characters: of labels that the model knows, after
``--map``. A word of several labels gets the most frequent. What TEST has of other labels is left out.
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
    parser.add_argument("--map", default="", help="labels under the model's names, such as NAME=PER")
    parser.add_argument("--model", help="folder of a model; the packaged one by default")
    parser.add_argument("--least", type=int, default=2)
    options = parser.parse_args()

    names = dict(pair.split("=") for pair in options.map.split(",") if pair)
    ner = hanlattice.load(options.model)
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for document in known(options.words, names, ner.labels):
        for entity in document.entities:
            if len(entity.text) >= options.least:
                kinds[entity.text][entity.label] += 1
    test = list(known(options.test, names, ner.labels))
    gold = [entity.text for document in test for entity in document.entities]
    met = sum(text in kinds for text in gold)
    print(f"{len(kinds):,} words, which are {met:,} of the {len(gold):,} entities of the test\n")
    print("| the lexicon | P | R | F1 |\n|---|---|---|---|")
    lists: dict[str, list[tuple[str, str | None, None]]] = {
        "as it is": [],
        "with the words": [(word, None, None) for word in kinds],
        "with the words and their labels": [
            (word, found.most_common(1)[0][0], None) for word, found in kinds.items()
        ],
    }
    for title, words in lists.items():
        lexicon = ner.lexicon.copy()
        lexicon.update(words)
        with ner.using(lexicon=lexicon):
            score = hanlattice.evaluate(ner, test).micro
        print(f"| {title} | {100 * score.precision:.2f} | {100 * score.recall:.2f} | {100 * score.f1:.2f} |")


def known(path: str, names: dict[str, str], labels: tuple[str, ...]) -> Iterator[Document]:
    """Documents with the entities that the model could find, under its names."""
    for document in corpus.read(path):
        entities = (Entity(e.text, names.get(e.label, e.label), e.start, e.end) for e in document.entities)
        yield Document(document.text, tuple(e for e in entities if e.label in labels))


if __name__ == "__main__":
    main()
