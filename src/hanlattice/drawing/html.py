"""Entities as a page that needs nothing else: no script, no font, no network."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.markup import escaped
from hanlattice.drawing.svg import lattice_svg

if TYPE_CHECKING:
    from hanlattice.document import Document, Entity
    from hanlattice.explain.reading import Reading

_STYLE = """\
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #111; background: #fff; line-height: 2.2;
  font-family: "Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "Heiti SC",
  "WenQuanYi Micro Hei", sans-serif; }
p { white-space: pre-wrap; overflow-wrap: anywhere; border-bottom: 1px solid #ddd; padding-bottom: .5rem; }
mark { color: inherit; background: color-mix(in srgb, var(--c) 30%, white);
  border-bottom: 3px solid var(--c); padding: .15em 0; }
mark small { font-size: .65em; font-weight: bold; margin-left: .3em; }
figure { margin: 1.5rem 0; overflow-x: auto; }
table { border-collapse: collapse; line-height: 1.5; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid #eee; }
"""


def page(documents: "Iterable[Document]", title: str = "hanlattice", *, lattices: bool = False) -> Iterator[str]:
    """An HTML page, piece by piece, one paragraph a document; labels have their fixed colours.

    ``lattices``: below each document that a model has read, a picture of the words it read.
    """
    yield _head(title)
    for document in documents:
        yield f"<p>{_marked(document)}</p>\n"
        lattice = document.lattice if lattices else None
        if lattice is not None:
            yield f"<figure>\n{lattice_svg(lattice, document.entities)}</figure>\n"
    yield _FOOT


def page_of_reading(reading: "Reading") -> str:
    """A page of one text: its entities, its lattice, and what each word did, the strongest first."""
    head, paragraph, *_ = page([reading.document], "hanlattice explain")
    rows = sorted(zip(reading.strengths, reading.reasons, strict=True), key=lambda row: -row[0])
    table = "".join(f"<tr><td>{strength:.3f}</td><td>{escaped(why)}</td></tr>\n" for strength, why in rows)
    listed = f"<table>\n<tr><th>{reading.by}</th><th>word</th></tr>\n{table}</table>\n" if rows else ""
    return f"{head}{paragraph}<figure>\n{reading.to_svg()}</figure>\n{listed}{_FOOT}"


def _head(title: str) -> str:
    return (
        '<!doctype html>\n<html lang="zh">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
    )


_FOOT = "</body>\n</html>\n"


def _marked(document: "Document") -> str:
    """The text cut at every border of an entity, each piece marked by all entities over it, the longest outside."""
    entities = sorted(document.entities, key=lambda e: (e.start, -e.end))
    borders = sorted({0, len(document.text), *(at for e in entities for at in (e.start, e.end))})
    pieces = []
    first = 0  # no entity before this one reaches any further
    for start, end in pairwise(borders):
        while first < len(entities) and entities[first].end <= start:
            first += 1
        over = []
        for entity in entities[first:]:
            if entity.start > start:
                break
            if entity.end > start:
                over.append(entity)
        pieces.append(_piece(document.text[start:end], end, over))
    return "".join(pieces)


def _piece(text: str, end: int, over: "list[Entity]") -> str:
    marked = escaped(text)
    for entity in reversed(over):
        label = f"<small>{escaped(entity.label)}</small>" if entity.end == end else ""
        score = "" if entity.score is None else f" {entity.score:.3f}"
        hint = escaped(f"{entity.label}{score} [{entity.start}, {entity.end})")
        marked = f'<mark style="--c:{colour_of(entity.label)}" title="{hint}">{marked}{label}</mark>'
    return marked
