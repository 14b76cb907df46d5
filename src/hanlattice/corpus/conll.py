r"""CoNLL columns: a token and its tag on each line, a blank line after each sentence.

Read are tabs or spaces between columns, any of the four tag schemes (guessed unless named), ``-DOCSTART-``
lines, and more than two columns: the first is the token, the last the tag, and those between are kept in
``meta["columns"]``. A token may be a space (``"  O"``, ``" \tO"``), a tab (``"\t\tO"``) or any other blank,
and begin with one (``" the O"``); an empty token (``" O"``) is a space that was stripped.

The text of a sentence is its tokens without anything between them, but for one space where a Latin word would
fuse with the Latin word or digit beside it. Single characters never get a space, so ``o t a`` is ``ota``.

Weibo writes each character with its position in its word (``科0 技1 越10``, and ``110`` is the character 1 at
position 10). Where every token of the first sentences looks so, the first character is the token and the rest
the position, kept in ``meta["positions"]``; tokens of several U+FFFD are broken emoji and stay whole.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any, NamedTuple

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.spans import SCHEMES, Span, from_tags, guess_scheme, ill_formed, to_tags

_PREFIX = 2000
"""Sentences over which the separator, the scheme and Weibo's positions are guessed."""

_TAG = re.compile(r"[A-Za-z]([-_][^\t]+)?")
_POSITIONED = re.compile("(\ufffd+|.)([0-9]+)", re.DOTALL)

Tokens = tuple[tuple[int, int], ...]


class _Sentence(NamedTuple):
    line: int
    tokens: list[str]
    tags: list[str]
    columns: list[list[str]] | None


def sniff(head: Sequence[str]) -> bool:
    """Do at least half of these lines end in a tag, or in what looks like one?"""
    rows = [line for line in head if line.strip()]
    tagged = 0
    for line in rows:
        _, separator, tag = line.rstrip().rpartition("\t" if "\t" in line.rstrip() else " ")
        tagged += bool(separator) and _TAG.fullmatch(tag) is not None
    return bool(rows) and 2 * tagged >= len(rows)


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    positions: bool | None = None,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document a sentence, one at a time.

    Args:
        scheme: of BIO, BMES, BIOES, BILOU; guessed from the first sentences when ``None``, and guessed anew
            from all tags so far when one comes that it lacks (which changes no lenient reading).
        strict: leave out ill-formed entities; by default they are read as `hanlattice.spans.from_tags` says.
        positions: whether tokens end in Weibo's positions; looked for when ``None``.
        on_defect: is told of ill-formed tags, and of lines without a tag or with a tag of no scheme, which
            are then read as outside of any entity.

    Raises:
        DataError: a line has no tag or one of no scheme, and nobody takes defects.
    """
    sentences = _sentences(lines, file, on_defect)
    head = list(islice(sentences, _PREFIX))
    if positions is None:
        positions = _has_positions(head)
    tags = _Tags(file, scheme, strict, on_defect)
    for sentence in head:
        tags.learn(sentence)
    for sentence in chain(head, sentences):
        yield _document(sentence, tags.spans(sentence), positions, file, on_defect)


def write(documents: Iterable[Document], stream: IO[str], scheme: str = "BMES") -> None:
    """One token and tag a line, with a tab between.

    Raises:
        HanlatticeError: entities overlap or are discontinuous, do not fit the tokens, or a label or token
            holds a line break.
    """
    for document in documents:
        bounds = document.tokens or [(i, i + 1) for i in range(len(document.text))]
        spans = _token_spans(document, bounds)
        rows = [[document.text[start:end]] for start, end in bounds]
        for row, position in zip(rows, _column(document, "positions", len(bounds)), strict=False):
            row[0] += str(position)
        for row, columns in zip(rows, _column(document, "columns", len(bounds)), strict=False):
            row.extend(columns)
        for row, tag in zip(rows, to_tags(spans, len(bounds), scheme), strict=True):
            stream.write(_line([*row, tag]))
        stream.write("\n")


def joined(tokens: Iterable[str]) -> tuple[str, Tokens]:
    """The text of a sentence of these tokens, and where in it each token lies."""
    pieces: list[str] = []
    bounds = []
    end = 0
    last = ""
    for token in tokens:
        if last and (len(token) > 1 or len(last) > 1) and _is_latin(last[-1]) and _is_latin(token[0]):
            pieces.append(" ")
            end += 1
        pieces.append(token)
        bounds.append((end, end + len(token)))
        end += len(token)
        last = token
    return "".join(pieces), tuple(bounds)


def fits_tokens(document: Document) -> bool:
    """Can the text be put together from its tokens alone, with every entity beginning and ending at one?"""
    if document.tokens is None:
        return True
    starts = {start for start, _ in document.tokens}
    ends = {end for _, end in document.tokens}
    aligned = all(entity.start in starts and entity.end in ends for entity in document.entities)
    tokens = [document.text[start:end] for start, end in document.tokens]
    return aligned and all(tokens) and joined(tokens) == (document.text, tuple(document.tokens))


def _column(document: Document, name: str, n: int) -> Sequence[Any]:
    """A value for each of ``n`` tokens, or none at all."""
    values = document.meta.get(name)
    return values if isinstance(values, list) and len(values) == n else ()


def _line(row: Sequence[str]) -> str:
    line = "\t".join(row) + "\n"
    broken = any("\t" in field for field in (row[1:] if row[0] == "\t" else row))
    if broken or line.count("\n") > 1 or not row[0] or line.startswith("-DOCSTART-"):
        raise HanlatticeError(f"{line!r} cannot be read back as a line of columns; write JSONL instead")
    return line


def _is_latin(character: str) -> bool:
    return character < "\u0250" and character.isalnum()


def _sentences(lines: Iterable[str], file: str, on_defect: OnDefect | None) -> Iterator[_Sentence]:
    lines = iter(lines)
    head = list(islice(lines, 1000))
    separator = "\t" if all("\t" in line for line in head if line.strip()) else " "
    tokens: list[str] = []
    tags: list[str] = []
    columns: list[list[str]] = []
    start = 1
    for number, line in enumerate(chain(head, lines), 1):
        if not line or line.isspace() or line.startswith("-DOCSTART-"):
            if tokens:
                yield _Sentence(start, tokens, tags, columns if any(columns) else None)
                tokens, tags, columns = [], [], []
            start = number + 1
            continue
        token, between, tag = _columns(line, separator)
        if tag is None:
            message = f"no tag in {line!r}"
            report(Defect(file, number, "missing tag", message, "write the token, a tab and its tag"), on_defect)
            tag = "O"
        if not token:
            mend = "write the token; it is read as a space until then"
            report(Defect(file, number, "empty token", f"no token in {line!r}", mend, lossy=False), on_defect)
            token = " "
        tokens.append(token)
        tags.append(tag)
        columns.append(between)
    if tokens:
        yield _Sentence(start, tokens, tags, columns if any(columns) else None)


def _columns(line: str, separator: str) -> tuple[str, list[str], str | None]:
    """The token, the columns between, and the tag; ``None`` where there is but one column."""
    if separator not in line:
        separator = "\t" if "\t" in line else " "
    token, _, rest = line.partition(separator)
    rest = rest.rstrip(" \t")
    if not token and separator == "\t" and rest.startswith("\t"):
        return "\t", [], rest[1:]
    if not token and separator == " ":
        token, _, rest = line.rstrip(" \t").rpartition(" ")
    if not rest:
        return token, [], None
    if separator not in rest:
        return token, [], rest.lstrip(" ")
    *between, tag = [field for field in rest.split(separator) if field or separator == "\t"]
    return token, between, tag.strip(" ")


def _has_positions(sentences: Sequence[_Sentence]) -> bool:
    """Does (nearly) every token end in a number that counts up from 0 within words?"""
    counted = multiple = 0
    for sentence in sentences:
        before = -1
        for token in sentence.tokens:
            match = _POSITIONED.fullmatch(token)
            if match is None:
                return False
            position = int(match[2])
            counted += position in (0, before + 1)
            multiple += position > 0
            before = position
    total = sum(len(sentence.tokens) for sentence in sentences)
    return multiple > 0 and counted >= 0.99 * total


class _Tags:
    """Reads tags into spans over tokens, and knows the scheme of the file so far."""

    def __init__(self, file: str, scheme: str | None, strict: bool, on_defect: OnDefect | None):
        if scheme is not None and scheme not in SCHEMES:
            raise HanlatticeError(f"unknown tag scheme {scheme!r}; allowed are {', '.join(SCHEMES)}")
        self.file, self.strict, self.on_defect = file, strict, on_defect
        self.named, self.scheme = scheme is not None, scheme or "BIO"
        self.known = {"O"}
        self.read = False

    def learn(self, sentence: _Sentence) -> None:
        """Takes the tags of a sentence into account; those of no scheme become ``O`` in it."""
        new = set(sentence.tags) - self.known
        if not new:
            return
        try:
            scheme = self._scheme_with(new)
        except HanlatticeError:
            new = self._without_strangers(sentence, new)
            scheme = self._scheme_with(new)
        if self.strict and self.read and scheme != self.scheme:
            message = f"the tags so far were {self.scheme}, those here make it {scheme}"
            raise DataError(f"{message}; name the scheme to read strictly", self.file, sentence.line)
        self.known |= new
        self.scheme = scheme

    def spans(self, sentence: _Sentence) -> list[Span]:
        self.learn(sentence)
        self.read = True
        if self.on_defect is not None:
            self._report_ill_formed(sentence, self.on_defect)
        return from_tags(sentence.tags, self.scheme, self.strict)

    def _scheme_with(self, new: set[str]) -> str:
        if not self.named:
            return guess_scheme(self.known | new)
        from_tags(sorted(new), self.scheme)
        return self.scheme

    def _without_strangers(self, sentence: _Sentence, new: set[str]) -> set[str]:
        """Reports every tag that fits no scheme together with those before, and returns the rest."""
        kept: set[str] = set()
        for i, tag in enumerate(sentence.tags):
            if tag not in new or tag in kept:
                continue
            try:
                self._scheme_with(kept | {tag})
                kept.add(tag)
            except HanlatticeError as error:
                mend = "correct the tag, or name the scheme of the file"
                report(Defect(self.file, sentence.line + i, "unknown tag", str(error), mend), self.on_defect)
                sentence.tags[i] = "O"
        return kept

    def _report_ill_formed(self, sentence: _Sentence, on_defect: OnDefect) -> None:
        for i, before, tag in ill_formed(sentence.tags, self.scheme):
            if not tag:
                message = f"the sentence ends after {before}, which leaves the entity open"
            elif not before:
                message = f"the sentence starts with {tag}"
            else:
                message = f"{tag} after {before}"
            line = sentence.line + min(i, len(sentence.tags) - 1)
            mend = "correct the tags; they are read leniently until then, or left out with strict"
            on_defect(Defect(self.file, line, "ill-formed tags", f"{message} ({self.scheme})", mend, lossy=False))


def _document(
    sentence: _Sentence, spans: list[Span], positions: bool, file: str, on_defect: OnDefect | None
) -> Document:
    tokens = sentence.tokens
    meta: dict[str, Any] = {"@line": sentence.line}
    if positions:
        tokens, meta["positions"] = _split_positions(sentence, file, on_defect)
    if sentence.columns is not None:
        meta["columns"] = sentence.columns
    text, bounds = "".join(tokens), None
    if len(text) != len(tokens):
        text, bounds = joined(tokens)
        spans = [Span(bounds[s.start][0], bounds[s.end - 1][1], s.label) for s in spans]
    entities = tuple(Entity.of(text, span) for span in spans)
    return Document(text, entities, tokens=bounds, meta=meta)


def _split_positions(
    sentence: _Sentence, file: str, on_defect: OnDefect | None
) -> tuple[list[str], list[int | None]]:
    tokens: list[str] = []
    positions: list[int | None] = []
    for i, token in enumerate(sentence.tokens):
        match = _POSITIONED.fullmatch(token)
        if match is None:
            message = f"token {token!r} does not end in its position in the word, as the others do"
            mend = "write the character and its position, such as 科0"
            report(Defect(file, sentence.line + i, "missing position", message, mend), on_defect)
        tokens.append(match[1] if match else token)
        positions.append(int(match[2]) if match else 0)
    return tokens, positions


def _token_spans(document: Document, bounds: Sequence[tuple[int, int]]) -> list[Span]:
    starts = {start: i for i, (start, _) in enumerate(bounds)}
    ends = {end: i + 1 for i, (_, end) in enumerate(bounds)}
    spans = []
    for entity in document.entities:
        if entity.discontinuous:
            raise HanlatticeError(f"{entity.label} {entity.text!r} is discontinuous, which tags cannot express")
        if entity.start not in starts or entity.end not in ends:
            raise HanlatticeError(f"{entity.label} {entity.text!r} does not begin and end at a token")
        spans.append(Span(starts[entity.start], ends[entity.end], entity.label))
    return spans
