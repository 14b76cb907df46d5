"""The pages of docs/papers: their sections, the files and settings they name, and the scores they quote."""

import re
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import pytest

from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS
from hanlattice.encoders.positions import POSITIONS
from papers.test_published import F1

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "papers"
INDEX = FOLDER / "index.md"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)
SETTINGS = ROOT / "src" / "hanlattice" / "papers"
NAMES = sorted(path.relative_to(SETTINGS).with_suffix("").as_posix() for path in SETTINGS.rglob("*.toml"))
FAMILIES = {name.partition("/")[0] for name in NAMES}
SHARED = [name for name in NAMES if name.endswith("/common")]  # what other files are based on
SECTIONS = ["Idea", "Code", "Settings", "Scores", "Pitfalls"]
CORPORA = {
    "Weibo": "weibo", "Resume": "resume", "MSRA": "msra", "OntoNotes 4": "ontonotes4", "CLUENER": "cluener",
    "CMeEE": "cmeee", "People's Daily": "people_daily",
}  # fmt: skip
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def rows(page: Path, first: str) -> list[dict[str, str]]:
    """The rows of all tables of a page whose first column is called ``first``, by the names of their columns."""
    found: list[dict[str, str]] = []
    header: list[str] = []
    for line in text_of(page).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            header = []
        elif not header:
            header = cells
        elif header[0] == first and not set(cells[0]) <= set("-"):
            found.append(dict(zip(header, cells, strict=True)))
    return found


def named(text: str) -> set[str]:
    """What is named as ``family/NAME`` in code and in commands: settings files, or patterns of several."""
    code = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    words = (word for part in code for word in part.split())
    return {word for word in words if word.partition("/")[0] in FAMILIES and "/" in word}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
class TestPage:
    def test_it_has_the_same_sections_as_the_others(self, page: Path) -> None:
        text = text_of(page)
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
        assert re.match(r"# .+\n\n", text)
        assert "https://" in text.partition("## Idea")[0], "the papers are linked before the first section"

    def test_it_shows_a_figure_or_a_drawing(self, page: Path) -> None:
        idea = text_of(page).partition("## Idea")[2].partition("## Code")[0]
        assert re.search(r"!\[[^\]]+\]\([\w-]+\.svg\)", idea) or re.search(r"^```\n", idea, re.MULTILINE)

    def test_files_exist(self, page: Path) -> None:
        files = re.findall(r"`((?:src|tests|docs|scripts|benchmarks)/[^`\s]+)`", text_of(page))
        assert [name for name in files if not (ROOT / name).exists()] == []
        assert re.search(r"\]\(\.\./\.\./src/hanlattice/\S+\.py\)", text_of(page)), "our file is linked"

    def test_settings_files_exist(self, page: Path) -> None:
        patterns = named(text_of(page))
        assert patterns
        assert [one for one in sorted(patterns) if not any(fnmatchcase(name, one) for name in NAMES)] == []

    def test_published_scores_are_those_of_the_headers(self, page: Path) -> None:
        for row in rows(page, "published"):
            for column, cell in row.items():
                score = re.match(r"(\d\d\.\d\d)\b", cell)
                if score and column in CORPORA:
                    (pattern,) = named(row["published"])
                    name = pattern.replace("*", CORPORA[column])
                    assert name in F1, f"published.toml has no F1 of {name}"
                    assert float(score[1]) == F1[name], name

    def test_measured_scores_are_those_of_the_results(self, page: Path) -> None:
        for row in rows(page, "measured"):
            (name,) = named(row["measured"])
            scores = [cell for cell in row.values() if re.match(r"\d\d\.\d\d", cell)]
            assert scores, row
            assert any(_has(line, name, scores) for line in RESULTS), f"docs/results.md has no such row: {row}"
            assert "../results.md#" in text_of(page).partition("## Scores")[2]

    def test_the_index_has_it(self, page: Path) -> None:
        assert f"]({page.name})" in text_of(INDEX)


def _has(line: str, name: str, scores: list[str]) -> bool:
    """Whether a row of a table has these scores next to each other, and names the settings or what they are of."""
    cells = [cell.strip() for cell in line.split("|")]
    family, _, last = name.rpartition("/")
    system = re.sub(rf"-({'|'.join(CORPORA.values())})$", "", last)
    keys = {f"`{key}`" for key in (name, last, system, family)}
    starts = range(len(cells) - len(scores) + 1)
    return bool(keys & set(cells)) and any(cells[i : i + len(scores)] == scores for i in starts)


def test_every_settings_file_is_named_on_a_page() -> None:
    patterns = {pattern for page in (*PAGES, INDEX) for pattern in named(text_of(page))}
    missing = [name for name in NAMES if not any(fnmatchcase(name, pattern) for pattern in patterns)]
    assert [name for name in missing if name not in SHARED] == []


def test_every_published_f1_is_on_a_page() -> None:
    found = set()
    for page in PAGES:
        for row in rows(page, "published"):
            scores = [(column, cell) for column, cell in row.items() if column in CORPORA and cell[:1].isdigit()]
            found |= {pattern.replace("*", CORPORA[c]) for pattern in named(row["published"]) for c, _ in scores}
    assert sorted(set(F1) - found) == []


@pytest.mark.parametrize("parts", [EMBEDDINGS, ENCODERS, DECODERS, POSITIONS], ids=lambda parts: sorted(parts)[0])
def test_every_part_is_named_on_a_page(parts: dict[str, object]) -> None:
    words = {code for page in (*PAGES, INDEX) for code in re.findall(r"`([^`\n]+)`", text_of(page))}
    assert sorted(set(parts) - words) == []


def test_the_index_is_ordered_by_year_within_its_tables() -> None:
    for table in re.split(r"^## ", text_of(INDEX), flags=re.MULTILINE)[1:]:
        years = [int(year) for year in re.findall(r"^\| \[[^|]+\| [^|]*?(\d{4})[^|]*\|", table, re.MULTILINE)]
        assert all(earlier <= later for earlier, later in pairwise(years)), table.partition("\n")[0]
