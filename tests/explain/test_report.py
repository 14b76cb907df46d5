"""The page of scores and errors: it is complete, nothing on it becomes markup, and its size is limited."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tiny
from hanlattice import corpus
from hanlattice.cli import main
from hanlattice.document import Document, Entity
from hanlattice.evaluation.scores import errors, evaluate_spans
from hanlattice.explain import charts
from hanlattice.explain.analysis import Epoch
from hanlattice.explain.report import CONTEXT, MAX_LISTED, Findings, page
from hanlattice.spans import Span

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\"'&"
VOID = {"meta", "input"}


class Page(HTMLParser):
    """The errors on a page, and every tag and attribute in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.rows: list[dict[str, Any]] = []
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.tags[tag] += 1
        self.attributes |= given.keys()
        if tag not in VOID:
            self.open.append((tag, given.get("class") or ""))
        if tag == "li" and "data-kind" in given:
            self.rows.append({"data": given, "text": "", "g": "", "f": ""})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if self.rows and ("p", "") in self.open and self.open[-1][0] in ("p", "mark"):
            self.rows[-1]["text"] += data
            for name in self.open[-1][1].split():
                self.rows[-1][name] += data


def findings(texts: list[str], gold: list[list[Span]], predicted: list[list[Span]], **more: Any) -> Findings:
    documents = [Document(text, meta={"@file": "some/corpus.txt", "@line": i}) for i, text in enumerate(texts, 1)]
    entities = [[Entity.of(t, span, 0.5) for span in spans] for t, spans in zip(texts, predicted, strict=True)]
    others = {"model": "m", "mode": "exact", "words": [[(0, 2)]] * len(texts), **more}
    report = evaluate_spans(gold, predicted)
    return Findings(report=report, documents=documents, gold=gold, predicted=entities, **others)


def read(some: Findings) -> Page:
    return Page("".join(page(some)))


TEXTS = ["重庆人和药店开业", "李明在北京市工作"]
GOLD = [[Span(0, 2, "LOC"), Span(2, 6, "ORG")], [Span(0, 2, "PER"), Span(3, 6, "LOC"), Span(3, 5, "LOC")]]
FOUND = [[Span(0, 3, "LOC"), Span(2, 6, "PER")], [Span(3, 6, "LOC"), Span(6, 8, "ORG")]]


def test_every_error_is_listed_in_its_context() -> None:
    rows = read(findings(TEXTS, GOLD, FOUND)).rows
    expected = list(errors(GOLD, FOUND))
    assert len(rows) == len(expected) == 5
    for row, mistake in zip(rows, expected, strict=True):
        text = TEXTS[mistake.sentence]
        data = row["data"]
        assert data["data-kind"] == mistake.kind
        assert row["text"] == text
        for side, name, span in (("g", "gold", mistake.gold), ("f", "found", mistake.predicted)):
            assert row[side] == (text[span.start : span.end] if span else "")
            assert data.get(f"data-{name}") == (span.label if span else None)
    assert ["data-nested" in row["data"] for row in rows] == [True, True, False, True, False]


def test_fragments_of_an_entity_are_marked_separately() -> None:
    gold = [[Span.of([(0, 1), (3, 4)], "LOC")]]
    (row,) = read(findings(["重庆人和"], gold, [[]])).rows
    assert row["g"] == "重和"


def test_only_the_context_of_an_error_is_shown() -> None:
    text = "前" * 500 + "重庆" + "后" * 500
    (row,) = read(findings([text], [[Span(500, 502, "LOC")]], [[]])).rows
    assert row["text"] == f"…{'前' * CONTEXT}重庆{'后' * CONTEXT}…"


def test_the_page_has_scores_and_groups() -> None:
    some = findings(TEXTS, GOLD, FOUND, seen={"重庆": 3}, epochs=[Epoch(1, 3.0, None), Epoch(2, 1.5, 0.25)])
    text = "".join(page(some))
    for expected in (
        "22.22",
        "20.00",
        "25.00",
        "Characters of the text",
        "Characters of the entity",
        "2–5",
        "0.50",
    ):
        assert expected in text, expected
    assert "best F1 on dev 25.00, in epoch 2." in text
    assert "With --train FILE" not in text
    without = "".join(page(findings(TEXTS, GOLD, FOUND)))
    assert "With --train FILE" in without
    assert "<h2>Training" not in without


def test_no_errors() -> None:
    found = read(findings(["重庆"], [[Span(0, 2, "LOC")]], [[Span(0, 2, "LOC")]]))
    assert found.rows == []
    assert read(findings([""], [[]], [[]])).rows == []


def test_nothing_becomes_markup() -> None:
    gold, found = [[Span(0, len(HOSTILE), HOSTILE)]], [[Span(0, 4, HOSTILE)]]
    harmless = read(findings(["重庆" * 60], [[Span(0, 120, "A")]], [[Span(0, 4, "A")]]))
    hostile = read(findings([HOSTILE], gold, found, model=HOSTILE, mode=HOSTILE))
    assert hostile.tags == harmless.tags
    assert hostile.attributes == harmless.attributes
    assert hostile.rows[0]["text"] == HOSTILE
    assert hostile.rows[0]["data"]["data-gold"] == HOSTILE
    "".join(page(findings(["\ud800\0a"], [[Span(0, 2, "\ud800")]], [[]]))).encode("utf-8")


def test_nothing_is_fetched() -> None:
    text = "".join(page(findings(TEXTS, GOLD, FOUND)))
    assert not re.search(r"https?:|url\(|@import|<link|\bsrc=|fetch|XMLHttp", text)


def test_at_most_500_errors_of_each_kind_are_listed() -> None:
    """They come from all parts of the corpus, and the page has the number of all errors."""
    texts = ["重庆人和药店"] * 10_000
    gold: list[list[Span]] = [[Span(0, 2, "LOC")]] * 10_000
    found: list[list[Span]] = [[Span(3, 5, "ORG")]] * 9_999 + [[Span(0, 2, "PER")]]
    text = "".join(page(findings(texts, gold, found)))
    assert len(text) < 1_000_000
    rows = Page(text).rows
    assert Counter(row["data"]["data-kind"] for row in rows) == {
        "missed": MAX_LISTED,
        "spurious": MAX_LISTED,
        "type": 1,
    }
    lines = [int(line) for line in re.findall(r"corpus\.txt:(\d+)<", text)]
    assert lines == sorted(lines)
    assert lines[0] == 1
    assert lines[-1] == 10_000
    assert "19,999 errors" in text
    assert "1,001 of them are listed: at most 500 of each kind" in text
    assert "<b>missed</b> 9,999, 500 listed" in text


def test_500_errors_of_a_kind_are_all_listed() -> None:
    gold = [[Span(0, 2, "LOC")]] * MAX_LISTED
    text = "".join(page(findings(["重庆"] * MAX_LISTED, gold, [[]] * MAX_LISTED)))
    assert len(Page(text).rows) == MAX_LISTED == 500
    assert "listed" not in text


def test_learning_curve_of_one_epoch_and_of_equal_epochs() -> None:
    for epochs in ([Epoch(1, 2.0, 0.5)], [Epoch(1, 2.0, 0.5), Epoch(2, 2.0, 0.5)], [Epoch(1, 2.0, None)]):
        svg = charts.curve(epochs)
        assert "nan" not in svg
        numbers = [float(n) for pair in re.findall(r'points="([^"]*)"', svg) for n in re.findall(r"[\d.]+", pair)]
        assert numbers
        assert all(0 <= n <= charts.WIDTH for n in numbers)


class TestEvaluate:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        wrong = Document("李明在北京工作。", (Entity("李明", "LOC", 0, 2), Entity("北京工作", "LOC", 3, 7)))
        corpus.write([*tiny.documents(), wrong], tmp_path / "test.jsonl", "jsonl")
        return tmp_path / "test.jsonl"

    def call(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main(["evaluate", str(tiny.trained()), *map(str, arguments)])
        return int(left.value.code or 0), *capsys.readouterr()

    def test_writes_the_page_and_prints_the_same_scores(
        self, capsys: pytest.CaptureFixture[str], file: Path
    ) -> None:
        plain = self.call(capsys, file, "--format", "json")
        out = file.with_name("report.html")
        train = tiny.folder() / "corpus.bmes"
        written = self.call(capsys, file, "--format", "json", "--errors", out, "--train", train)
        assert written == (*plain[:2], f"wrote {out}\n")
        micro = next(iter(json.loads(plain[1])["models"].values()))["micro"]
        text = out.read_text("utf-8")
        found = Page(text)
        assert f"{100 * micro['f1']:.2f}" in text
        assert [row["data"]["data-kind"] for row in found.rows] == ["type", "boundary"]
        assert "test.jsonl:31" in text
        assert "is a word" in text
        assert "2–5" in text, "how often entities are in the training corpus"
        assert "<h2>Training" in text

    def test_counts_what_the_scores_count(self, capsys: pytest.CaptureFixture[str], file: Path) -> None:
        """--map and --threshold apply to the page as they apply to the scores."""
        out = file.with_name("report.html")
        _, out_text, _ = self.call(
            capsys, file, "--threshold", "1", "--map", "PER=LOC", "--format", "json", "--errors", out
        )
        micro = next(iter(json.loads(out_text)["models"].values()))["micro"]
        rows = Page(out.read_text("utf-8")).rows
        assert sum("data-gold" in row["data"] for row in rows) == micro["gold"] - micro["correct"] > 0
        assert "PER" not in {row["data"].get("data-gold") for row in rows}

    def test_the_page_must_end_in_html(self, capsys: pytest.CaptureFixture[str], file: Path) -> None:
        code, _, err = self.call(capsys, file, "--errors", "report.pdf")
        assert code == 2
        assert "report.pdf: name a page, such as report.html" in err

    def test_the_training_corpus_is_read_before_the_models(
        self, capsys: pytest.CaptureFixture[str], file: Path
    ) -> None:
        arguments = (file, "--compare", "no-model", "--train", file.with_name("no.jsonl"))
        code, _, err = self.call(capsys, *arguments, "--errors", file.with_name("report.html"))
        assert code == 1
        assert "no.jsonl: cannot be read" in err
        code, _, err = self.call(capsys, *arguments)
        assert (code, err) == (1, "error: --train needs --errors PAGE\n")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("needs Chromium as /usr/bin/chromium")
    with playwright.sync_playwright() as tools:
        yield (opened := tools.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"]))
        opened.close()


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Any:
    """A page of hostile errors in a browser. It makes no requests and logs no errors."""
    texts = [*TEXTS, HOSTILE]
    some = findings(texts, [*GOLD, [Span(0, 9, HOSTILE)]], [*FOUND, []], model=HOSTILE)
    (tmp_path / "report.html").write_text("".join(page(some)), encoding="utf-8")
    tab = browser.new_page()
    messages: list[str] = []
    requests: list[str] = []
    tab.on("pageerror", lambda error: messages.append(str(error)))
    tab.on("console", lambda message: messages.append(message.text))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto((tmp_path / "report.html").as_uri())
    yield tab
    assert messages == []
    assert len(requests) == 1
    assert tab.evaluate("window.hacked") is None
    tab.close()


class TestInABrowser:
    def visible(self, tab: Any) -> list[str]:
        return [row.get_attribute("data-kind") for row in tab.locator(".errors > li").all() if row.is_visible()]

    def test_filters(self, shown: Any) -> None:
        everything = self.visible(shown)
        assert len(everything) == 6
        shown.uncheck("[value=missed]")
        assert self.visible(shown) == [kind for kind in everything if kind != "missed"]
        assert shown.locator("output").inner_text() == f"{6 - everything.count('missed')} / 6"
        shown.check("[value=missed]")
        shown.check("[name=nested]")
        assert len(self.visible(shown)) == 3
        shown.uncheck("[name=nested]")
        shown.fill("[name=text]", "李明在")
        assert len(self.visible(shown)) == 3
        shown.fill("[name=text]", "")
        shown.select_option("[name=label]", HOSTILE)
        assert self.visible(shown) == ["missed"]
        shown.press("[name=text]", "Enter")
        assert self.visible(shown) == ["missed"], "submitting the form does not load the page again"

    def test_without_scripts_the_page_is_a_list(self, browser: Any, tmp_path: Path) -> None:
        (tmp_path / "report.html").write_text("".join(page(findings(TEXTS, GOLD, FOUND))), encoding="utf-8")
        tab = browser.new_context(java_script_enabled=False).new_page()
        tab.goto((tmp_path / "report.html").as_uri())
        assert len(self.visible(tab)) == 5
        assert not tab.locator("form").is_visible()
        tab.close()
