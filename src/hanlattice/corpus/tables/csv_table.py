"""CSV and TSV with a header: each row holds a token and its tag, or a text and its entities.

Rows of tokens: a sentence ends at an empty row, or where the value of a sentence column changes, such as a number
or Kaggle's ``Sentence: 1``. A row without a value belongs to the same sentence as the row before. Other columns are
kept.

Rows of texts: the entities are JSON or a printed Python list, in one of the formats of
`hanlattice.corpus.json_rows.row_formats`, or tags separated by spaces, one per token or character.
"""

import ast
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, Unpack

from hanlattice.corpus.json_rows.row_formats import ROW_FORMATS, recognise
from hanlattice.corpus.json_rows.rows import Row
from hanlattice.corpus.source import NotReadable, Options, Source
from hanlattice.corpus.tagged import decoding
from hanlattice.corpus.tagged.tags import is_tag
from hanlattice.document import Document

_TOKENS = ("token", "word", "char", "character", "tokens", "words", "字", "词")
_TAGS = ("tag", "ner_tag", "ner", "label", "ner_tags", "tags", "labels", "bio", "标签")
_TEXTS = ("text", "sentence", "content", "文本")
_ENTITIES = ("entities", "annotations", "spans", "mentions", "label", "labels", "ner", "tags", "ner_tags", "实体")
_SENTENCES = ("sentence #", "sentence", "sentence_id", "sent_id", "sentence_idx", "sent", "doc_id", "句子")

_HEAD = 500
"""Number of rows from which the format of the entities is recognised."""

_FIX = "name the columns token and tag, or text and entities"


class _Layout(NamedTuple):
    """Names and delimiter of the columns, and the indices of the columns that are read.

    ``of_tokens``: each row holds a token in ``text`` and its tag in ``labels``; otherwise a text and its entities.
    """

    names: list[str]
    delimiter: str
    of_tokens: bool
    text: int
    labels: int
    sentence: int | None


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: the first row names columns of tokens and tags, or of texts and entities.
    """
    layout = _layout(next((line for line in head if line.strip()), ""))
    if layout is None:
        return None
    return f"a first row with {layout.names[layout.text]!r} and {layout.names[layout.labels]!r}"


def read(lines: Iterable[str], file: str = "-", **options: Unpack[Options]) -> Iterator[Document]:
    """One document per sentence or per text. The options are those of `hanlattice.corpus.read`.

    Raises:
        DataError: the header or a row cannot be read, and there is no ``on_defect``.
    """
    source = Source(file, **options)
    numbered = ((number, line) for number, line in enumerate(lines, 1))
    number, first = next((found for found in numbered if found[1].strip()), (1, ""))
    layout = _layout(first)
    if layout is None:
        source.defect("unknown columns", f"the header {first[:60]!r} names no known columns", _FIX, line=number)
        return
    table = _rows((line for _, line in numbered), layout, source.at(number + 1))
    if layout.of_tokens:
        yield from decoding.documents(_sentences(table, layout, source), source)
    else:
        yield from _texts(table, layout, source)


def _layout(first: str) -> _Layout | None:
    """The layout that a header describes. Tokens take precedence, as a column ``sentence`` may number sentences."""
    for delimiter in (",", "\t", ";"):
        try:
            names = [name.strip() for name in next(csv.reader([first], delimiter=delimiter), [])]
        except csv.Error:  # a field too long to be the name of a column
            continue
        known = [name.lower() for name in names]
        for of_tokens, texts, labels in ((True, _TOKENS, _TAGS), (False, _TEXTS, _ENTITIES)):
            text, label = _index_of(known, texts), _index_of(known, labels)
            if len(names) > 1 and text is not None and label is not None and text != label:
                sentence = _index_of(known, _SENTENCES) if of_tokens else None
                return _Layout(names, delimiter, of_tokens, text, label, sentence)
    return None


def _index_of(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _rows(lines: Iterable[str], layout: _Layout, source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows below the header, each with its line. Empty rows are included, as they may end sentences."""
    for line, row in _split(lines, layout, source):
        if any(row) and len(row) != len(layout.names):
            message = f"{len(row)} columns, but the header has {len(layout.names)}"
            source.defect("missing column", message, "put quotes around fields that contain a delimiter", line=line)
        else:
            yield line, row


def _split(lines: Iterable[str], layout: _Layout, source: Source) -> Iterator[tuple[int, list[str]]]:
    """The fields of each row, and the line on which the row starts."""
    first = line = source.line or 1
    if layout.of_tokens and layout.delimiter == "\t":  # not read as CSV, as a quote may be a token
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
            fix = "close quotes, and double a quote inside a field"
            if "field larger" in str(error):
                fix += f"; texts of more than {csv.field_size_limit():,} characters can be stored as JSON lines"
            source.defect("not CSV", f"not CSV: {error}", fix, line=line)
        else:
            yield line, row
        line = first + reader.line_num


def _unquoted(field: str) -> str:
    is_quoted = len(field) > 2 and field[0] == field[-1] == '"'
    return field[1:-1].replace('""', '"') if is_quoted else field


def _sentences(
    table: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source
) -> Iterator[decoding.Sentence]:
    sentence: decoding.Sentence | None = None
    current = ""  # the sentence column's value in the rows of this sentence
    others = [i for i in range(len(layout.names)) if i not in (layout.text, layout.labels, layout.sentence)]
    for line, row in table:
        name = row[layout.sentence] if any(row) and layout.sentence is not None else current
        if not any(row) or (name and name != current):
            if sentence is not None:
                yield sentence
            sentence = None
        if not any(row):
            continue
        current = name or current
        if sentence is None:
            sentence = decoding.Sentence(line, [], [], [] if others else None, id=current or None)
        tag = row[layout.labels].strip()
        if not tag:
            source.defect("missing tag", f"no tag for {row[layout.text]!r}", "write O outside entities", line=line)
        sentence.tokens.append(row[layout.text] or " ")
        sentence.tags.append(tag or "O")
        if sentence.columns is not None:
            sentence.columns.append([row[i] for i in others])
    if sentence is not None:
        yield sentence


def _texts(table: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[Document]:
    """Rows with tags are decoded as sentences; other rows are read as JSON rows."""
    found = ((line, row) for line, row in table if any(row))
    head = list(islice(found, _HEAD))
    whole = chain(head, found)
    if any(_tags(row[layout.labels]) for _, row in head):
        yield from decoding.documents(_tagged(whole, layout, source), source)
        return
    values = _values(whole, layout, source)
    first = list(islice(values, _HEAD))
    detected = recognise([row for _, row in first])
    if detected is not None:
        yield from ROW_FORMATS[detected.format].documents(chain(first, values), source)


def _tagged(found: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[decoding.Sentence]:
    for line, row in found:
        text, tags = row[layout.text], row[layout.labels].split()
        tokens = next((tokens for tokens in (text.split(), list(text)) if len(tokens) == len(tags)), None)
        if tokens is None:
            message = f"{len(text.split())} tokens but {len(tags)} tags"
            source.defect("tokens unlike tags", message, "write one tag for each token", line=line)
        else:
            meta = _others(row, layout)
            name = meta.pop("id", None)
            yield decoding.Sentence(line, tokens, tags, in_columns=False, id=name, text=text, meta=meta)


def _values(found: Iterable[tuple[int, list[str]]], layout: _Layout, source: Source) -> Iterator[Row]:
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
    """The value of a field of JSON, or of a Python literal, whose tuples become lists.

    Raises:
        NotReadable: the field is neither.
    """
    for parse in (json.loads, ast.literal_eval):
        try:
            value = json.loads(json.dumps(parse(field.strip() or "[]")))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    message = f"the entities {field[:40]!r} are neither JSON nor a Python list"
    raise NotReadable(message, 'write [{"start": 0, "end": 2, "label": "PER"}], in quotes')


def _tags(field: str) -> list[str]:
    tags = field.split()
    return tags if all(map(is_tag, tags)) else []
