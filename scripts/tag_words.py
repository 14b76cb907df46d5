"""Make an auxiliary corpus from a segmented, tagged corpus: its words and entities as spans.

    python scripts/tag_words.py 199801.txt --output words.jsonl

The spans are the outermost entities, and the words outside entities with their parts of speech. Punctuation has no
spans. Parts of speech of the People's Daily that differ only in their use are merged, such as morphemes with words.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from hanlattice import corpus
from hanlattice.document import Document, Entity
from hanlattice.spans import first_of_overlapping

SAME = {"vd": "d", "ad": "d", "an": "vn", "o": "y", "e": "y", "k": "y", "h": "y"}
KEPT = frozenset([*"nvadmqrtpcufsbzyilj", "nr", "ns", "nt", "nz", "nx", "vn"])


def part_of_speech(tag: str) -> str:
    """The part of speech of a tag, after merging; empty for punctuation."""
    tag = tag.lower()
    if tag in ("", "w"):
        return ""
    tag = tag[0] if len(tag) == 2 and tag.endswith("g") else tag
    tag = SAME.get(tag, tag)
    return tag if tag in KEPT else "n"


def tagged(document: Document) -> Document:
    """The document with its outermost entities and the words outside them as entities.

    Raises:
        ValueError: the document has no words.
    """
    if document.tokens is None:
        raise ValueError("the corpus has no words; use a segmented corpus such as the People's Daily")
    found = first_of_overlapping(sorted(document.entities, key=lambda e: (e.start, -e.end)))
    inside = {i for entity in found for i in range(entity.start, entity.end)}
    for (start, end), tag in zip(document.tokens, document.meta["pos"], strict=True):
        if (label := part_of_speech(tag)) and inside.isdisjoint(range(start, end)):
            found.append(Entity(document.text[start:end], label, start, end))
    return Document(document.text, tuple(sorted(found, key=lambda e: e.start)), id=document.id)


def documents(paths: list[Path]) -> Iterator[Document]:
    """The converted documents of all corpora."""
    for path in paths:
        yield from map(tagged, corpus.read(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    corpus.write(documents(a.corpora), a.output, "jsonl")


if __name__ == "__main__":
    main()
