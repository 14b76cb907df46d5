"""The page in a real browser."""

import contextlib
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import tiny
from hanlattice.drawing.colours import colour_of
from served import SENTENCE, Served, serving

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect, sync_playwright  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")

LABELS = "#marked mark > small"
ON_THE_ARC = """(path) => {
    const point = path.getPointAtLength(path.getTotalLength() / 3).matrixTransform(path.getScreenCTM());
    return [point.x, point.y];
}"""


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with serving("--max-wait-ms", 0, "--engine", "torch") as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as p:
        opened = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, service: Served) -> Iterator[Page]:
    """The page, opened; afterwards: nothing was asked of anybody else, and the console stayed silent."""
    yield from opened(browser, service)


def opened(browser: Browser, service: Served) -> Iterator[Page]:
    context = browser.new_context(locale="zh-CN", viewport={"width": 1200, "height": 900})
    page = context.new_page()
    asked, said = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(service.url)
    yield page
    context.close()
    assert asked
    assert [url for url in asked if not url.startswith((service.url + "/", "data:"))] == []
    assert [line for line in said if "status of 401" not in line and "status of 422" not in line] == []


def loaded(page: Page, url: str) -> None:
    """Load a page again, also if only the fragment of its address differs."""
    page.goto("about:blank")
    page.goto(url)


def type_text(page: Page, text: str) -> None:
    page.fill("#text", text)
    expect(page.locator("#count")).to_contain_text(re.compile(rf"^{len(text)} (/|of) "))
    expect(page.locator("#answer")).not_to_have_attribute("aria-busy", "true")
    page.wait_for_function(
        "n => [...document.querySelector('#marked').childNodes].length > 0 || n === 0", arg=len(text)
    )


def entities(page: Page) -> list[tuple[str, str]]:
    """Text and label of each entity that is marked; only their first and last pieces are looked at."""
    marks = page.locator("#marked mark").all()
    return [
        (re.sub(r"[A-Z]+$", "", m.text_content() or ""), m.locator("small").text_content() or "") for m in marks
    ]


def arcs(page: Page) -> Locator:
    return page.locator("#picture .arc")


def test_typing_marks_entities_in_the_colours_of_their_labels(page: Page) -> None:
    page.fill("#text", "")
    page.locator("#text").press_sequentially("王小红和上海")
    expect(page.locator(LABELS)).to_have_text(["PER", "LOC"])
    type_text(page, SENTENCE)
    expect(page.locator(LABELS)).to_have_text(["PER", "LOC"])
    assert entities(page) == [("李明", "PER"), ("北京", "LOC")]
    style = "e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor, s.borderBottomColor]; }"
    person, place = (mark.evaluate(style) for mark in page.locator("#marked mark").all())
    assert person[1] != place[1]
    assert person[2] != place[2]
    for ink, ground, _ in (person, place):
        assert contrast(ink, ground) > 7
    expect(page.locator("#legend li")).to_have_text(["地名 LOC × 1", "机构 ORG", "人名 PER × 1"])
    colours = "e => getComputedStyle(e).borderLeftColor"
    legend = [item.evaluate(colours) for item in page.locator("#legend li").all()]
    assert [legend[2], legend[0]] == [person[2], place[2]]
    assert legend == [_rgb(colour_of(label)) for label in ("LOC", "ORG", "PER")]
    expect(page.locator("#convention")).to_be_hidden()
    expect(page.locator("#status")).to_contain_text("识别出 2 个实体")


def test_an_example_is_shown_to_its_first_pause(page: Page) -> None:
    expect(page.locator("#examples")).to_contain_text("飛往臺北")
    expect(page.locator("#examples")).not_to_contain_text("，")


def _rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def contrast(*colours: str) -> float:
    """Of two computed colours, as WCAG 2 defines it."""
    lights = sorted(map(luminance, colours))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    scale = 255 if colour.startswith("rgb") else 1
    shares = [float(x) / scale for x in re.findall(r"[\d.]+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
    return sum(weight * x for weight, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_scores_show_on_hover_and_by_keyboard(page: Page) -> None:
    type_text(page, SENTENCE)
    first, second = page.locator("#marked mark").all()
    hint = page.locator("#hint")
    first.hover()
    expect(hint).to_contain_text(re.compile(r"李明.*人名 PER.*置信度 \d+\.\d%.*第 1 至 2 字"))
    page.mouse.move(5, 5)
    expect(hint).to_be_hidden()
    first.focus()
    expect(hint).to_contain_text("李明")
    page.keyboard.press("ArrowRight")
    expect(second).to_be_focused()
    expect(hint).to_contain_text("北京")
    page.keyboard.press("ArrowRight")
    expect(second).to_be_focused()
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    assert [mark.get_attribute("tabindex") for mark in (first, second)] == ["-1", "0"]
    assert "李明，人名 PER，置信度" in (first.get_attribute("aria-label") or "")


def test_words_with_more_attention_have_thicker_arcs(page: Page) -> None:
    type_text(page, SENTENCE)
    expect(arcs(page)).to_have_count(3)
    expect(page.locator("#measure")).to_contain_text("注意")
    widths = [float(line.get_attribute("stroke-width") or 0) for line in page.locator("#picture .line").all()]
    assert max(widths) == 5
    assert len(set(widths)) == 3
    assert page.locator("#picture .char").all_text_contents() == list(SENTENCE)
    assert "李明, 北京, 工作" in (page.locator("#picture svg").get_attribute("aria-label") or "")
    page.locator("summary").click()
    rows = page.locator("#words tr")
    expect(rows).to_have_count(3)
    shares = [float((row.locator("td").nth(1).text_content() or "").rstrip("%")) for row in rows.all()]
    assert shares == sorted(shares, reverse=True)
    x, y = arcs(page).first.locator(".reach").evaluate(ON_THE_ARC)
    page.mouse.move(x, y)
    expect(page.locator("#hint")).to_contain_text("注意力")


def test_editing_the_lexicon_changes_the_entities(page: Page, service: Served) -> None:
    type_text(page, SENTENCE)
    expect(arcs(page)).to_have_count(3)
    page.fill("#word", "工作")
    page.select_option("#label", "ORG")
    page.check("#always")
    page.press("#word", "Enter")
    expect(page.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])
    expect(page.locator("#edits li")).to_have_count(1)
    expect(page.locator("#picture .arc.new")).to_have_count(1)
    expect(page.locator("#word")).to_be_focused()
    page.get_by_role("button", name="撤销：工作").click()
    expect(page.locator(LABELS)).to_have_text(["PER", "LOC"])
    page.locator("summary").click()
    page.get_by_role("button", name="移除“北京”").click()
    expect(arcs(page)).to_have_count(2)
    expect(page.locator("#edits li.left")).to_contain_text("北京")
    page.fill("#word", "在北京工")
    page.select_option("#label", "")
    page.press("#word", "Enter")
    expect(arcs(page)).to_have_count(3)
    page.get_by_role("button", name="撤销：北京").click()
    expect(arcs(page)).to_have_count(4)
    page.locator("#threshold").fill("1")
    sure = service.entities(SENTENCE, threshold=1.0, lexicon=[{"text": "在北京工", "label": "ORG"}])
    assert len(sure) < 2
    expect(page.locator(LABELS)).to_have_count(len(sure))


def test_long_texts_are_marked_whole_and_drawn_passage_by_passage(page: Page, service: Served) -> None:
    text = SENTENCE * 1100
    type_text(page, text)
    found = service.entities(text)
    expect(page.locator(LABELS)).to_have_count(len(found), timeout=20_000)
    which, drawn = page.locator("#which"), page.locator("#picture .char")
    expect(which).to_have_text("第 1 段，共 92 段")
    expect(drawn).to_have_count(96)
    expect(page.locator("#measure")).to_contain_text("逐段")
    expect(page.locator("#previous")).to_be_disabled()
    page.locator("#next").click()
    expect(which).to_have_text("第 2 段，共 92 段")
    page.locator("#marked mark").last.click()
    expect(which).to_have_text("第 92 段，共 92 段")
    expect(drawn).to_have_count(len(text) - 91 * 96)
    page.fill("#text", SENTENCE * 1300)
    expect(page.locator("#problem")).to_have_text("文本过长")
    for stale in (LABELS, "#picture svg", "#words tr"):
        expect(page.locator(stale)).to_have_count(0)
    expect(page.locator("#status")).to_have_text("")
    expect(page.locator("#copies")).to_be_hidden()
    type_text(page, SENTENCE)
    expect(page.locator("#problem")).to_be_hidden()
    expect(page.locator(LABELS)).to_have_count(2)


def test_a_passage_ends_with_its_sentence(page: Page) -> None:
    for size, end in enumerate("。！？；!?;", 50):
        type_text(page, "一" * size + end + "二" * 60)
        expect(page.locator("#picture .char")).to_have_count(size + 1)


def test_emoji_do_not_shift_offsets(page: Page, service: Served) -> None:
    text = "😀李明在🇨🇳北京👨‍👩‍👧工作。\n王小红👍🏽在上海"
    type_text(page, text)
    expected = [(e["text"], e["label"]) for e in service.entities(text)]
    assert ("王小红", "PER") in expected
    expect(page.locator(LABELS)).to_have_count(len(expected))
    assert entities(page) == expected
    shown = "".join(page.locator("#marked").evaluate("e => [...e.childNodes].map(n => n.textContent)"))
    assert re.sub("PER|LOC|ORG", "", shown) == text
    drawn = page.locator("#picture .char")
    expect(drawn.filter(has_text="工")).to_have_count(1)
    assert {"😀", "🇨🇳", "👨‍👩‍👧", "👍🏽", "↵"} <= set(drawn.all_text_contents())


def test_typed_text_is_never_markup(page: Page) -> None:
    attack = (
        "<img src=x onerror=\"window.hit=1\">李明</textarea><script>hit=1</script><svg onload='hit=1'>&lt;b&gt;"
    )
    page.fill("#word", attack[:60])
    page.select_option("#label", "PER")
    page.check("#always")
    page.press("#word", "Enter")
    type_text(page, attack)
    expect(page.locator("#picture svg")).to_have_count(1)
    expect(page.locator("#marked mark").first).to_be_visible()
    page.locator("summary").click()
    page.locator("#marked mark").first.hover()
    expect(page.locator("#hint")).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert page.locator("#marked, #edits, #hint, #picture, #words, #legend").locator("img, script, b").count() == 0
    assert "<img" in (page.locator("#marked").text_content() or "")


def test_both_languages(page: Page) -> None:
    html = page.locator("html")
    expect(html).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="English").click()
    expect(html).to_have_attribute("lang", "en")
    expect(page.get_by_role("heading", name="Lexicon")).to_be_visible()
    assert re.findall("[一-鿿]", page.locator("main h2, main label, #status, #measure").all_inner_texts()[0]) == []
    page.reload()
    expect(html).to_have_attribute("lang", "en")


def test_every_control_has_an_accessible_name(page: Page) -> None:
    """For those who do not see the page; and no id stands twice."""
    type_text(page, SENTENCE)
    page.locator("summary").click()
    unnamed = """() => [...document.querySelectorAll("button, input, select, textarea, a, svg, [role]")]
        .filter((e) => !e.closest("[hidden]") && e.id !== "hint" && !["status", "alert"].includes(e.role))
        .filter((e) => !(e.ariaLabel || e.textContent.trim() || (e.labels && e.labels.length)))
        .map((e) => e.outerHTML)"""
    assert page.evaluate(unnamed) == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_a_convention_is_chosen(browser: Browser) -> None:
    with serving("--max-wait-ms", 0, model=tiny.two_conventions()) as served:
        for page in opened(browser, served):
            type_text(page, SENTENCE)
            expect(page.locator(LABELS)).to_have_text(["PER", "LOC"])
            choices = page.locator("#convention option")
            expect(choices).to_have_text(["通用 open", "names"])
            page.fill("#word", "工作")
            page.select_option("#label", "ORG")
            page.check("#always")
            page.press("#word", "Enter")
            expect(page.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])
            expect(page.locator("#edits li")).to_contain_text("ORG · 始终识别")
            page.select_option("#convention", "names")
            expect(page.locator(LABELS)).to_have_text(["name", "place"])
            expect(page.locator("#legend li")).to_have_text(["姓名 name × 1", "place × 1"])
            expect(page.locator("#label option")).to_have_text(["不指定类别", "姓名 name", "place"])
            expect(page.locator("#edits li")).to_contain_text("ORG · 当前规范没有该类别")
            drawn = page.locator("#picture .label")
            expect(drawn).to_have_text(["name", "place"])
            page.get_by_role("button", name="English").click()
            expect(page.locator("#convention")).to_have_value("names")
            page.select_option("#convention", "open")
            expect(page.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])


def test_what_is_shown_is_dimmed_while_the_text_differs(page: Page) -> None:
    type_text(page, SENTENCE)
    page.route("**/v1/entities", lambda route: None)  # no answer comes
    page.fill("#text", "王小红去了上海")
    expect(page.locator("#answer")).to_have_attribute("aria-busy", "true")
    dim = "e => Number(getComputedStyle(e).opacity)"
    for shown in ("#marked", "#below"):
        page.wait_for_function(f"() => ({dim})(document.querySelector('{shown}')) < 0.7")


def test_an_unreachable_service_leaves_nothing_stale(page: Page) -> None:
    type_text(page, SENTENCE)
    page.route("**/v1/entities", lambda route: route.fulfill(status=422, json={"error": "no", "fields": []}))
    page.fill("#text", "王小红去了上海")
    expect(page.locator("#problem")).to_have_text("no")
    expect(page.locator(LABELS)).to_have_count(0)
    expect(page.locator("#picture svg")).to_have_count(0)


def test_the_answer_comes_first_on_a_phone(browser: Browser, service: Served) -> None:
    context = browser.new_context(locale="zh-CN", viewport={"width": 390, "height": 664}, device_scale_factor=2)
    page = context.new_page()
    page.goto(service.url)
    type_text(page, SENTENCE)
    box = page.locator("#marked mark").last.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 500
    tops = [page.locator(name).bounding_box() for name in ("#ask", "#answer", "#below", "#lexicon")]
    places = [top["y"] for top in tops if top is not None]
    assert places == sorted(places)
    assert len(places) == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_a_label_is_suggested_for_a_new_word(page: Page) -> None:
    type_text(page, "听说渝中区的李明很好")
    for word, label in (
        ("李明", "PER"),
        ("渝中区", "LOC"),
        ("人和药店", "ORG"),
    ):  # the last by the model, of the word alone
        page.fill("#word", word)
        expect(page.locator("#suggestion")).to_contain_text(label)
        expect(page.locator("#label")).to_have_value(label)
        expect(page.locator("#always")).to_be_checked()
    page.select_option("#label", "PER")  # the choice of the user stays
    page.fill("#word", "人和")
    page.wait_for_timeout(600)
    expect(page.locator("#label")).to_have_value("PER")
    page.fill("#word", "")
    expect(page.locator("#label")).to_have_value("")
    page.fill("#word", "渝中")  # added before the suggestion is shown
    page.press("#word", "Enter")
    expect(page.locator("#edits li")).to_contain_text("LOC · 始终识别")


def test_copies_work_elsewhere(browser: Browser, service: Served) -> None:
    """The JSON is the response; the Python program and the curl command give the same entities."""
    context = browser.new_context(locale="en", permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(service.url)
    text = '李明\'s \\ "北京"\n工作'
    page.fill("#word", "工作")
    page.select_option("#label", "ORG")
    page.press("#word", "Enter")
    page.locator("#threshold").fill("0.05")
    type_text(page, text)

    def copied(name: str) -> str:
        page.get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#copied")).to_have_text(f"Copied: {name}")
        return str(page.evaluate("navigator.clipboard.readText()"))

    shown = json.loads(copied("JSON"))
    asked = {"lexicon": {"words": [{"text": "工作", "label": "ORG"}], "remove": []}, "force": {"工作": "ORG"}}
    assert shown == {"text": text, "entities": service.entities(text, **asked, threshold=0.05)}
    assert ("工作", "ORG") in [(e["text"], e["label"]) for e in shown["entities"]]
    command = shlex.split(copied("curl"))
    assert command[:2] == ["curl", f"{service.url}/v1/entities"]
    body = json.loads(command[command.index("-d") + 1])
    assert service.client.post("/v1/entities", json=body).json()["entities"] == shown["entities"]
    program = copied("Python").replace(
        "hanlattice.load(", f"hanlattice.load({str(tiny.trained())!r}, engine='torch', "
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    rows = [f"{e['start']} {e['end']} {e['text']} {e['label']}" for e in shown["entities"]]
    assert [line.rpartition(" ")[0] for line in printed.getvalue().splitlines()] == rows
    assert copied("Link") == page.url
    context.close()


def test_a_link_shows_the_same_again(browser: Browser, service: Served) -> None:
    for first in opened(browser, service):
        first.fill("#word", "工作")
        first.select_option("#label", "ORG")
        first.press("#word", "Enter")
        type_text(first, SENTENCE)
        expect(first.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])
        link = first.url
        type_text(first, "王小红 & #上海=%")
        expect(first.locator("#edits li")).to_have_count(1)
        first.reload()
        expect(first.locator("#text")).to_have_value("王小红 & #上海=%")
        first.goto(link)  # only the fragment differs
        expect(first.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])
        expect(first.locator("#text")).to_have_value(SENTENCE)
    for second in opened(browser, service):
        loaded(second, link)
        expect(second.locator(LABELS)).to_have_text(["PER", "LOC", "ORG"])
        expect(second.locator("#edits li")).to_contain_text("工作")
        for broken in (
            "#text=李明&words={",
            "#text=李明&words=[[1]]&removed=3&threshold=x&convention=no",
            "#text=%",
        ):
            loaded(second, f"{service.url}/{broken}")
            expect(second.locator("#picture svg")).to_have_count(1)
            expect(second.locator("#problem")).to_be_hidden()
        second.fill("#text", SENTENCE * 300)  # too long for a link
        expect(second.locator("#count")).to_contain_text(f"{len(SENTENCE) * 300} /")
        assert "#" not in second.url


DROP = """([name, bytes]) => {
    const files = new DataTransfer();
    files.items.add(new File([new Uint8Array(bytes)], name));
    const event = (kind) => new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true });
    document.body.dispatchEvent(event("dragover"));
    const seen = !document.getElementById("drop").hidden;
    document.body.dispatchEvent(event("drop"));
    return seen;
}"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_a_dropped_file_is_read(page: Page, encoding: str) -> None:
    assert page.evaluate(DROP, ["a.txt", list("李明在北京工作。\r\n王小红".encode(encoding))])
    expect(page.locator("#drop")).to_be_hidden()
    expect(page.locator("#text")).to_have_value("李明在北京工作。\n王小红")
    expect(page.locator(LABELS)).to_have_text(["PER", "LOC", "PER"])


def test_a_chosen_file_is_read_as_far_as_it_goes(page: Page) -> None:
    page.set_input_files("#file", {"name": "b.txt", "mimeType": "text/plain", "buffer": ("北" * 10_001).encode()})
    expect(page.locator("#problem")).to_have_text("b.txt 过长，只读取了前 10000 字")
    assert len(page.locator("#text").input_value()) == 10_000
    page.set_input_files("#file", {"name": "c.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n\0\0"})
    expect(page.locator("#problem")).to_have_text("c.png 不是文本文件")


@pytest.mark.parametrize(
    ("width", "scheme", "language"),
    [(390, "light", "zh-CN"), (390, "dark", "en"), (1200, "light", "en"), (1200, "dark", "zh-CN")],
)
def test_axe_finds_nothing(
    browser: Browser, service: Served, width: int, scheme: Literal["light", "dark"], language: str
) -> None:
    """No violations of the rules of axe-core, on the page and on the documentation.

    Each language is tried with each width and each colour scheme.
    """
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    size: ViewportSize = {"width": width, "height": 800}
    context = browser.new_context(locale=language, viewport=size, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(service.url)
    type_text(page, SENTENCE)
    page.locator("summary").click()
    page.fill("#word", "工作")
    page.press("#word", "Enter")
    expect(page.locator("#edits li")).to_have_count(1)
    expect(page.locator("#answer")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("html")).to_have_attribute("lang", language)
    page.wait_for_timeout(400)  # until nothing is dimmed
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    page.goto(f"{service.url}/docs")
    expect(page.locator("#routes h2").first).to_be_visible()
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    context.close()


def test_the_documentation_lists_every_route(page: Page, service: Served) -> None:
    page.goto(f"{service.url}/docs")
    description = service.client.get("/openapi.json").json()
    headings = page.locator("#routes h2")
    expect(headings).to_have_count(
        sum(map(len, description["paths"].values())) + len(description["components"]["schemas"])
    )
    expect(headings.filter(has_text="POST /v1/entities")).to_have_count(1)


def test_the_page_asks_for_a_token(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open-sesame\n")
    with serving("--token-file", tmp_path / "token", "--max-chars", 20) as guarded:
        for page in opened(browser, guarded):
            expect(page.locator("#token")).to_be_visible()
            page.fill("#token", "wrong-token")
            page.press("#token", "Enter")
            expect(page.locator("#problem")).to_contain_text("token")
            page.fill("#token", "open-sesame")
            page.press("#token", "Enter")
            expect(page.locator("#token")).to_be_hidden()
            expect(page.locator("#count")).to_contain_text("/ 20")
            expect(page.locator("#picture svg")).to_have_count(1)
