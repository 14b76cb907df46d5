"""``kill -9`` at random moments of commands that write: the result after resuming is that of an undisturbed run.

    python tests/long/kills.py [--cases 250]

Case ``n`` is of command ``n % 5``: train (resumed with --resume), annotate by four workers (run again), a compiled
lexicon, vectors, export (run again). A case kills the command at a random moment, most often in the part of its
work in which it writes. Moments are in CPU time, so that other load does not move them. The command is run again
until it ends, and all files that it leaves are compared, byte by byte, with those of a command that nothing has
killed. Nothing but them may be left behind. A case counts as killed only if the files were not complete. About 15
CPU minutes.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import safe_open

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from hanlattice.config.files import save_config
from hanlattice.model.digests import CHECKPOINT, RECORD, faults
from hanlattice.model.folder import LOG
from long.forked import Command, run, seconds_used
from long.progress import arguments
from long.progress import run as run_cases

TIMES = ("seconds",)  # in a row of a log
ATTEMPTS = 6  # to kill a command before its files are complete
PAUSE = 0.001  # seconds between two looks at the time that a command has used
HANLATTICE = [sys.executable, "-m", "hanlattice"]


@cache
def place() -> Path:
    """A folder with what the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="hanlattice-kills-"))
    texts = [d.text for d in tiny.documents()] * 60
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(f"词{i}" for i in range(200_000)) + "\n", encoding="utf-8")
    (folder / "settings.toml").write_text(_settings(), encoding="utf-8")
    shutil.copytree(tiny.two_conventions(), folder / "model")  # wide enough for the native engine
    return folder


def _settings() -> str:
    path = tiny.folder() / "kills.toml"
    save_config(tiny.config().with_settings({"training": {"epochs": 6}}), path)
    return path.read_text(encoding="utf-8")


def commands() -> list[Command]:
    here = place()
    train = ("train", str(here / "settings.toml"), "--output", "{output}")
    annotate = (
        *("annotate", str(here / "texts.txt"), "{output}", "--model", str(here / "model"), "--workers", "4"),
        *("--chunk-rows", "40", "--quiet"),
    )
    lexicon = ("lexicon", "build", str(here / "words.txt"), "--output", "{output}")
    vectors = (
        "vectors",
        "train",
        str(here / "texts.txt"),
        "--output",
        "{output}",
        *("--epochs", "1", "1", "1"),
        "--min-count",
        "1",
        "1",
        "1",
    )
    export = ("export", str(here / "model"), "{output}")
    return [
        Command("train", train, (*train, "--resume"), "run"),
        Command("annotate", annotate, annotate, "out.jsonl", writes_from=0.85),
        Command("lexicon", lexicon, lexicon, "words.lexicon", writes_from=0.7),
        Command("vectors", vectors, vectors, "vectors.safetensors", writes_from=0.6),
        Command("export", export, export, "exported", writes_from=0.95),
    ]


def content(folder: Path) -> dict[str, str]:
    """The digest of every file below a folder, without the times of a training run.

    Raises:
        AssertionError: the record of digests of a model does not agree with its files.
    """
    return {
        str(p.relative_to(folder)): hashlib.sha256(without_times(p)).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def without_times(path: Path) -> bytes:
    """The bytes of a file; those of a log, a checkpoint and a record of digests without what depends on times."""
    if path.name == LOG:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return json.dumps([{k: v for k, v in row.items() if k not in TIMES} for row in rows]).encode()
    if path.name == CHECKPOINT:
        with safe_open(path, "numpy") as tensors:
            metadata = {name: json.loads(value) for name, value in sorted(tensors.metadata().items())}
            del metadata["progress"]["seconds"]
            arrays = {name: tensors.get_tensor(name).tobytes() for name in sorted(tensors.keys())}
        return json.dumps(metadata).encode() + b"".join(name.encode() + data for name, data in arrays.items())
    if path.name == RECORD:
        assert not (wrong := list(faults(path.parent))), wrong
        return b""
    return path.read_bytes()


@cache
def expected(index: int) -> dict[str, str]:
    """What a command leaves that is started as users do, and that nothing kills."""
    command = commands()[index]
    with tempfile.TemporaryDirectory() as name:
        filled = [part.replace("{output}", str(Path(name) / command.output)) for part in command.first]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        subprocess.run([*HANLATTICE, *filled], check=True, capture_output=True, env=environment)
        return content(Path(name))


@cache
def seconds(index: int) -> float:
    """The CPU seconds of a command, its workers included."""
    command = commands()[index]
    with tempfile.TemporaryDirectory() as name:
        ended = run(command, command.first, Path(name) / command.output)
        if ended.status or content(Path(name)) != expected(index):
            raise RuntimeError(f"{command.name} fails undisturbed: {ended.errors[-500:]}")
        return ended.seconds


def case(number: int) -> str:
    """Kill one command once, run it again, compare. Where it ended before the kill, try again with less delay."""
    index = number % len(commands())
    command, most = commands()[index], seconds(index)
    draw = np.random.default_rng([2028, number])
    for _ in range(ATTEMPTS):
        start = command.writes_from if draw.random() < 0.7 else 0.0
        if killed(command, float(draw.uniform(start, 1.0)) * most, expected(index)):
            return f"{command.name}: killed"
        most *= 0.9
    return f"{command.name}: had ended"


def killed(command: Command, delay: float, expected: dict[str, str]) -> bool:
    """Whether a command was killed after so many CPU seconds, before its files were complete.

    Raises:
        AssertionError: after another run the files are not those of an undisturbed run.
    """

    def kill(pid: int) -> None:
        while seconds_used(pid) < delay and _runs(pid):
            time.sleep(PAUSE)
        os.kill(pid, signal.SIGKILL)  # not yet waited for, so its number belongs to it

    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / command.output
        ended = run(command, command.first, output, watch=kill)
        if ended.status not in (0, -signal.SIGKILL):
            raise AssertionError(f"{command.name} failed before it was killed: {ended.errors[-500:]}")
        try:
            was_complete = content(Path(name)) == expected
        except AssertionError:  # killed before the record of digests was written again
            was_complete = False
        if ended.status == 0 and not was_complete:
            raise AssertionError(f"{command.name}: other files, or other content, without a kill")
        again = run(command, command.again, output)
        if again.status and command.name == "train" and "checkpoint" in again.errors:
            # Killed before the first checkpoint, so there is nothing to resume.
            again = run(command, command.first, output)
        if again.status and not was_complete:  # commands refuse to overwrite or resume what is finished
            raise AssertionError(f"{command.name} failed when it was run again: {again.errors[-500:]}")
        found = content(Path(name))
        if found != expected:
            names = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
            raise AssertionError(f"{command.name}: other files, or other content: {names}")
    return not was_complete


def _runs(pid: int) -> bool:
    """Whether a child of this process, which is not waited for yet, has not ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def main() -> int:
    return run_cases(arguments(__doc__, "kills", 250).parse_args(), case)


if __name__ == "__main__":
    sys.exit(main())
