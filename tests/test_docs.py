"""The documentation is true: examples run, commands exist, links lead somewhere, tables are complete."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import hanlattice
import tiny
from hanlattice import corpus
from hanlattice.cli import app
from hanlattice.config.linear import CRF, LINEAR, NGRAMS
from known_settings import PARTS, known_settings

ROOT = Path(__file__).parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
PAGES = [*READMES, *OTHERS, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
CHINESE = ROOT / "docs" / "zh"
TRANSLATED = sorted(set(CHINESE.rglob("*.md")) - {CHINESE / "records.md"})  # the list of English records
TRANSLATED += sorted((ROOT / "examples").rglob("README.zh-CN.md"))
ORIGINALS = [
    page for page in PAGES if page.name != READMES[1].name and CHINESE not in page.parents
]  # a translation has the same code
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"⟦\w+⟧")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _blocks(page: Path, language: str) -> list[str]:
    return [code for found, code in _FENCED.findall(page.read_text(encoding="utf-8")) if found == language]


def _prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def _environment() -> dict[str, str]:
    """For programs that must import what these tests import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}


PYTHON = [
    pytest.param(code, id=f"{_name(page)}-{i}")
    for page in ORIGINALS
    for i, code in enumerate(_blocks(page, "python"))
]


@pytest.mark.filterwarnings("ignore:this processor has no int8")  # as it may, and the example works all the same
@pytest.mark.parametrize("code", PYTHON)
def test_python_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "hanlattice.tune(" in code:
        pytest.importorskip("optuna", reason="needs the extra tune")
    monkeypatch.chdir(tmp_path)
    for name in ("train.jsonl", "test.jsonl", "other.jsonl"):
        corpus.write(tiny.documents(), name, "jsonl")
    exec(compile(code, "documentation", "exec"), {"__name__": "documentation"})


@pytest.mark.parametrize("example", EXAMPLES, ids=_name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=_environment(), capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_first_prediction_is_the_one_shown() -> None:
    text = READMES[0].read_text(encoding="utf-8")
    command, shown = re.findall(r"hanlattice predict (\S+)\n```\n\n```\n(.*?)```", text, re.DOTALL)[0]
    arguments = [sys.executable, "-m", "hanlattice", "predict", command]
    printed = subprocess.run(arguments, env=_environment(), capture_output=True, encoding="utf-8").stdout

    def rows(table: str) -> list[list[str]]:
        return [line.split()[:4] for line in table.splitlines()]  # scores differ between machines in the last digit

    assert rows(shown) == rows(printed)


@pytest.mark.parametrize(
    "page", [*READMES, ROOT / "docs" / "lattice.md", ROOT / "docs" / "zh" / "lattice.md"], ids=str
)
def test_the_entities_of_the_first_figure_are_those_of_the_model(page: Path) -> None:
    block = re.findall(r"```\n((?:characters|字) .*?)```", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    characters, *_, entities = (line.split()[1:] for line in block.splitlines())
    found = hanlattice.load()("".join(characters)).entities
    assert entities == [part for entity in found for part in (entity.text, entity.label)]


def _commands(block: str) -> list[str]:
    """The lines of a block; a line that ends in a backslash continues on the next line."""
    return block.replace("\\\n", " ").splitlines()


COMMANDS = [
    pytest.param(line, id=f"{_name(page)}-{line[:50]}")
    for page in ORIGINALS
    for block in _blocks(page, "bash")
    for line in _commands(block)
    if "hanlattice " in line
]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_exists(line: str) -> None:
    for words in (call.split() for call in re.findall(r"\bhanlattice ([a-z][^|&#]*)", line)):
        commands: Any = get_command(app)
        command = commands.get_command(None, words[0])
        assert command is not None, words[0]
        if hasattr(command, "commands"):
            command = command.commands[words[1]]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            if word.startswith("--"):
                option = word.partition("=")[0]
                assert option in known or ("." in option and _setting_exists(option[2:])), option
        if "--paper" in words:
            paper = words[words.index("--paper") + 1]
            assert (Path(hanlattice.__file__).parent / "papers" / f"{paper}.toml").is_file(), paper


def _setting_exists(dotted: str) -> bool:
    part, _, key = dotted.partition(".")
    of_linear = {"embedding": NGRAMS, "encoder": LINEAR, "decoder": CRF}
    is_known = any(dotted == name for _, name in known_settings()) or key in of_linear.get(part, {})
    return is_known or (part in PARTS and key in ("name", "d_hidden"))


def test_programs_named_in_the_pages_exist() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"\bpython ((?:benchmarks|examples|scripts)/\S+?\.py)", page.read_text("utf-8"))
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_options_of_programs_exist() -> None:
    """Options of ``python benchmarks/…`` and the like, in text and in blocks, also on continued lines."""
    calls = [
        (name, options)
        for page in PAGES
        for name, options in re.findall(
            r"\bpython ((?:benchmarks|examples|scripts|tests)/\S+?\.py)([^`\n|&#]*)",
            page.read_text("utf-8").replace("\\\n", " "),
        )
    ]
    named = [(name, option) for name, options in calls for option in re.findall(r"(?<!\S)--[a-z0-9-]+", options)]
    assert len(named) > 5
    sources = {name: (ROOT / name).read_text("utf-8") for name, _ in named}
    assert [call for call in named if not re.search(rf'"{call[1]}"', sources[call[0]])] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?[^)]*\)", _prose(page))
    local = [(page.parent / link if link else page, anchor) for link, anchor in links if "://" not in link]
    assert [target for target, _ in local if not target.exists()] == []
    assert [(t, anchor) for t, anchor in local if anchor and t.suffix == ".md" and anchor not in _anchors(t)] == []


def _anchors(page: Path) -> set[str]:
    """The anchors of headings, as Git hosts make them: lower case, with hyphens, without punctuation."""
    headings = re.findall(r"^#+ (.*)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_nothing_is_left_to_fill_in(page: Path) -> None:
    assert _PLACEHOLDER.findall(page.read_text(encoding="utf-8")) == []


def test_both_readmes_say_the_same() -> None:
    english, chinese = READMES
    texts = [page.read_text(encoding="utf-8") for page in READMES]
    headings = [re.findall(r"^#+(?= )", _prose(page), re.MULTILINE) for page in READMES]
    assert headings[0] == headings[1]
    languages = [[language for language, _ in _FENCED.findall(text)] for text in texts]
    assert languages[0] == languages[1]
    for language in ("bash", "bibtex"):
        assert _blocks(english, language) == _blocks(chinese, language)
    code = [[ast.dump(ast.parse(block)) for block in _blocks(page, "python")] for page in READMES]
    assert code[0] == code[1]
    for pattern in (_NUMBER, _PLACEHOLDER):
        found = [Counter(pattern.findall(_prose(page))) for page in READMES]
        assert found[0] == found[1]
    assert _targets(english) == _targets(chinese)


def test_speeds_in_the_readme_are_those_of_the_linked_pages() -> None:
    """They may be rounded. A row without a link of its own belongs to the page of the row above."""
    table = READMES[0].read_text(encoding="utf-8").partition("\n## Speed\n")[2].partition("\n## ")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 3
    page = ""
    for row in rows:
        if links := re.findall(r"\]\((docs/[\w-]+\.md)", "|".join(row)):
            page = (ROOT / links[0]).read_text(encoding="utf-8")
        measured = _NUMBER.findall(re.sub(r"\[[^\]]*\]\([^)]*\)|int8|float32", "", row[1]))
        assert measured
        known = [number.replace(",", "") for number in _NUMBER.findall(page)]
        for number in measured:
            digits = len(number.partition(".")[2])
            rounded = {f"{float(other):.{digits}f}" for other in known if re.fullmatch(r"\d+(\.\d+)?", other)}
            assert number.replace(",", "") in rounded, (number, row)


@pytest.mark.parametrize("chinese", TRANSLATED, ids=_name)
def test_a_translated_page_is_complete(chinese: Path) -> None:
    english = _original(chinese)
    assert english.is_file()
    assert _FENCED.findall(chinese.read_text("utf-8")) == _FENCED.findall(english.read_text("utf-8"))
    for find in (_structure, _numbers, _targets):
        assert find(chinese) == find(english)
    assert _inline_code(chinese) >= _inline_code(english)


def test_chinese_pages_link_to_chinese_pages() -> None:
    """A link leads to an English page only if that page is not translated, or is the same page in English."""
    found = [(page, link) for page in TRANSLATED for link in re.findall(r"\]\(([^)#\s:]+\.md)[)#]", _prose(page))]
    assert len(found) > 100
    targets = [(page, link, (page.parent / link).resolve()) for page, link in found]
    others = [(page, link, target) for page, link, target in targets if target != _original(page)]
    translated = set(map(_original, TRANSLATED))
    assert [(_name(page), link) for page, link, target in others if target in translated] == []


def _original(page: Path) -> Path:
    """The English page of a translated one; any other page itself."""
    if page.is_relative_to(CHINESE):
        return ROOT / "docs" / page.relative_to(CHINESE)
    return page.with_name("README.md") if page.name == READMES[1].name else page


def _structure(page: Path) -> list[tuple[int, int, set[str], set[str]]]:
    """In order: levels of headings, separators of rows of tables, and the numbers and ASCII code of both."""
    rows = re.findall(r"^(?:#+ .*|\|.*\|)$", _prose(page), re.MULTILINE)
    return [
        (
            len(row) - len(row.lstrip("#")),
            row.count("|"),
            set(_NUMBER.findall(row)),
            {code for code in re.findall(r"`([^`]+)`", row) if code.isascii()},
        )
        for row in rows
    ]


def _numbers(page: Path) -> set[str]:
    return set(_NUMBER.findall(_prose(page)))


def _inline_code(page: Path) -> set[str]:
    """Code in ASCII; code with Chinese characters may be joined or split."""
    found = {code.replace("\n", " ") for code in re.findall(r"`([^`]+)`", _prose(page))}
    return {code for code in found if code.isascii()}


def _targets(page: Path) -> Counter[Path | str]:
    """What the links of a page lead to; a translated page counts as its original."""
    found: Counter[Path | str] = Counter()
    for link in re.findall(r"\]\(([^)#\s]*)(?:#[^)\s]*)?\)", _prose(page)):
        target = _original((page.parent / link).resolve() if link else page)
        found[link if "://" in link else target] += 1
    return found


def test_formats_page_tells_what_each_format_carries() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").replace(r"\|", "")
    listed: dict[str, list[bool]] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and cells[0].startswith("`"):
            carried = [cell == "yes" for cell in cells[2:6]]
            for name in re.findall(r"`([\w-]+)`", cells[0]):
                listed[name] = [*carried, cells[6].startswith("yes")]
    assert listed.keys() == {*corpus.FORMATS, *corpus.PATHS}
    for name in corpus.writable():
        holds = corpus.carries(name).features
        features = ("overlaps", "fragments", "ids", "scores")
        assert listed[name] == [*(feature in holds for feature in features), True], name
    assert {name for name, row in listed.items() if row[-1]} == set(corpus.writable())


def _tests() -> set[str]:
    """All tests and classes of tests, such as ``test_docs.py::test_python_runs``."""
    found: set[str] = set()
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT / "tests").as_posix()
        for node in ast.parse(path.read_text("utf-8")).body:
            found |= {f"{file}::{getattr(node, 'name', '')}"}
            if isinstance(node, ast.ClassDef):
                found |= {f"{file}::{node.name}::{getattr(inner, 'name', '')}" for inner in node.body}
    return found


def test_reliability_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py::[\w:]+)`", page)
    assert len(named) > 150
    assert sorted(set(named) - _tests()) == []
    rows = [
        line
        for line in page.splitlines()
        if line.startswith("|") and not line.startswith(("|---", "| case", "| st", "| command", "| `tests/long/"))
    ]
    assert [row for row in rows if ".py::" not in row] == []
    programs = re.findall(r"`(long/\w+\.py)`", page)
    assert sorted(programs) == sorted(set(programs))
    assert [name for name in programs if not (ROOT / "tests" / name).is_file()] == []


def test_the_response_of_the_service_is_the_one_shown() -> None:
    page = ROOT / "docs" / "serving.md"
    (text,) = re.findall(r"-d '(\{.*?\})'", page.read_text("utf-8"))
    shown = json.loads(_blocks(page, "json")[0])["entities"]
    found = [entity.to_dict() for entity in hanlattice.load()(json.loads(text)["text"]).entities]
    for entity in shown:
        entity["score"] = pytest.approx(entity["score"], abs=0.02)  # processors differ
    assert [{name: entity[name] for name in shown[0]} for entity in found] == shown


def test_engines_page_names_every_kernel() -> None:
    """All C sources but the one that asks the processor for its level."""
    named = re.findall(r"\[(\w+\.c)\]", (ROOT / "docs" / "engines.md").read_text("utf-8"))
    sources = {path.name for path in (ROOT / "src" / "hanlattice" / "kernels").glob("*.c")}
    assert sorted(named) == sorted(sources - {"level.c"})
