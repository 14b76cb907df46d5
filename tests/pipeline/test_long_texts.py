"""A text of any length: all its entities, with offsets into it, in memory that grows with the text only."""

import subprocess
import sys
from pathlib import Path

import pytest

import hanlattice
from hanlattice.cli import main

SENTENCE = "雷军在北京发布小米14，央视直播，网友却在看世界杯。"
CODE = f"""
import resource, sys
import hanlattice
ner = hanlattice.load("lite")
text = ({SENTENCE!r} * (int(sys.argv[1]) // {len(SENTENCE)} + 1))[:int(sys.argv[1])]
document = ner(text)
assert document.text == text
assert all(text[e.start : e.end] == e.text for e in document.entities)
assert all(a.end <= b.start for a, b in zip(document.entities, document.entities[1:]))
print(len(document.entities), document.entities[-1].end, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def read(characters: int) -> tuple[int, int, int]:
    """Entities of a text, the end of the last one, and the peak memory in MiB of a process that reads it."""
    code = [sys.executable, "-c", CODE, str(characters)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n, end, memory = map(int, done.stdout.split())
    return n, end, memory // 1024


def test_five_million_characters() -> None:
    characters = 5_000_000
    short, _, before = read(characters // 100)
    n, end, memory = read(characters)
    assert n == pytest.approx(100 * short, rel=0.01)
    assert characters - len(SENTENCE) < end <= characters
    assert memory - before < 1200  # 240 bytes for each character, most of them for the entities


LIMITED = """
import resource, sys
from hanlattice import api
from hanlattice.cli import main, predict
api.load(sys.argv[2])("李明")  # so that everything is imported
with open("/proc/self/statm") as stream:
    used = int(stream.read().split()[0]) * resource.getpagesize()
most = used + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
main(["predict", "-", "--model", sys.argv[2], "--format", "jsonl"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
@pytest.mark.parametrize(
    ("model", "mebibytes"), [("lite", n) for n in (8, 32, 64, 4000)] + [("default", n) for n in (16, 64)]
)
def test_a_limit_of_memory_is_an_error(model: str, mebibytes: int) -> None:
    """Wherever the memory runs out: while the model is opened, or while the text is read.

    The message is one line; where safetensors runs out of memory, Rust prints lines of its own before it.
    """
    code = [sys.executable, "-c", LIMITED, str(mebibytes), model]
    text = SENTENCE * 20_000 + "\n"
    done = subprocess.run(code, input=text, capture_output=True, text=True, check=False, timeout=120)
    if mebibytes == 4000:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1, (done.returncode, done.stderr)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: out of memory"), done.stderr
    assert "panicked" in done.stderr or done.stderr.count("\n") == 1


def test_no_thread_is_started_without_memory_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text(SENTENCE, "utf-8")
    monkeypatch.setattr("hanlattice.cli.predict._FOR_A_THREAD", 1 << 60)
    with pytest.raises(SystemExit) as left:
        main(["predict", str(tmp_path / "text.txt"), "--model", "lite"])
    assert left.value.code == 1
    assert capsys.readouterr().err.startswith("error: out of memory")


def test_the_sentence_has_entities() -> None:
    assert len(hanlattice.load("lite")(SENTENCE).entities) >= 3
