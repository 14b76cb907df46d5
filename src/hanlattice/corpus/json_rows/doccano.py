"""doccano's JSON lines for sequence labelling: ``{"id", "text", "label": [[start, end, "LABEL"], …]}``.

`hanlattice.corpus.json_rows.jsonl` reads them.
"""

from collections.abc import Iterable
from typing import IO

from hanlattice.corpus.json_rows import jsonl
from hanlattice.corpus.json_rows.rows import write_row
from hanlattice.document import Document


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write one row per document. Other columns are written too; doccano imports them as metadata.

    Columns that clash with the fields of the row are left out.
    """
    for document in documents:
        label = [[entity.start, entity.end, entity.label] for entity in document.entities]
        name = {} if document.id is None else {"id": document.id}
        columns = jsonl.extra(document, clashing(document))
        write_row({**name, "text": document.text, "label": label, **columns}, stream)


def clashing(document: Document) -> set[str]:
    """The columns that a row cannot hold; see `hanlattice.corpus.json_rows.jsonl.clashing`."""
    return jsonl.clashing(document, "label")
