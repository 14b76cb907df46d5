"""doccano's JSON lines for sequence labelling: ``{"id", "text", "label": [[start, end, "LABEL"], …]}``."""

from collections.abc import Iterable
from typing import IO

from hanlattice.corpus import jsonl, rows
from hanlattice.document import Document


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One row a document; other columns come along, as doccano's metadata. `jsonl.read` reads them."""
    for document in documents:
        label = [[entity.start, entity.end, entity.label] for entity in document.entities]
        name = {} if document.id is None else {"id": document.id}
        rows.write({**name, "text": document.text, "label": label, **jsonl.extra(document)}, stream)
