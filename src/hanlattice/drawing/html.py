"""HTML of texts with marked entities: pages, and fragments for notebooks. It needs no scripts, fonts or network."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.marks import Mark
from hanlattice.drawing.markup import escaped

STYLE = """\
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; color: #111; background: #fff; line-height: 2.2;
  font-family: "Noto Sans CJK SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "Heiti SC",
  "WenQuanYi Micro Hei", sans-serif; }
p { white-space: pre-wrap; overflow-wrap: anywhere; border-bottom: 1px solid #ddd; padding-bottom: .5rem; }
mark { color: inherit; background: color-mix(in srgb, var(--c) 30%, white);
  border-bottom: 3px solid var(--c); padding: .15em 0; }
mark.start { margin-left: 3px; border-radius: .25em 0 0 0; }
mark small { font-size: .65em; font-weight: bold; margin-left: .3em; }
figure { margin: 1.5rem 0; overflow-x: auto; }
table { border-collapse: collapse; line-height: 1.5; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid #eee; }
"""
FOOT = "</body>\n</html>\n"
# The style of a fragment inside another page, such as a notebook, which may have a dark background.
FRAGMENT_STYLE = """\
.hanlattice { color: #111; background: #fff; line-height: 2.2; padding: .5rem; max-width: 60rem; }
.hanlattice p { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }
.hanlattice mark { color: inherit; background: color-mix(in srgb, var(--c) 30%, white);
  border-bottom: 3px solid var(--c); padding: .15em 0; }
.hanlattice mark.start { margin-left: 3px; border-radius: .25em 0 0 0; }
.hanlattice mark small { font-size: .65em; font-weight: bold; margin-left: .3em; }
.hanlattice .legend span { border-left: .8em solid var(--c); padding-left: .3em; margin-right: 1em; }
.hanlattice table { border-collapse: collapse; line-height: 1.5; }
.hanlattice th, .hanlattice td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid #eee;
  color: #111; background: #fff; }
.hanlattice td + td { text-align: right; }
"""


class Paragraph(NamedTuple):
    """A text with its marks, and a picture as SVG to show below it, if there is one."""

    text: str
    marks: Sequence[Mark] = ()
    picture: str = ""


def page(paragraphs: Iterable[Paragraph], title: str = "hanlattice", *, appendix: str = "") -> Iterator[str]:
    """The parts of an HTML page, in order; ``appendix`` is HTML that follows the last paragraph."""
    yield head(title)
    for text, marks, picture in paragraphs:
        yield f"<p>{_marked(text, marks)}</p>\n"
        if picture:
            yield f"<figure>\n{picture}</figure>\n"
    yield appendix + FOOT


def head(title: str, *, style: str = STYLE, language: str = "zh") -> str:
    """The start of a page, up to and including the opening tag of its body."""
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escaped(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
    )


def fragment(content: str) -> str:
    """HTML to show inside another page, such as a notebook, with a style sheet that changes nothing around it."""
    return f'<style>\n{FRAGMENT_STYLE}</style>\n<div class="hanlattice">\n{content}\n</div>\n'


def marked_text(text: str, marks: Sequence[Mark]) -> str:
    """The text with its marks, and a legend of their labels if there are any."""
    labels = sorted({mark.label for mark in marks})
    names = "".join(f'<span style="--c:{colour_of(label)}">{escaped(label)}</span>' for label in labels)
    legend = f'\n<div class="legend">{names}</div>' if labels else ""
    return f"<p>{_marked(text, marks)}</p>{legend}"


def table(rows: Sequence[Sequence[str]], *, heading: bool = True) -> str:
    """Rows of cells as an HTML table, the first row as its heading."""
    made = []
    for i, row in enumerate(rows):
        kind = "th" if heading and i == 0 else "td"
        made.append("<tr>" + "".join(f"<{kind}>{escaped(cell)}</{kind}>" for cell in row) + "</tr>")
    return "<table>\n" + "\n".join(made) + "\n</table>"


def _marked(text: str, marks: Sequence[Mark]) -> str:
    """The text as HTML, cut where a part of a mark starts or ends. Each piece is nested in all marks over it.

    The mark that starts first is outermost; of several, the longest.

    ::

        marks     [  ORG  )          pieces    <ORG><LOC>重庆</LOC></ORG> <ORG>大学</ORG>
                  [LOC)
        text       重 庆 大 学
    """
    ordered = sorted(marks, key=lambda mark: (mark.start, -mark.end))
    borders = sorted({0, len(text), *(at for mark in ordered for part in mark.parts for at in part)})
    pieces = []
    first = 0  # all marks before this index end before the piece
    for start, end in pairwise(borders):
        while first < len(ordered) and ordered[first].end <= start:
            first += 1
        over = []
        for mark in map(ordered.__getitem__, range(first, len(ordered))):  # a slice would be a copy
            if mark.start > start:
                break
            if any(first_of_part <= start < end_of_part for first_of_part, end_of_part in mark.parts):
                over.append(mark)
        pieces.append(_piece(text[start:end], start, end, over))
    return "".join(pieces)


def _piece(text: str, start: int, end: int, over: Sequence[Mark]) -> str:
    """The piece ``[start, end)`` of a text inside its marks; a mark shows its label at its last piece."""
    piece = escaped(text)
    for mark in reversed(over):
        label = f"<small>{escaped(mark.label)}</small>" if mark.end == end else ""
        score = "" if mark.score is None else f" {mark.score:.3f}"
        hint = escaped(f"{mark.label}{score} [{mark.start}, {mark.end})")
        # The style sheet leaves a gap before the start of a mark, so that neighbouring marks do not run together.
        kind = ' class="start"' if mark.start == start else ""
        piece = f'<mark{kind} style="--c:{colour_of(mark.label)}" title="{hint}">{piece}{label}</mark>'
    return piece
