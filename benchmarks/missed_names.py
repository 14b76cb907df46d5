"""Names of annotated text that the model misses: how many it finds after the user adds them, one at a time.

    python benchmarks/missed_names.py CORPUS ... [--model MODEL]

The names are the entities of each CORPUS that have at least two characters, that the model does not predict with
exact boundaries and label, and that are not in its lexicon. Each is added to the lexicon, first without a label and
then with it, and its document is read again.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.pipeline import NER

OUTCOMES = ("right", "another label", "other boundaries", "no entity")


def missed(ner: NER, documents: Sequence[Document]) -> Iterator[tuple[str, Entity]]:
    """The text and the entity of each missed name; an entity whose label the model does not have is left out."""
    for document, found in zip(documents, ner.pipe(d.text for d in documents), strict=True):
        for entity in document.entities:
            is_name = len(entity.text) > 1 and entity.text not in ner.lexicon and entity.label in ner.labels
            if is_name and entity.span not in found.spans:
                yield document.text, entity


def outcome(ner: NER, text: str, entity: Entity, label: str | None) -> str:
    """What the model predicts in place of an entity after its word is added to the lexicon."""
    lexicon = ner.lexicon.copy()
    lexicon.add(entity.text, label)
    with ner.using(lexicon=lexicon):
        found = [e for e in ner(text).entities if e.start < entity.end and e.end > entity.start]
    if any(e.span == entity.span for e in found):
        return "right"
    if any((e.start, e.end) == (entity.start, entity.end) for e in found):
        return "another label"
    return "other boundaries" if found else "no entity"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="CORPUS", type=Path)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    arguments = parser.parse_args()
    ner = hanlattice.load(arguments.model)
    names = [name for path in arguments.corpora for name in missed(ner, list(corpus.read(path)))]
    print(f"{len(names)} missed names\n")
    print(f"| added | {' | '.join(OUTCOMES)} |\n|---|{'---|' * len(OUTCOMES)}")
    for title, labelled in (("without a label", False), ("with its label", True)):
        counts = Counter(outcome(ner, text, entity, entity.label if labelled else None) for text, entity in names)
        print(f"| {title} | {' | '.join(str(counts[one]) for one in OUTCOMES)} |")


if __name__ == "__main__":
    main()
