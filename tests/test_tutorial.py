"""The tutorial can be followed from top to bottom: its files are saved, its commands run, its service answers."""

import contextlib
import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hanlattice.cli import main
from test_docs import ROOT, _environment

PAGES = [path for path in (ROOT / "docs" / "tutorial.md", ROOT / "docs" / "zh" / "tutorial.md") if path.is_file()]
# "Save this as `NAME`" or 保存为 `NAME`, and the next block.
_FILE = re.compile(r"(?:\bas|为) `([\w.]+)`[^`]*\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(bash|python|json)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _run(arguments: list[str], folder: Path) -> str:
    """What a command prints; hanlattice runs in this process, because importing torch again takes seconds."""
    if arguments[0] == "hanlattice":
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as left,
        ):
            main(arguments[1:])
        assert not left.value.code, f"{shlex.join(arguments)}: {err.getvalue()}"
        return out.getvalue()
    done = subprocess.run(arguments, cwd=folder, env=_environment(), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{shlex.join(arguments)}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def _service(arguments: list[str], folder: Path, port: int) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hanlattice", *arguments[1:]],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            assert process.poll() is None
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                break
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait(60)


def _saved(page: str, folder: Path) -> list[str]:
    files = _FILE.findall(page)
    for name, content in files:
        (folder / name).write_text(content, "utf-8")
    return [name for name, _ in files]


@pytest.mark.slow
def test_the_tutorial_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation has the same code, which test_docs.py checks, so only one page is run."""
    page = PAGES[0].read_text("utf-8")
    assert _saved(page, tmp_path) == ["train.txt", "dev.txt", "test.txt", "words.txt", "messages.csv"]
    printed: dict[str, str] = {}
    port = _free_port()
    monkeypatch.chdir(tmp_path)
    with contextlib.ExitStack() as stack:
        for language, block in _BLOCK.findall(page):
            if language == "python":
                assert Path("model").is_dir()
                exec(compile(block, "tutorial", "exec"), {"__name__": "tutorial"})
            for line in block.splitlines() if language == "bash" else []:
                arguments = shlex.split(line.replace("8000", str(port)))
                if arguments[0] == "pip":
                    continue
                if arguments[:2] == ["hanlattice", "serve"]:
                    stack.enter_context(_service(arguments, tmp_path, port))
                    continue
                key = " ".join(arguments[:2]) if arguments[0] == "hanlattice" else arguments[0]
                key += f" {arguments[-1]}" if arguments[1] == "predict" else ""
                key += " with words" if "--lexicon" in arguments else ""
                printed[key] = _run(arguments, tmp_path)
    assert "no defects" in printed["hanlattice check"]
    assert _micro(printed["hanlattice evaluate"])["F1"] > 75  # 89.7 in the page, on one processor
    assert "尾插   PART" not in printed["hanlattice predict 我的泡桐8尾插松了"]
    assert re.search(
        "^泡桐8 +PRODUCT .*\n尾插 +PART ", printed["hanlattice predict 我的泡桐8尾插松了 with words"], re.MULTILINE
    )
    assert "折浪Fold  PRODUCT" in printed["hanlattice predict 折浪Fold充电时发烫，后盖也翘了 with words"]
    rows = [json.loads(line) for line in (tmp_path / "entities.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert rows[2]["entities"] == []
    (shown,) = (json.loads(block) for language, block in _BLOCK.findall(page) if language == "json")
    answered = _without_scores(json.loads(printed["curl"]), 0.0)
    certain = _without_scores(shown, 0.9)  # the others may differ between processors
    assert len(certain) == 2
    assert [entity for entity in certain if entity not in answered] == []


def _micro(report: str) -> dict[str, float]:
    (row,) = re.findall(r"^micro\s+(\S+)\s+(\S+)\s+(\S+)", report, re.MULTILINE)
    return dict(zip(("P", "R", "F1"), map(float, row), strict=True))


def _without_scores(answer: dict[str, list[dict[str, Any]]], least: float) -> list[dict[str, Any]]:
    """The entities with a score of at least ``least``."""
    found = [entity for entity in answer["entities"] if entity["score"] >= least]
    return [{name: value for name, value in entity.items() if name != "score"} for entity in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: os.path.relpath(path, ROOT))
def test_the_corpora_of_the_tutorial_have_no_defects(page: Path, tmp_path: Path) -> None:
    from hanlattice.corpus.checking import check

    _saved(page.read_text("utf-8"), tmp_path)
    report = check([str(tmp_path / f"{name}.txt") for name in ("train", "dev", "test")])
    assert [str(defect) for defect in report.defects] == []
