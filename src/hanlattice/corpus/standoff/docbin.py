"""spaCy's DocBin (``.spacy``), read by spaCy.

If spaCy is not installed, the error names a command that converts the file where it is.
"""

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

_WITHOUT_SPACY = (
    "is spaCy's DocBin, which only spaCy can read; install spaCy, or convert the file where spaCy is installed:"
    ' python -c "import json, spacy; from spacy.tokens import DocBin;'
    " [print(json.dumps([d.text, {'entities': [(e.start_char, e.end_char, e.label_) for e in d.ents]}]))"
    " for d in DocBin().from_disk('{name}').get_docs(spacy.blank('zh').vocab)]\" > corpus.jsonl"
)


def sniff(path: Path) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: the file is compressed like a DocBin and starts with its attributes.
    """
    if not path.is_file():
        return None
    try:
        with open(path, "rb") as stream:
            unpacked = zlib.decompressobj().decompress(stream.read(1 << 16), 1 << 12)
    except (zlib.error, OSError):
        return None
    return "a DocBin of spaCy" if b"attrs" in unpacked else None


def read(path: str | Path, *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """The documents with their tokens. Span groups are read if a document has no ``ents``.

    Raises:
        DataError: spaCy is not installed, or the file cannot be read, or a document has both ``ents`` and span
            groups and there is no ``on_defect``; with it, the span groups are reported and left out.
    """
    if find_spec("spacy") is None:
        raise DataError(_WITHOUT_SPACY.replace("{name}", Path(path).name), path)
    import spacy
    from spacy.tokens import DocBin

    try:
        found = DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    except (ValueError, KeyError, OSError) as error:
        raise DataError(
            f"cannot be read as spaCy's DocBin: {' '.join(str(error).split())}; create it again", path
        ) from None
    for number, doc in enumerate(found, 1):
        yield _document(doc, Source(str(path), number, on_defect))


def _document(doc: Any, source: Source) -> Document:
    groups = [span for group in doc.spans.values() for span in group]
    if groups and doc.ents:
        message = f"the document has entities and {len(groups)} spans in groups, which are not read"
        source.defect("span groups", message, "keep either doc.ents or doc.spans")
    found = in_order(
        Entity(span.text, span.label_, span.start_char, span.end_char) for span in (doc.ents or groups)
    )
    tokens = tuple((token.idx, token.idx + len(token)) for token in doc)
    are_characters = all(end - start == 1 for start, end in tokens) and len(tokens) == len(doc.text)
    return Document(doc.text, found, tokens=None if are_characters else tokens, meta={"@line": source.line})
