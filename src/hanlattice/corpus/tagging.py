"""Sentences of tokens and tags, whatever file they come from, and the documents they are.

Read are the four schemes of `hanlattice.spans` and those that differ in name alone: BMEWO, whose ``W`` is a single
``S``, and tags with the letter behind the label (``PER-B``), where all tags of the first sentences look so.

Weibo writes each character with its position in its word (``科0 技1 越10``, and ``110`` is the character 1 at
position 10). Where every token of the first sentences looks so, the first character is the token and the rest
the position, kept in ``meta["positions"]``; tokens of several U+FFFD are broken emoji and stay whole.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from hanlattice.corpus.source import Source
from hanlattice.corpus.tokens import aligned, joined
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.spans import SCHEMES, Span, from_tags, guess_scheme, ill_formed

_PREFIX = 2000
"""Sentences over which the scheme, the side of the letter and Weibo's positions are guessed."""

_ALSO = {
    "IOB2": "BIO", "IOBES": "BIOES", "BIEOS": "BIOES", "BIESO": "BIOES", "BMESO": "BMES", "BMEWO": "BMES",
}  # fmt: skip
"""Other names of schemes."""

_LETTER_FIRST = re.compile(r"[A-Za-z]([-_].+)?")
_LETTER_LAST = re.compile(r"(.+)[-_]([BIMESULW])")
_SINGLE = re.compile(r"W([-_].+)?")
_POSITIONED = re.compile("(\ufffd+|.)([0-9]+)", re.DOTALL)


@dataclass(slots=True)
class Sentence:
    """Tokens and a tag for each, from ``line`` on: one a line in columns, all on one line in rows.

    ``text`` is the text that they lie in, where the file gives one, rather than the tokens joined.
    """

    line: int
    tokens: list[str]
    tags: list[str]
    columns: list[list[str]] | None = None
    in_columns: bool = True
    id: str | None = None
    text: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def line_of(self, token: int) -> int:
        return self.line + token if self.in_columns else self.line


def documents(
    sentences: Iterable[Sentence], source: Source, *, positions: bool | None = False
) -> Iterator[Document]:
    """One document a sentence, one at a time.

    ``positions`` says whether tokens end in Weibo's positions; they are looked for when it is ``None``.

    Raises:
        DataError: a tag is of no scheme, and the caller takes no defects.
        HanlatticeError: the scheme that is named is not known.
    """
    sentences = iter(sentences)
    head = list(islice(sentences, _PREFIX))
    if positions is None:
        positions = _has_positions(head)
    letter_last = _is_letter_last(head)
    tags = _Tags(source)
    for sentence in head:
        sentence.tags = tags.canonical(sentence.tags, letter_last)
        tags.learn(sentence)
    for sentence in chain(head, _canonical(sentences, tags, letter_last)):
        yield _document(sentence, tags.spans(sentence), positions, source)


def _canonical(sentences: Iterable[Sentence], tags: "_Tags", letter_last: bool) -> Iterator[Sentence]:
    for sentence in sentences:
        sentence.tags = tags.canonical(sentence.tags, letter_last)
        yield sentence


def _is_letter_last(sentences: Iterable[Sentence]) -> bool:
    """Have all tags the letter behind the label, and not all one before it?"""
    tags = {tag for sentence in sentences for tag in sentence.tags} - {"O"}
    return any(not _LETTER_FIRST.fullmatch(tag) for tag in tags) and all(map(_LETTER_LAST.fullmatch, tags))


def _has_positions(sentences: Sequence[Sentence]) -> bool:
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

    def __init__(self, source: Source):
        scheme = None if source.scheme is None else _ALSO.get(source.scheme.upper(), source.scheme.upper())
        if scheme is not None and scheme not in SCHEMES:
            known = ", ".join([*SCHEMES, *_ALSO])
            raise HanlatticeError(f"unknown tag scheme {source.scheme!r}; allowed are {known}")
        self.source = source
        self.named, self.scheme = scheme is not None, scheme or "BIO"
        self.known = {"O"}
        self.names: dict[str, str] = {}
        self.read = False

    def canonical(self, tags: list[str], letter_last: bool) -> list[str]:
        """The tags with the letter first, and ``S`` for the ``W`` of a single one."""
        for tag in set(tags) - self.names.keys():
            self.names[tag] = self._canonical(tag, letter_last)
        return [self.names[tag] for tag in tags]

    def _canonical(self, tag: str, letter_last: bool) -> str:
        if letter_last and (match := _LETTER_LAST.fullmatch(tag)):
            tag = f"{match[2]}-{match[1]}"
        is_single = _SINGLE.fullmatch(tag) and not (self.named and "S" not in SCHEMES[self.scheme])
        return f"S{tag[1:]}" if is_single else tag

    def learn(self, sentence: Sentence) -> None:
        """Takes the tags of a sentence into account; those of no scheme become ``O`` in it."""
        new = set(sentence.tags) - self.known
        if not new:
            return
        try:
            scheme = self._scheme_with(new)
        except HanlatticeError:
            new = self._without_strangers(sentence, new)
            scheme = self._scheme_with(new)
        if self.source.strict and self.read and scheme != self.scheme:
            message = f"the tags so far were {self.scheme}, those here make it {scheme}"
            raise DataError(f"{message}; name the scheme to read strictly", self.source.file, sentence.line)
        self.known |= new
        self.scheme = scheme

    def spans(self, sentence: Sentence) -> list[Span]:
        self.learn(sentence)
        self.read = True
        if self.source.on_defect is not None:
            self._report_ill_formed(sentence)
        return from_tags(sentence.tags, self.scheme, self.source.strict)

    def _scheme_with(self, new: set[str]) -> str:
        if not self.named:
            return guess_scheme(self.known | new)
        from_tags(sorted(new), self.scheme)
        return self.scheme

    def _without_strangers(self, sentence: Sentence, new: set[str]) -> set[str]:
        """Reports every tag that fits no scheme together with those before, and returns the rest."""
        kept: set[str] = set()
        for i, tag in enumerate(sentence.tags):
            if tag not in new or tag in kept:
                continue
            try:
                self._scheme_with(kept | {tag})
                kept.add(tag)
            except HanlatticeError as error:
                fix = "correct the tag, or name the scheme of the file"
                self.source.defect("unknown tag", str(error), fix, line=sentence.line_of(i))
                sentence.tags[i] = "O"
        return kept

    def _report_ill_formed(self, sentence: Sentence) -> None:
        for i, before, tag in ill_formed(sentence.tags, self.scheme):
            if not tag:
                message = f"the sentence ends after {before}, which leaves the entity open"
            elif not before:
                message = f"the sentence starts with {tag}"
            else:
                message = f"{tag} after {before}"
            line = sentence.line_of(min(i, len(sentence.tags) - 1))
            fix = "correct the tags; they are read leniently until then, or left out with strict"
            self.source.defect("ill-formed tags", f"{message} ({self.scheme})", fix, line=line, lossy=False)


def _document(sentence: Sentence, spans: list[Span], positions: bool, source: Source) -> Document:
    meta: dict[str, Any] = {"@line": sentence.line, **sentence.meta}
    if positions:
        tokens, meta["positions"] = _split_positions(sentence, source)
        sentence = replace(sentence, tokens=tokens)
    if sentence.columns is not None:
        meta["columns"] = sentence.columns
    text, bounds = _text(sentence, source)
    if bounds is not None:
        spans = [Span(bounds[s.start][0], bounds[s.end - 1][1], s.label) for s in spans]
    entities = tuple(Entity.of(text, span) for span in spans)
    return Document(text, entities, id=sentence.id, tokens=bounds, meta=meta)


def _text(sentence: Sentence, source: Source) -> tuple[str, tuple[tuple[int, int], ...] | None]:
    """The text, and the bounds of its tokens unless every character is one."""
    tokens, text = sentence.tokens, "".join(sentence.tokens)
    if sentence.text is not None and sentence.text != text:
        bounds = aligned(sentence.text, tokens)
        if bounds is not None:
            return sentence.text, bounds
        message, fix = f"the text {sentence.text[:40]!r} is not its tokens", "correct it; the tokens are read"
        source.defect("text unlike its tokens", message, fix, line=sentence.line, lossy=False)
    return (text, None) if len(text) == len(tokens) else joined(tokens)


def _split_positions(sentence: Sentence, source: Source) -> tuple[list[str], list[int | None]]:
    tokens: list[str] = []
    positions: list[int | None] = []
    for i, token in enumerate(sentence.tokens):
        match = _POSITIONED.fullmatch(token)
        if match is None:
            message = f"token {token!r} does not end in its position in the word, as the others do"
            fix = "write the character and its position, such as 科0"
            source.defect("missing position", message, fix, line=sentence.line_of(i))
        tokens.append(match[1] if match else token)
        positions.append(int(match[2]) if match else 0)
    return tokens, positions
