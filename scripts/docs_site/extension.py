"""The Sphinx extension: generated parts of pages, and the link to the other language."""

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.search import languages

from docs_site import formulas, links, navigation, reference
from docs_site.search import MixedSearch

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    languages["en"] = languages["zh"] = MixedSearch
    app.add_html_math_renderer("mathml", (formulas.inline, None), (formulas.block, None))
    app.connect("source-read", _read)
    app.connect("html-page-context", _add_other_language)
    return {"parallel_read_safe": True}


def _is_chinese(app: Sphinx) -> bool:
    return str(app.config.language).startswith("zh")


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """The Markdown of a page, with the parts that are generated."""
    chinese = _is_chinese(app)
    text = links.rewritten(source[0], Path(app.srcdir) / f"{page}.md", DOCS)
    text = reference.filled_in(text)
    if page == "index":
        text += navigation.toctrees(DOCS, chinese=chinese)
    elif chinese and page == "records":
        text += navigation.list_of_records(DOCS)
    source[0] = text


def _add_other_language(app: Sphinx, page: str, template: str, context: dict[str, Any], _: object) -> None:
    """Give the templates the link to the same page in the other language, or to its first page."""
    to_root = "../" * page.count("/")
    if _is_chinese(app):
        target = page if (DOCS / f"{page}.md").is_file() else "index"
        context["other_language"] = {"code": "en", "name": "English", "path": f"{to_root}../{target}.html"}
    else:
        target = page if (DOCS / "zh" / f"{page}.md").is_file() else "index"
        context["other_language"] = {"code": "zh-CN", "name": "简体中文", "path": f"{to_root}zh/{target}.html"}
