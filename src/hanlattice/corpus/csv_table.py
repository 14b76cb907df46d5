"""CSV and tables with tabs, under a row of names: a token and its tag a row, or a text and its entities.

Of tokens, a column of sentences (a number, or Kaggle's ``Sentence: 1``, which may stand on the first row alone) or
an empty row ends a sentence; other columns are kept. Entities of a text are JSON, or lists as Python prints
them, in a shape that `hanlattice.corpus.shapes` knows; or one tag for each token or character, with blanks between.
"""

import ast
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from hanlattice.corpus import rows, shapes, tagging
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.fields import is_tag
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_TOKENS = ("token", "word", "char", "character", "tokens", "words", "字", "词")
_TAGS = ("tag", "ner_tag", "ner", "label", "ner_tags", "tags", "labels", "bio", "标签")
_TEXTS = ("text", "sentence", "content", "文本")
_ENTITIES = ("entities", "annotations", "spans", "mentions", "label", "labels", "ner", "tags", "ner_tags", "实体")
_SENTENCES = ("sentence #", "sentence", "sentence_id", "sent_id", "sentence_idx", "sent", "doc_id", "句子")

_HEAD = 500
"""Rows by which the shape of entities is known."""

_FIX = "name the columns token and tag, or text and entities"


class _Layout(NamedTuple):
    """The columns that matter, by number: of tokens and tags, or of texts and entities."""

    names: list[str]
    delimiter: str
    of_tokens: bool
    text: int
    labels: int
    sentence: int | None


def sniff(head: Sequence[str]) -> str | None:
    """Does it begin with a row of names, among them those of tokens and tags, or of texts and entities?"""
    layout = _layout(next((line for line in head if line.strip()), ""))
    if layout is None:
        return None
    return f"a first row with {layout.names[layout.text]!r} and {layout.names[layout.labels]!r}"


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    ends: str | None = None,
    units: str | None = None,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document a sentence of tokens, or a text.

    Raises:
        DataError: there is no such row of names, or a row is not of its form, and the caller takes no defects.
    """
    source = Source(file, None, on_defect, ends, units, scheme, strict)
    numbered = ((number, line) for number, line in enumerate(lines, 1))
    number, first = next((found for found in numbered if found[1].strip()), (1, ""))
    layout = _layout(first)
    if layout is None:
        source.defect("unknown columns", f"no columns are known in {first[:60]!r}", _FIX, line=number)
        return
    table = _rows((line for _, line in numbered), layout, source.at(number + 1))
    if layout.of_tokens:
        yield from tagging.documents(_sentences(table, layout, source), source)
    else:
        yield from _texts(table, layout, source)


def _layout(first: str) -> _Layout | None:
    """Tokens go before texts, for a column ``sentence`` may number them."""
    for delimiter in (",", "\t", ";"):
        try:
            names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
        except csv.Error:  # a field longer than any name of a column
            continue
        known = [name.lower() for name in names]
        for of_tokens, texts, labels in ((True, _TOKENS, _TAGS), (False, _TEXTS, _ENTITIES)):
            text, label = _place(known, texts), _place(known, labels)
            if len(names) > 1 and text is not None and label is not None and text != label:
                sentence = _place(known, _SENTENCES) if of_tokens else None
                return _Layout(names, delimiter, of_tokens, text, label, sentence)
    return None


def _place(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _rows(lines: Iterable[str], layout: _Layout, source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows below the names with the line each begins on; empty ones stay, as they may end sentences."""
    for line, row in _split(lines, layout, source):
        if any(row) and len(row) != len(layout.names):
            message = f"{len(row)} columns, but {len(layout.names)} names"
            source.defect("missing column", message, "put fields that hold a delimiter into quotes", line=line)
        else:
            yield line, row


def _split(lines: Iterable[str], layout: _Layout, source: Source) -> Iterator[tuple[int, list[str]]]:
    first = line = source.line or 1
    if layout.of_tokens and layout.delimiter == "\t":  # where a quote may be a token like any other
        for line, text in enumerate(lines, first):
            yield line, [_unquoted(field) for field in text.split("\t")]
        return
    reader = csv.reader((line + "\n" for line in lines), delimiter=layout.delimiter, strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            source.defect(
                "not CSV", f"not CSV: {error}", "close quotes, and write a quote within as two", line=line
            )
        else:
            yield line, row
        line = first + reader.line_num


def _unquoted(field: str) -> str:
    is_quoted = len(field) > 2 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if is_quoted else field


def _sentences(
    table: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source
) -> Iterator[tagging.Sentence]:
    sentence: tagging.Sentence | None = None
    now = ""
    others = [i for i in range(len(layout.names)) if i not in (layout.text, layout.labels, layout.sentence)]
    for line, row in table:
        name = row[layout.sentence] if any(row) and layout.sentence is not None else now
        if not any(row) or (name and name != now):
            if sentence is not None:
                yield sentence
            sentence = None
        if not any(row):
            continue
        now = name or now
        if sentence is None:
            sentence = tagging.Sentence(line, [], [], [] if others else None, id=now or None)
        tag = row[layout.labels].strip()
        if not tag:
            source.defect(
                "missing tag", f"no tag for {row[layout.text]!r}", "write O outside of entities", line=line
            )
        sentence.tokens.append(row[layout.text] or " ")
        sentence.tags.append(tag or "O")
        if sentence.columns is not None:
            sentence.columns.append([row[i] for i in others])
    if sentence is not None:
        yield sentence


def _texts(table: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[Document]:
    """Rows whose entities are tags become sentences; the others are rows of a format that holds a text."""
    found = ((line, row) for line, row in table if any(row))
    head = list(islice(found, _HEAD))
    whole = chain(head, found)
    if any(_tags(row[layout.labels]) for _, row in head):
        yield from tagging.documents(_tagged(whole, layout, source), source)
        return
    values = _values(whole, layout, source)
    first = list(islice(values, _HEAD))
    detected = shapes.recognise([row for _, row in first])
    if detected is not None:
        yield from shapes.SHAPES[detected.format].documents(chain(first, values), source)


def _tagged(found: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[tagging.Sentence]:
    for line, row in found:
        text, tags = row[layout.text], row[layout.labels].split()
        tokens = next((tokens for tokens in (text.split(), list(text)) if len(tokens) == len(tags)), None)
        if tokens is None:
            message = f"{len(text.split())} tokens but {len(tags)} tags"
            source.defect("tokens unlike tags", message, "give every token one tag", line=line)
        else:
            meta = _others(row, layout)
            name = meta.pop("id", None)
            yield tagging.Sentence(line, tokens, tags, in_columns=False, id=name, text=text, meta=meta)


def _values(found: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[rows.Row]:
    for line, row in found:
        try:
            entities = _value(row[layout.labels])
        except NotReadable as error:
            source.at(line).refuse(error)
        else:
            yield line, {**_others(row, layout), "text": row[layout.text], "entities": entities}


def _others(row: Sequence[str], layout: _Layout) -> dict[str, Any]:
    return {
        name: row[i]
        for i, name in enumerate(layout.names)
        if i not in (layout.text, layout.labels) and row[i] != ""
    }


def _value(field: str) -> Any:
    """JSON, or a list as Python prints it; tuples become lists.

    Raises:
        NotReadable: it is neither.
    """
    for parse in (json.loads, ast.literal_eval):
        try:
            value = json.loads(json.dumps(parse(field.strip() or "[]")))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    message = f"the entities {field[:40]!r} are neither JSON nor a list of Python"
    raise NotReadable(message, 'write [{"start": 0, "end": 2, "label": "PER"}], in quotes')


def _tags(field: str) -> list[str]:
    tags = field.split()
    return tags if all(map(is_tag, tags)) else []
