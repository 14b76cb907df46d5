"""Links of Markdown pages that lead out of the pages of one language.

In the repository a link names a file. In the site there are three kinds:

- to a page of the same language, or to any other file: Sphinx makes a link or a download of it;
- to a page of the other language: a link to its HTML page, since Sphinx builds the languages one by one;
- to a folder of the repository: no link, only the text, as the site does not hold folders.
"""

import re
from os.path import relpath
from pathlib import Path

_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]+)?\)")


def rewritten(text: str, page: Path, docs: Path) -> str:
    """The Markdown of a page with its links for the site.

    Args:
        text: Markdown.
        page: the file that holds it.
        docs: the folder of the English pages, with the Chinese ones in its folder ``zh``.
    """
    parts = _FENCED.split(text)
    parts[::2] = [_LINK.sub(lambda link: _link(link, page, docs), part) for part in parts[::2]]
    return "".join(parts)


def _link(link: re.Match[str], page: Path, docs: Path) -> str:
    text, address, anchor = link[1], link[2], link[3] or ""
    if ":" in address:
        return link[0]
    target = (page.parent / address).resolve()
    if target.is_dir():
        return text
    if (
        target.suffix == ".md"
        and target.is_relative_to(docs)
        and _is_chinese(target, docs) != _is_chinese(page, docs)
    ):
        html = relpath(target.with_suffix(".html"), page.parent)
        return f'<a href="{Path(html).as_posix()}{anchor}">{text}</a>'
    if target.suffix == ".md" and not target.is_relative_to(docs):
        return f"[{text}](path:{address})"  # without the scheme Sphinx looks for a page
    return link[0]


def _is_chinese(page: Path, docs: Path) -> bool:
    return page.is_relative_to(docs / "zh")
