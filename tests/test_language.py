"""Words that the style rules replace by plain ones do not occur in code, documentation or messages."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "docs", "examples", "benchmarks", "experiments", "scripts")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
SUFFIXES = {".py", ".md", ".toml", ".c", ".h", ".js", ".css", ".html", ""}

# By what to write in their place.
REPLACED = {
    "fix, suggested fix": r"\bmend(s|ed|ing)?\b",
    "command": r"\bverbs?\b(?!.*\b(noun|speech)\b)",
    "module, package, section": r"(?<!have )(?<!no )(?<!is )\brooms?\b(?! for\b)",
    "report, describe, log": r"\b(told|tells)\b|\bsays of itself\b",
    "again, initial": r"\b(anew|begun)\b",
    "resume, continue": r"\bgoes on\b(?! (stdout|stderr))",
    "no one, the caller, the user": r"\b(nobody|somebody)\b",
    "most confident, top-k": r"\bsurest\b",
    "follow": r"\bheed(s|ed)?\b",
}


def lines() -> list[tuple[str, int, str]]:
    paths = [ROOT / name for name in PAGES]
    for folder in FOLDERS:
        paths += sorted(path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    found = []
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if "__pycache__" not in name:
            text = path.read_text("utf-8")
            found += [(name, number, line) for number, line in enumerate(text.splitlines(), 1)]
    return found


LINES = lines()


@pytest.mark.parametrize("plain", REPLACED)
def test_plain_word_is_used(plain: str) -> None:
    pattern = re.compile(REPLACED[plain], re.IGNORECASE)
    found = [f"{name}:{number}: {line.strip()}" for name, number, line in LINES if pattern.search(line)]
    assert found == [], f"write instead: {plain}"
