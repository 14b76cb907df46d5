"""Entities as a page that needs nothing else: no script, no font, no network."""

from collections.abc import Iterable, Iterator
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hanlattice.document import Document, Entity

# Okabe and Ito 2008, which stay apart for colour-blind readers; the label stands beside every entity all the same.
COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999")

_STYLE = """\
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #111; background: #fff; line-height: 2.2;
  font-family: "Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "Heiti SC",
  "WenQuanYi Micro Hei", sans-serif; }
p { white-space: pre-wrap; overflow-wrap: anywhere; border-bottom: 1px solid #ddd; padding-bottom: .5rem; }
mark { color: inherit; background: color-mix(in srgb, var(--c) 30%, white);
  border-bottom: 3px solid var(--c); padding: .15em 0; }
mark small { font-size: .65em; font-weight: bold; margin-left: .3em; }
"""


def page(documents: "Iterable[Document]", title: str = "hanlattice") -> Iterator[str]:
    """An HTML page, piece by piece, one paragraph a document; colours go to labels in the order they come."""
    colours: dict[str, str] = {}
    yield (
        '<!doctype html>\n<html lang="zh">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
    )
    for document in documents:
        for entity in document.entities:
            colours.setdefault(entity.label, COLOURS[len(colours) % len(COLOURS)])
        yield f"<p>{_marked(document, colours)}</p>\n"
    yield "</body>\n</html>\n"


def _marked(document: "Document", colours: dict[str, str]) -> str:
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
        pieces.append(_piece(document.text[start:end], end, over, colours))
    return "".join(pieces)


def _piece(text: str, end: int, over: "list[Entity]", colours: dict[str, str]) -> str:
    marked = escape(text)
    for entity in reversed(over):
        label = f"<small>{escape(entity.label)}</small>" if entity.end == end else ""
        score = "" if entity.score is None else f" {entity.score:.3f}"
        hint = escape(f"{entity.label}{score} [{entity.start}, {entity.end})")
        marked = f'<mark style="--c:{colours[entity.label]}" title="{hint}">{marked}{label}</mark>'
    return marked
