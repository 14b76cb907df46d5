"""The page and its charts are exactly those in the file, which was read line by line."""

import re
from pathlib import Path
from typing import Any

import pytest

from hanlattice.document import Document, Entity
from hanlattice.evaluation.scores import Score, evaluate_spans
from hanlattice.explain import charts
from hanlattice.explain.analysis import Epoch
from hanlattice.explain.report import Findings, page
from hanlattice.spans import Span

TEXTS = ["重庆人和药店开业", f"{'前' * 41}李明{'后' * 41}", "在\n北京市工作", "左膝和右膝关节"]
GOLD = [
    [Span(0, 2, "LOC"), Span(2, 6, "ORG")],
    [Span(41, 43, "PER")],
    [Span(2, 5, "LOC"), Span(2, 4, "LOC")],
    [Span(0, 7, "BODY", ((2, 5),)), Span(3, 7, "BODY")],
]
FOUND = [
    [Entity("重庆人", "LOC", 0, 3, 0.5), Entity("人和药店", "PER", 2, 6, 0.987)],
    [Entity("前" * 41, "X<", 0, 41, 0.25)],
    [Entity("北京市", "LOC", 2, 5, 0.75), Entity("工作", "ORG", 5, 7)],
    [Entity("右膝关节", "BODY", 3, 7, 1.0)],
]
META: list[dict[str, Any]] = [{"@file": "a/b.txt", "@line": 7}, {"@file": "c.txt"}, {"@line": 3}, {}]


def drawn() -> str:
    """The body of the page, without the script, which has tests of its own."""
    documents = [Document(text, meta=meta) for text, meta in zip(TEXTS, META, strict=True)]
    report = evaluate_spans(GOLD, [[entity.span for entity in entities] for entities in FOUND])
    words = [[(0, 2), (4, 6)], [], [(2, 4), (4, 5)], [(1, 2)]]
    epochs = [Epoch(1, 3.0, None), Epoch(2, 1.5, 0.25), Epoch(3, 1.0, 0.75), Epoch(4, 1.25, 0.5)]
    seen = {"重庆": 3, "北京市": 1}
    html = "".join(page(Findings("m", "exact", report, documents, GOLD, FOUND, words, seen, epochs)))
    return re.sub(r"(?s)^.*<body>\n|<script>.*", "", html)


def test_the_page_is_the_one_in_the_file() -> None:
    assert drawn() == Path(__file__).with_name("report.html").read_text("utf-8")


def test_a_large_count_is_grouped_and_a_cell_is_as_dark_as_its_share_of_the_row() -> None:
    table = charts.counts({("A", "A"): 3000, ("A", "B"): 1000, ("B", None): 5, (None, "A"): 2})
    cells = [re.findall(r"<td(?: class=\"n(?: faint)?\")?([^>]*)>([^<]*)<", row) for row in table.splitlines()[2:5]]
    style = ' style="background:color-mix(in srgb, var(--{}) {}%, transparent)"'
    assert cells == [
        [(style.format("good", 52), "3,000"), (style.format("bad", 18), "1,000"), ("", "·")],
        [("", "·"), ("", "·"), (style.format("bad", 70), "5")],
        [(style.format("bad", 70), "2"), ("", "·"), ("", "")],
    ]


def test_bars_of_scores() -> None:
    html = charts.bars("<t>", {"a&b": Score(2000, 1000, 750)})
    assert '<th scope="row">a&amp;b</th>' in html
    assert 'width:50.0%"></span></div></td><td class="n">50.0</td><td class="n faint">2,000</td>' in html
    assert '<th scope="col">&lt;t&gt;</th>' in html


@pytest.mark.parametrize(
    ("epochs", "loss", "f1", "best"),
    [
        # x from 44 to 516, y from 164 (smallest) to 12 (largest); equal values lie in the middle, at 88
        ([Epoch(1, 2.0, 0.5)], "44.0,88.0", "44.0,88.0", "44.0 88.0"),
        (
            [Epoch(1, 3.0, None), Epoch(2, 2.0, 0.5), Epoch(3, 1.0, 0.25)],
            "44.0,12.0 280.0,88.0 516.0,164.0",
            "280.0,12.0 516.0,164.0",
            "280.0 12.0",
        ),
        ([Epoch(1, 1.0, None), Epoch(5, 1.0, 0.0)], "44.0,88.0 516.0,88.0", "516.0,88.0", "516.0 88.0"),
        ([Epoch(1, 2.0, None), Epoch(2, 1.0, None)], "44.0,12.0 516.0,164.0", None, None),
    ],
)
def test_points_of_a_curve(epochs: list[Epoch], loss: str, f1: str | None, best: str | None) -> None:
    svg = charts.curve(epochs)
    lines = dict(re.findall(r'<polyline class="(\w+)" points="([^"]*)"/>', svg))
    assert lines == {"loss": loss} | ({} if f1 is None else {"f1": f1})
    dots = [" ".join(dot) for dot in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4"', svg)]
    assert dots == ([] if best is None else [best])
    assert f"epoch {max(epochs[-1].epoch, 2)}</text>" in svg
