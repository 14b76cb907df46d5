"""spaCy's DocBin (``.spacy``), which spaCy alone can read: where it is installed it does, else it is named."""

import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import in_order
from hanlattice.corpus.source import Source
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError

_WITHOUT = (
    "is spaCy's DocBin, which spaCy alone reads; install spaCy beside hanlattice, or convert it where spaCy is:"
    ' python -c "import json, spacy; from spacy.tokens import DocBin;'
    " [print(json.dumps([d.text, {'entities': [(e.start_char, e.end_char, e.label_) for e in d.ents]}]))"
    " for d in DocBin().from_disk('{name}').get_docs(spacy.blank('zh').vocab)]\" > corpus.jsonl"
)


def sniff(path: Path) -> str | None:
    """Is it packed as a DocBin is, with its attributes?"""
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as stream:
            unpacked = zlib.decompressobj().decompress(stream.read(1 << 16), 1 << 12)
    except (zlib.error, OSError):
        return None
    return "a DocBin of spaCy" if b"attrs" in unpacked else None


def read(path: str | Path, *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document each, with its tokens; a span group is read where there are no entities.

    Raises:
        DataError: spaCy is not installed, or the file cannot be read; a document has entities and a span group, and
            the caller takes no defects.
    """
    if find_spec("spacy") is None:
        raise DataError(_WITHOUT.replace("{name}", Path(path).name), path)
    import spacy
    from spacy.tokens import DocBin

    try:
        found = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    except (ValueError, KeyError, OSError) as error:
        raise DataError(
            f"cannot be read as spaCy's DocBin: {' '.join(str(error).split())}; make it again", path
        ) from None
    for number, doc in enumerate(found, 1):
        yield _document(doc, Source(str(path), number, on_defect))


def _document(doc: Any, source: Source) -> Document:
    groups = [span for group in doc.spans.values() for span in group]
    if groups and doc.ents:
        message = f"there are entities, and {len(groups)} spans in groups, which are not read"
        source.defect("span groups", message, "keep either doc.ents or doc.spans")
    found = in_order(
        Entity(span.text, span.label_, span.start_char, span.end_char) for span in (doc.ents or groups)
    )
    tokens = tuple((token.idx, token.idx + len(token)) for token in doc)
    alone = all(end - start == 1 for start, end in tokens) and len(tokens) == len(doc.text)
    return Document(doc.text, found, tokens=None if alone else tokens, meta={"@line": source.line})
