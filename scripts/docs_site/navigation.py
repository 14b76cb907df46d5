"""The sections of the site and their pages, in order."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Section(NamedTuple):
    """Pages under one heading of the sidebar; a name may be a pattern such as ``papers/*``."""

    english: str
    chinese: str
    pages: tuple[str, ...]


GUIDE = (
    Section("Start", "入门", ("installation", "tutorial", "choosing", "faq")),
    Section(
        "How to",
        "操作指南",
        (
            *("lexicon", "fine-tuning", "annotation-loop", "nested", "long-text", "text", "offsets", "scaling"),
            *(
                "annotate",
                "distributed",
                "deployment",
                "serving",
                "integrations",
                "patterns",
                "words",
                "conventions",
            ),
            *("confidence", "compare", "tune", "explain", "linear", "pretrained", "pretraining", "training"),
            *("add-an-encoder", "add-a-decoder"),
        ),
    ),
    Section("Explanation", "原理", ("lattice", "flat", "systems", "experiments", "engines")),
    Section("Papers", "论文", ("papers/index", "papers/*")),
    Section("Migration", "迁移", ("migration/*",)),
    Section("Reference", "参考", ("commands", "api", "settings", "formats")),
)
# In English only: measurements and reasons, which change with the code.
RECORDS = Section(
    "Records", "英文记录", ("results", "benchmarks-*", "reliability", "mutation", "design", "decisions/*")
)


def pages(section: Section, folder: Path) -> Iterator[str]:
    """The pages of a section that exist under a folder."""
    found = (path for name in section.pages for path in sorted(folder.glob(f"{name}.md")))
    yield from dict.fromkeys(path.relative_to(folder).with_suffix("").as_posix() for path in found)


def toctrees(docs: Path, *, chinese: bool) -> str:
    """Directives that put all pages into the sidebar."""
    folder = docs / "zh" if chinese else docs
    sections = [*GUIDE, Section("Records", "英文记录", ("records",))] if chinese else [*GUIDE, RECORDS]
    blocks = []
    for section in sections:
        names = list(pages(section, folder))
        if names:
            caption = section.chinese if chinese else section.english
            lines = [":hidden:", f":caption: {caption}", "", *names]
            blocks.append("\n".join(["", "```{toctree}", *lines, "```", ""]))
    return "".join(blocks)


def list_of_records(docs: Path) -> str:
    """Links from the Chinese site to the pages that exist in English only."""
    rows = []
    for name in pages(RECORDS, docs):
        title = (docs / f"{name}.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
        rows.append(f'- <a href="../{name}.html" hreflang="en">{title.replace("`", "")}</a>')
    return "\n" + "\n".join(rows) + "\n"
