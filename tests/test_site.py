"""The documentation site builds without a warning, works without a network, and is complete in both languages."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.main import get_command

import hanlattice
from docs_site import links, navigation, reference
from hanlattice.cli import COMMANDS, app
from test_docs import CHINESE, ROOT, _environment

DOCS = ROOT / "docs"
ENGLISH = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if CHINESE not in path.parents)
RECORDS = {f"{name}.md" for name in navigation.pages(navigation.RECORDS, DOCS)}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_sphinx = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="Sphinx, MyST or furo is not installed (extra docs)",
)


def test_every_guide_page_has_a_translation() -> None:
    """``test_docs.py`` compares a page with its translation; only records are in English alone."""
    assert [page for page in ENGLISH if page not in RECORDS and not (CHINESE / page).is_file()] == []


def test_every_page_is_in_one_section() -> None:
    sections = [*navigation.GUIDE, navigation.RECORDS]
    listed = [f"{name}.md" for section in sections for name in navigation.pages(section, DOCS)]
    assert sorted(listed) == [page for page in ENGLISH if page != "index.md"]


def test_every_pattern_of_a_section_has_pages() -> None:
    named = [name for section in (*navigation.GUIDE, navigation.RECORDS) for name in section.pages]
    assert [name for name in named if not list(DOCS.glob(f"{name}.md"))] == []


@pytest.mark.parametrize(
    ("page", "text", "rewritten"),
    [
        ("a.md", "[x](zh/a.md#b)", '<a href="zh/a.html#b">x</a>'),
        ("zh/papers/a.md", "[x](../../results.md)", '<a href="../../results.html">x</a>'),
        ("a.md", "[x](../deploy)", "x"),
        ("a.md", "[x](../README.md#limits)", "[x](path:../README.md)"),
        ("a.md", "[x](b.md#c) ![y](z.png) [w](https://a.b/c.md)", None),
        ("a.md", "```\n[x](../deploy)\n```\n", None),
    ],
)
def test_links_out_of_a_language(page: str, text: str, rewritten: str | None) -> None:
    assert links.rewritten(text, DOCS / page, DOCS) == (text if rewritten is None else rewritten)


def test_reference_of_commands_has_every_option() -> None:
    page = reference.commands()
    for name in COMMANDS:
        section = page.partition(f"## `{name}`")[2].partition("\n## ")[0]
        command: Any = get_command(app).get_command(None, name)  # type: ignore[attr-defined]
        for inner in getattr(command, "commands", {"": command}).values():
            options = [p.opts for p in inner.params if p.param_type_name == "option" and not p.hidden]
            assert [found for found in options if max(found, key=len) not in section] == []
        if hasattr(command, "commands"):
            assert [p.opts for p in command.params] == []  # such as --install-completion, which is of hanlattice


def test_reference_of_the_api_has_every_public_name() -> None:
    assert set(reference.MODULES["hanlattice"]) == set(hanlattice.__all__) - {"__version__"}
    for module, names in (reference.MODULES | reference.PARTS).items():
        for name in names:
            assert getattr(import_module(module), name).__doc__, f"{module}.{name}"


def test_numbers_of_the_decision_tables_are_on_their_sources() -> None:
    page = (DOCS / "choosing.md").read_text("utf-8")
    sources = set(re.findall(r"\]\(([\w/-]+\.md)", page))
    known = "\n".join((DOCS / name).read_text("utf-8") for name in sources)
    numbers = set(re.findall(r"\d+\.\d+|\d+,\d+", page))
    assert len(numbers) > 50
    assert [number for number in sorted(numbers) if number not in known] == []


def test_an_unknown_option_of_the_build_is_one_line() -> None:
    done = subprocess.run([ROOT / "scripts" / "docs", "--out", "x"], capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--out is unknown" in done.stderr


class _Page(HTMLParser):
    """Addresses and ids of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.ids, self.links, self.loads = set[str](), list[str](), list[str]()
        self.languages = list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids.add(found.get("id", ""))
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
            if "hreflang" in found and "lang" in found:
                self.languages.append(found["href"])
        elif tag in ("script", "img", "link") and (address := found.get("src", found.get("href", ""))):
            self.loads.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both languages, built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [str(ROOT / "scripts" / "docs"), "--output", str(folder)]
    environment = _environment() | {"PATH": f"{Path(sys.executable).parent}:{_environment()['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return folder


@needs_sphinx
@pytest.mark.slow
def test_links_of_the_built_site(site: Path) -> None:
    """Every link leads to a page and an anchor, nothing is loaded from a network, and languages are linked."""
    pages = {path: _Page(path.read_text("utf-8")) for path in site.rglob("*.html")}
    assert len(pages) > len(ENGLISH)
    broken, loaded = [], []
    for path, page in pages.items():
        loaded += [address for address in page.loads if re.match(r"(?:https?:)?//", address)]
        assert page.languages, path
        for link in [*page.links, *(address.partition("?")[0] for address in page.loads)]:
            if re.match(r"[a-z]+:|data:", link):
                continue
            address, _, anchor = link.partition("#")
            target = (path.parent / address).resolve() if address else path
            known = pages[target].ids if target in pages else None
            if not target.is_file() or (anchor and known is not None and anchor not in known):
                broken.append((path.relative_to(site).as_posix(), link))
    assert loaded == []
    assert broken == []


@needs_sphinx
@pytest.mark.slow
def test_each_page_leads_to_the_same_page_of_the_other_language(site: Path) -> None:
    for name in ("index", "lexicon", "papers/flat"):
        english, chinese = site / f"{name}.html", site / "zh" / f"{name}.html"
        for here, there in ((english, chinese), (chinese, english)):
            found = _Page(here.read_text("utf-8")).languages
            assert {(here.parent / link).resolve() for link in found} == {there}


@needs_sphinx
def test_chinese_text_is_indexed_by_pairs_of_characters() -> None:
    from docs_site.search import MixedSearch

    assert MixedSearch({}).split("词格（lattice）") == ["词", "格", "词格", "lattice"]


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs_sphinx
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")
@pytest.mark.parametrize(
    ("language", "query", "page"), [("zh/", "用户词", "lexicon.html"), ("", "gazetteer", "lexicon.html")]
)
def test_search_in_a_browser(served: str, language: str, query: str, page: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra test)")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page()
        requested: list[str] = []
        tab.on("request", lambda request: requested.append(request.url))
        tab.goto(f"{served}/{language}search.html?q={query}")
        tab.wait_for_selector("ul.search li a")
        found = [a.get_attribute("href") for a in tab.query_selector_all("ul.search li a")]
        browser.close()
    assert any(address.partition("?")[0].endswith(page) for address in found)
    assert [url for url in requested if not url.startswith(served)] == []
