"""Raw text annotated by a vote of models.

    python scripts/silver.py TEXT… --models MODEL MODEL MODEL --output silver.jsonl [--held-out held_out.py]

``--characters`` of each file are read. An entity stands if more than half of the models find it with its label. A
sentence is kept if one stands, and if at most ``--contested`` entities were found by some models but not by all.
Lines that ``--held-out`` names are left out: see scripts/gazetteer.py.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import hanlattice
from gazetteer import batches, sample
from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.kernels.library import supports_int8
from hanlattice.spans import Span
from hanlattice.text.windows import sentences
from open_corpora import held_out

LENGTHS = range(6, 121)  # of sentences


def cut(line: str) -> Iterator[str]:
    """The sentences of a line, short lines whole."""
    if len(line) in LENGTHS:
        yield line
        return
    yield from (text for start, end in sentences(line) if len(text := line[start:end].strip()) in LENGTHS)


def voted(found: Sequence[Sequence[Span]]) -> tuple[list[Span], int]:
    """The spans that more than half of the models found, and how many spans were found by some but not by all."""
    votes = Counter(span for spans in found for span in spans)
    stand = sorted(span for span, n in votes.items() if 2 * n > len(found))
    apart = [s for i, s in enumerate(stand) if not i or stand[i - 1].end <= s.start]
    return apart, sum(n < len(found) for n in votes.values())


def annotated(texts: list[str], models: Sequence[hanlattice.NER], contested: int) -> Iterator[Document]:
    answers = [[d.spans for d in ner.pipe(texts, batch_size=64)] for ner in models]
    for text, *found in zip(texts, *answers, strict=True):
        stand, disputed = voted(found)
        if stand and disputed <= contested:
            yield Document(text, tuple(Entity.of(text, span) for span in stand))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--characters", type=int, default=600_000, help="of each file")
    parser.add_argument("--contested", type=int, default=1, help="entities of a sentence that not all models find")
    parser.add_argument("--held-out", type=Path)
    a = parser.parse_args()
    int8 = supports_int8()
    models = [hanlattice.load(model, engine="native", threads=1, int8=int8) for model in a.models]
    is_held_out = held_out(a.held_out) if a.held_out else lambda text: False
    kept: list[Document] = []
    for path in a.texts:
        for some in batches(sample(path, a.characters, is_held_out)):
            kept += annotated([text for line in some for text in cut(line)], models, a.contested)
        print(f"{path.name}: {len(kept):,} sentences so far", flush=True)
    corpus.write(kept, a.output, "jsonl")
    print(dict(Counter(e.label for d in kept for e in d.entities)))


if __name__ == "__main__":
    main()
