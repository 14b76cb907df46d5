"""What noise costs a model: the same text as it is, and changed in the ways in which text comes.

    HANLATTICE_DATA=… python benchmarks/noise.py CORPUS… [--model MODEL] [--convention msra] [--map NS=LOC,…]

Strict micro F1 over PER, LOC and ORG in percent. Gold spans move with their characters. A list is six names of the
corpus, one of each kind of list with 、 between them and one with a blank or a line end. OCR replaces 3 % of the
characters outside names by others of the corpus. Traditional script needs the extra ``dev`` (opencc).
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document, Entity
from open_text import THREE, score

PUNCTUATION = frozenset("，。、；：！？,;:!?“”‘’（）《》")
WIDTH, LISTS, IN_A_LIST, OCR = 35, 300, 6, 0.03
Change = Callable[[Document], Document]


def rewritten(document: Document, characters: Sequence[str], before: str = "", after: str = "") -> Document:
    """The document with each character replaced by a string whose last character it is, or by nothing."""
    place = list(accumulate(map(len, characters), initial=len(before)))
    text = before + "".join(characters) + after
    spans = ((place[e.start], place[e.end], e.label) for e in document.entities)
    kept = ((start + _blanks(text, start, end), end, label) for start, end, label in spans if start < end)
    return Document(text, tuple(Entity(text[start:end], label, start, end) for start, end, label in kept))


def _blanks(text: str, start: int, end: int) -> int:
    """White space at the start of a range, which stands before the name and not in it."""
    return (end - start) - len(text[start:end].lstrip())


def in_names(document: Document) -> list[bool]:
    found = [False] * len(document.text)
    for entity in document.entities:
        found[entity.start : entity.end] = [True] * (entity.end - entity.start)
    return found


def after_punctuation(document: Document) -> Document:
    text = document.text
    blank = [" " if i and text[i - 1] in PUNCTUATION else "" for i in range(len(text))]
    return rewritten(document, [b + c for b, c in zip(blank, text, strict=True)])


def wrapped(document: Document) -> Document:
    return rewritten(document, ["\n" + c if i and i % WIDTH == 0 else c for i, c in enumerate(document.text)])


def spaced(document: Document) -> Document:
    return rewritten(document, [" " + c if i else c for i, c in enumerate(document.text)])


def without_punctuation(document: Document) -> Document:
    rows = zip(document.text, in_names(document), strict=True)
    return rewritten(document, [c if is_name or c not in PUNCTUATION else "" for c, is_name in rows])


def ocr(documents: Sequence[Document]) -> Change:
    draw, characters = Random(1), [c for d in documents for c in d.text if "\u4e00" <= c <= "\u9fff"]

    def change(document: Document) -> Document:
        rows = zip(document.text, in_names(document), strict=True)
        return rewritten(
            document, [c if is_name or draw.random() >= OCR else draw.choice(characters) for c, is_name in rows]
        )

    return change


def lists(documents: Sequence[Document], between: str) -> list[Document]:
    """Lists of names of one label, drawn from the corpus."""
    draw, made = Random(1), []
    names = {
        label: sorted({e.text for d in documents for e in d.entities if e.label == label and " " not in e.text})
        for label in THREE
    }
    for label in (label for label in THREE if len(names[label]) >= IN_A_LIST):
        for _ in range(LISTS // len(THREE)):
            chosen = draw.sample(names[label], IN_A_LIST)
            text = between.join(chosen)
            starts = accumulate((len(name) + len(between) for name in chosen[:-1]), initial=0)
            entities = (Entity(n, label, start, start + len(n)) for n, start in zip(chosen, starts, strict=True))
            made.append(Document(text, tuple(entities)))
    return made


def traditional() -> Change | None:
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
    """The documents with their PER, LOC and ORG."""
    found = []
    for document in (d for path in paths for d in corpus.read(path)):
        renamed = ((e, labels.get(e.label, e.label)) for e in document.entities)
        entities = tuple(Entity(e.text, label, e.start, e.end) for e, label in renamed if label in THREE)
        found.append(Document(document.text, entities))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--model", help="folder of a model (default: the packaged one)")
    parser.add_argument("--convention", default="")
    parser.add_argument("--map", default="", help="names of the gold labels, such as NR=PER,NS=LOC,NT=ORG")
    parser.add_argument("--documents", type=int, default=0, help="how many of the first are used (0: all)")
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
        "two blanks in front, CRLF behind": lambda d: rewritten(d, list(d.text), before="  ", after="\r\n"),
        "a blank after punctuation": after_punctuation,
        f"hard-wrapped every {WIDTH} characters": wrapped,
        "emoji at both ends": lambda d: rewritten(d, list(d.text), before="😀", after="👍🎉"),
        "no punctuation": without_punctuation,
        "blanks between all characters": spaced,
        "OCR errors": ocr(documents),
        "traditional script": traditional(),
    }
    for name, change in changes.items():
        if change is not None:
            row(name, list(map(change, documents)), clean)
    comma = f1(lists(documents, "、"))
    print(f"| lists of names with 、 | {comma:.2f} | |")
    for name, between in (("a blank", " "), ("U+3000", "\u3000"), ("a line end", "\n")):
        row(f"lists of names with {name}", lists(documents, between), comma)


if __name__ == "__main__":
    main()
