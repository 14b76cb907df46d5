"""Raw text annotated by a model: sentences in which it is sure of everything that it finds.

    python scripts/silver.py TEXT… --model MODEL --output silver.jsonl [--held-out held_out.py]

``--characters`` of each file are read. A sentence is kept if the model finds something in it, each entity with a
confidence of at least ``--least``; lines that ``--held-out`` names are left out. See scripts/gazetteer.py.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gazetteer import batches, sample
from open_corpora import held_out

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.kernels.library import can_multiply_bytes
from hanlattice.text import sentences

LENGTHS = range(6, 121)  # of sentences


def cut(line: str) -> Iterator[str]:
    """The sentences of a line, short lines whole."""
    if len(line) in LENGTHS:
        yield line
        return
    yield from (text for start, end in sentences(line) if len(text := line[start:end].strip()) in LENGTHS)


def annotated(texts: list[str], ner: hanlattice.NER, least: float) -> Iterator[Document]:
    for document in ner.pipe(texts, batch_size=64):
        if document.entities and all((e.score or 0.0) >= least for e in document.entities):
            yield Document(document.text, document.entities)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--characters", type=int, default=600_000, help="of each file")
    parser.add_argument("--least", type=float, default=0.8, help="confidence of every entity of a sentence")
    parser.add_argument("--held-out", type=Path)
    a = parser.parse_args()
    ner = hanlattice.load(a.model, engine="native", threads=1, int8=can_multiply_bytes())
    is_held_out = held_out(a.held_out) if a.held_out else lambda text: False
    kept: list[Document] = []
    for path in a.texts:
        for some in batches(sample(path, a.characters, is_held_out)):
            kept += annotated([text for line in some for text in cut(line)], ner, a.least)
        print(f"{path.name}: {len(kept):,} sentences so far", flush=True)
    corpus.write(kept, a.output, "jsonl")
    print(dict(Counter(e.label for d in kept for e in d.entities)))


if __name__ == "__main__":
    main()
