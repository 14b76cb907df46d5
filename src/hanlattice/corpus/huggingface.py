"""Rows of Hugging Face: ``{"tokens": ["李", "明"], "ner_tags": ["B-PER", "I-PER"]}``.

Tokens may be called `TOKENS` and tags `TAGS`; a text in place of tokens has a tag for each character. Tags that are
numbers are read where their names are known, which Parquet and Arrow files of `datasets` say; rows of JSON do not,
and are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hanlattice.corpus import fields, rows, tagging
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import checked
from hanlattice.document import Document

TOKENS = ("tokens", "words", "chars", "characters", "text", "sentence")
TAGS = ("ner_tags", "ner", "tags", "labels", "label", "ner_labels", "bio", "bio_tags")

_FIX = 'write rows such as {"tokens": ["李", "明"], "ner_tags": ["B-PER", "I-PER"]}'
_NAMES = "write the names in place of the numbers: names = dataset.features['ner_tags'].feature.names gives them"


def looks(row: Any) -> str | None:
    """Is there a list of tags, as long as the tokens?"""
    named = _named(row) if isinstance(row, Mapping) and "entities" not in row else None
    return None if named is None else f"rows with {named[0]!r} and {named[1]!r}"


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document a row.

    Raises:
        DataError: a row has no tags, not one for each token, or numbers, and the caller takes no defects.
    """
    source = Source(file, None, on_defect, scheme=scheme, strict=strict)
    return documents(rows.read(lines, file, on_defect), source)


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of such rows."""
    return tagging.documents(_sentences(found, source), source)


def _sentences(found: Iterable[rows.Row], source: Source) -> Iterator[tagging.Sentence]:
    for line, row in found:
        place = source.at(line)
        try:
            yield _sentence(row, place)
        except NotReadable as error:
            place.refuse(error)


def _sentence(row: Any, source: Source) -> tagging.Sentence:
    names = _present(row) if isinstance(row, Mapping) else None
    if names is None:
        raise NotReadable("the row has no list of tokens or none of tags", _FIX)
    columns = dict(row)
    tokens, tags = columns.pop(names[0]), columns.pop(names[1])
    tokens = list(tokens) if isinstance(tokens, str) else checked(tokens, names[0])
    if tags and all(isinstance(tag, int) for tag in tags):
        raise NotReadable(f"the tags under {names[1]!r} are numbers, whose names are not known", _NAMES)
    if not all(isinstance(tag, str) for tag in tags):
        raise NotReadable(f"the tags under {names[1]!r} are not texts", _FIX)
    if len(tokens) != len(tags):
        message = f"{len(tokens)} tokens but {len(tags)} tags"
        raise NotReadable(message, "give every token one tag", "tokens unlike tags")
    fields.report_leftovers(columns, source, annotated=True)
    name = columns.pop("id", None)
    text = columns.pop("text") if isinstance(columns.get("text"), str) else None
    return tagging.Sentence(
        source.line or 1, tokens, tags, in_columns=False, id=None if name is None else str(name), text=text,
        meta=columns,
    )  # fmt: skip


def _named(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The fields of tokens and of tags, of a row that is surely of this format."""
    names = _present(row)
    if names is None:
        return None
    tokens, tags = row[names[0]], row[names[1]]
    if isinstance(tokens, str):
        return names if fields.is_tags(tags) and len(tags) == len(tokens) else None
    return names if all(isinstance(tag, int | str) for tag in tags) else None


def _present(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Tokens in a list go before a text."""
    tags = next((name for name in TAGS if isinstance(row.get(name), list)), None)
    tokens = next((name for name in TOKENS if _is_texts(row.get(name))), None)
    if tokens is None:
        tokens = next((name for name in TOKENS if isinstance(row.get(name), str)), None)
    return None if tags is None or tokens is None else (tokens, tags)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value)
