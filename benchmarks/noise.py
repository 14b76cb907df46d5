"""Scores of a model on clean text and on the same text with several kinds of noise.

    HANLATTICE_DATA=… python benchmarks/noise.py CORPUS… [--model MODEL] [--convention msra] [--map NS=LOC,…]

Prints strict micro F1 over PER, LOC and ORG in percent. Gold spans move with their characters. A list consists of
six names of the corpus with the same label, separated by 、, a space, U+3000 or a line break. OCR errors replace
3 % of the characters outside names with other characters of the corpus. Traditional script needs opencc (extra
``dev``).
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import hanlattice
from hanlattice import corpus
from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document, Entity
from open_text import THREE, score

PUNCTUATION = frozenset("，。、；：！？,;:!?“”‘’（）《》")
WIDTH, LISTS, IN_A_LIST, OCR = 35, 300, 6, 0.03
Change = Callable[[Document], Document]


def rewritten(document: Document, characters: Sequence[str], before: str = "", after: str = "") -> Document:
    """The document with each of its characters replaced by a string, and with its entities at their new places.

    Args:
        document: the document to change
        characters: for each character a string that ends with it, or an empty string
        before: text in front of the document
        after: text after the document
    """
    offset = list(accumulate(map(len, characters), initial=len(before)))
    text = before + "".join(characters) + after
    spans = ((offset[e.start], offset[e.end], e.label) for e in document.entities)
    kept = ((start + _leading_spaces(text, start, end), end, label) for start, end, label in spans if start < end)
    return Document(text, tuple(Entity(text[start:end], label, start, end) for start, end, label in kept))


def _leading_spaces(text: str, start: int, end: int) -> int:
    """The number of white-space characters at the start of a range, which are not part of the name."""
    return (end - start) - len(text[start:end].lstrip())


def in_names(document: Document) -> list[bool]:
    """Whether each character is part of an entity."""
    found = [False] * len(document.text)
    for entity in document.entities:
        found[entity.start : entity.end] = [True] * (entity.end - entity.start)
    return found


def after_punctuation(document: Document) -> Document:
    """Insert a space after each punctuation mark."""
    text = document.text
    spaces = [" " if i and text[i - 1] in PUNCTUATION else "" for i in range(len(text))]
    return rewritten(document, [s + c for s, c in zip(spaces, text, strict=True)])


def wrapped(document: Document) -> Document:
    """Insert a line break after every ``WIDTH`` characters."""
    return rewritten(document, ["\n" + c if i and i % WIDTH == 0 else c for i, c in enumerate(document.text)])


def spaced(document: Document) -> Document:
    """Insert a space between all characters."""
    return rewritten(document, [" " + c if i else c for i, c in enumerate(document.text)])


def without_punctuation(document: Document) -> Document:
    """Remove punctuation outside names."""
    rows = zip(document.text, in_names(document), strict=True)
    return rewritten(document, [c if is_name or c not in PUNCTUATION else "" for c, is_name in rows])


def ocr(documents: Sequence[Document]) -> Change:
    """A change that replaces characters outside names with random Chinese characters of the documents."""
    rng, characters = Random(1), [c for d in documents for c in d.text if "\u4e00" <= c <= "\u9fff"]

    def change(document: Document) -> Document:
        rows = zip(document.text, in_names(document), strict=True)
        return rewritten(
            document, [c if is_name or rng.random() >= OCR else rng.choice(characters) for c, is_name in rows]
        )

    return change


def lists(documents: Sequence[Document], between: str) -> list[Document]:
    """Lists of names of one label, drawn from the corpus, with ``between`` as separator."""
    rng, made = Random(1), []
    names = {
        label: sorted({e.text for d in documents for e in d.entities if e.label == label and " " not in e.text})
        for label in THREE
    }
    for label in (label for label in THREE if len(names[label]) >= IN_A_LIST):
        for _ in range(LISTS // len(THREE)):
            chosen = rng.sample(names[label], IN_A_LIST)
            text = between.join(chosen)
            starts = accumulate((len(name) + len(between) for name in chosen[:-1]), initial=0)
            entities = (Entity(n, label, start, start + len(n)) for n, start in zip(chosen, starts, strict=True))
            made.append(Document(text, tuple(entities)))
    return made


def traditional() -> Change | None:
    """A change to traditional script; None without opencc."""
    try:
        from opencc import OpenCC
    except ImportError:
        return None
    convert = OpenCC("s2t").convert

    def change(document: Document) -> Document:
        text = convert(document.text)
        if len(text) != len(document.text):
            return document
        entities = (Entity(text[e.start : e.end], e.label, e.start, e.end) for e in document.entities)
        return Document(text, tuple(entities))

    return change


def read(paths: Iterable[Path], labels: dict[str, str]) -> list[Document]:
    """The documents of all corpora, with their entities that are PER, LOC or ORG after renaming."""
    found = []
    for document in relabelled((d for path in paths for d in corpus.read(path)), labels):
        entities = tuple(Entity(e.text, e.label, e.start, e.end) for e in document.entities if e.label in THREE)
        found.append(Document(document.text, entities))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--convention", default="")
    parser.add_argument("--map", default="", help="new names of the gold labels, such as NR=PER,NS=LOC,NT=ORG")
    parser.add_argument(
        "--documents", type=int, default=0, help="use only the first N documents (0: all)", metavar="N"
    )
    a = parser.parse_args()
    documents = read(a.corpora, dict(pair.split("=") for pair in a.map.split(",") if pair))
    documents = documents[: a.documents or None]
    ner = hanlattice.load(a.model, convention=a.convention)

    def f1(changed: Sequence[Document]) -> float:
        return 100 * score(ner, changed, THREE, THREE).micro.f1

    def row(name: str, changed: Sequence[Document], clean: float) -> None:
        found = f1(changed)
        print(f"| {name} | {found:.2f} | {found - clean:+.2f} |", flush=True)

    clean = f1(documents)
    print(
        f"{len(documents):,} documents\n\n| text | F1 | against clean |\n|---|---|---|\n| clean | {clean:.2f} | |"
    )
    changes: dict[str, Change | None] = {
        "two U+3000 in front": lambda d: rewritten(d, list(d.text), before="\u3000\u3000"),
        "two spaces in front, CRLF at the end": lambda d: rewritten(d, list(d.text), before="  ", after="\r\n"),
        "a space after punctuation": after_punctuation,
        f"hard-wrapped every {WIDTH} characters": wrapped,
        "emoji at both ends": lambda d: rewritten(d, list(d.text), before="😀", after="👍🎉"),
        "no punctuation": without_punctuation,
        "spaces between all characters": spaced,
        "OCR errors": ocr(documents),
        "traditional script": traditional(),
    }
    for name, change in changes.items():
        if change is not None:
            row(name, list(map(change, documents)), clean)
    comma = f1(lists(documents, "、"))
    print(f"| lists of names with 、 | {comma:.2f} | |")
    for name, between in (("a space", " "), ("U+3000", "\u3000"), ("a line break", "\n")):
        row(f"lists of names with {name}", lists(documents, between), comma)


if __name__ == "__main__":
    main()
