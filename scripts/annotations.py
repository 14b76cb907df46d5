"""Annotations of sentences whose text is not part of this repository: entities as offsets, sentences as digests.

    python scripts/annotations.py ANNOTATED.jsonl annotations/open.tsv

A row is ``source<TAB>digest<TAB>start-end:LABEL …``. The source is a file of raw text, or a corpus of
scripts/open_corpora.py, which finds the sentences again. The digest is the BLAKE2b hash of the sentence, 8 bytes in
hexadecimal. Offsets are half-open and count characters. ANNOTATED has rows of our JSONL format with the source as
``genre``.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hanlattice import corpus
from hanlattice.atomic import atomic_write
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError
from hanlattice.spans import Span

OPEN = Path(__file__).parents[1] / "annotations" / "open.tsv"

Annotations = Mapping[str, tuple[Span, ...]]  # the entities of a sentence, by its digest


def digest(text: str) -> str:
    """The digest by which a sentence is found again."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def spans_of(fields: str) -> tuple[Span, ...]:
    """The entities in the last column of a row.

    Raises:
        ValueError: an entity is not ``start-end:LABEL``.
    """
    spans = []
    for field in fields.split():
        offsets, _, label = field.partition(":")
        start, end = map(int, offsets.split("-"))
        if not (label and 0 <= start < end):
            raise ValueError(field)
        spans.append(Span(start, end, label))
    return tuple(spans)


def read(path: Path = OPEN) -> dict[str, Annotations]:
    """The annotations of each source.

    Raises:
        DataError: a row is not of this format.
    """
    found: defaultdict[str, dict[str, tuple[Span, ...]]] = defaultdict(dict)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                source, key, fields = line.rstrip("\n").split("\t")
                found[source][key] = spans_of(fields)
            except ValueError:
                raise DataError("not a row of source, digest and start-end:LABEL", path, number) from None
    return dict(found)


def annotated(texts: Iterable[str], annotations: Annotations, source: str) -> Iterator[Document]:
    """The texts that have annotations, each once, with their entities; the others are left out.

    Raises:
        DataError: an annotation is left whose text is not among the texts, or an entity ends behind its text.
    """
    left = dict(annotations)
    for text in texts:
        spans = left.pop(digest(text), None)
        if spans is None:
            continue
        if any(span.end > len(text) for span in spans):
            raise DataError(f"an entity of sentence {digest(text)} of {source} ends behind the sentence")
        yield Document(text, tuple(Entity.of(text, span) for span in spans), meta={"genre": source})
    if left:
        raise DataError(
            f"{len(left):,} annotated sentences are not in {source}, such as {next(iter(left))}:"
            " the annotations were made with another version of it"
        )


def rows(documents: Iterable[Document]) -> Iterator[str]:
    """A row for each document, without its text."""
    for d in documents:
        fields = " ".join(f"{e.start}-{e.end}:{e.label}" for e in d.entities)
        yield f"{d.meta['genre']}\t{digest(d.text)}\t{fields}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=Path)
    parser.add_argument("output", type=Path)
    a = parser.parse_args()
    with atomic_write(a.output) as stream:
        stream.writelines(sorted(rows(corpus.read(a.documents))))


if __name__ == "__main__":
    main()
