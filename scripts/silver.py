"""Annotate raw text by a vote of several models.

    python scripts/silver.py TEXT… --models MODEL MODEL MODEL --output silver.jsonl [--held-out held_out.py]

The models read ``--characters`` of each file. An entity is accepted if more than half of the models predict it with
the same label. A sentence is kept if it has an accepted entity, and if at most ``--contested`` of its entities were
predicted by some models but not by all. ``--held-out`` and ``--aside`` work as in
scripts/gazetteer.py.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import hanlattice
from gazetteer import batches, distinct_lines
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.kernels.library import supports_int8
from hanlattice.training.distillation import sentences_of, voted
from left_out import left_out


def annotated(texts: list[str], models: Sequence[hanlattice.NER], contested: int) -> Iterator[Document]:
    """The sentences that are kept, with the accepted entities."""
    predictions = [[d.entities for d in ner.pipe(texts, batch_size=64)] for ner in models]
    for text, *found in zip(texts, *predictions, strict=True):
        accepted, disputed = voted(found)
        if accepted and disputed <= contested:
            yield Document(text, tuple(Entity.of(text, span) for span in accepted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--characters", type=int, default=600_000, help="how many characters of each file are read")
    parser.add_argument("--contested", type=int, default=1, help="how many entities of a sentence may be contested")
    parser.add_argument("--held-out", type=Path, help="Python file with a class HeldOut")
    parser.add_argument("--aside", nargs="*", type=Path, default=[], help="corpora for evaluation")
    a = parser.parse_args()
    int8 = supports_int8()
    models = [hanlattice.load(model, engine="native", threads=1, int8=int8) for model in a.models]
    is_held_out = left_out(a.held_out, a.aside)
    kept: list[Document] = []
    for path in a.texts:
        for batch in batches(distinct_lines(path, a.characters, is_held_out)):
            kept += annotated([text for line in batch for text in sentences_of(line)], models, a.contested)
        print(f"{path.name}: {len(kept):,} sentences so far", flush=True)
    corpus.write(kept, a.output, "jsonl")
    print(dict(Counter(e.label for d in kept for e in d.entities)))


if __name__ == "__main__":
    main()
