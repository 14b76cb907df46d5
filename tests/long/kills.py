"""``kill -9`` at random moments of commands that write: the result after resuming is that of an undisturbed run.

    python tests/long/kills.py [--cases 250]

Case ``n`` is of command ``n % 5``: train (resumed with --resume), annotate by four workers (run again), a compiled
lexicon, vectors, export (run again). A case kills the command at a random moment of the time that it takes
undisturbed, then runs it again until it ends, and compares all files that it leaves, byte by byte. Nothing but them
may be left behind. About 60 CPU minutes.
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
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from safetensors import safe_open

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from hanlattice.model.digests import CHECKPOINT, RECORD, faults
from hanlattice.model.folder import LOG
from long.progress import arguments, run

TIMES = ("seconds",)  # in a row of a log
ATTEMPTS = 6  # to kill a command before it ends
HANLATTICE = [sys.executable, "-m", "hanlattice"]


@dataclass(frozen=True)
class Command:
    """A command that writes ``{output}``, and what it is started with after a kill."""

    name: str
    first: tuple[str, ...]
    again: tuple[str, ...]
    output: str


@cache
def place() -> Path:
    """A folder with what the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="hanlattice-kills-"))
    texts = [d.text for d in tiny.documents()] * 60
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(f"词{i}" for i in range(200_000)) + "\n", encoding="utf-8")
    (folder / "settings.toml").write_text(_settings(), encoding="utf-8")
    shutil.copytree(tiny.trained(), folder / "model")
    return folder


def _settings() -> str:
    from hanlattice.config.files import save_config

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
        Command("annotate", annotate, annotate, "out.jsonl"),
        Command("lexicon", lexicon, lexicon, "words.lexicon"),
        Command("vectors", vectors, vectors, "vectors.safetensors"),
        Command("export", export, export, "exported"),
    ]


def started(command: tuple[str, ...], output: Path) -> "subprocess.Popen[bytes]":
    filled = [part.replace("{output}", str(output)) for part in command]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*HANLATTICE, *filled],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )


def ended(process: "subprocess.Popen[bytes]") -> tuple[int, str]:
    _, errors = process.communicate()
    return process.returncode, errors.decode(errors="replace")[-500:]


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
def undisturbed(index: int) -> tuple[dict[str, str], float]:
    """What a command leaves when nothing kills it, and its seconds."""
    command = commands()[index]
    with tempfile.TemporaryDirectory() as name:
        start = time.monotonic()
        status, errors = ended(started(command.first, Path(name) / command.output))
        if status:
            raise RuntimeError(f"{command.name} fails undisturbed: {errors}")
        return content(Path(name)), time.monotonic() - start


def case(number: int) -> str:
    """Kill one command once, run it again, compare. Where it ended before the kill, try again with less delay."""
    command = commands()[number % 5]
    expected, seconds = undisturbed(number % 5)
    draw = np.random.default_rng([2028, number])
    for _ in range(ATTEMPTS):
        # Not before Python has started, or little would be tried.
        if killed(command, float(draw.uniform(0.2, 1.0)) * seconds, expected):
            return f"{command.name}: killed"
        seconds *= 0.7
    return f"{command.name}: had ended"


def killed(command: Command, delay: float, expected: dict[str, str]) -> bool:
    """Whether a command was killed after so many seconds, and not at its end.

    Raises:
        AssertionError: after another run the files are not those of an undisturbed run.
    """
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / command.output
        process = started(command.first, output)
        time.sleep(delay)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)  # not yet waited for, so its number belongs to it
        ended(process)
        try:
            was_complete = content(Path(name)) == expected
        except AssertionError:  # killed before the record of digests was written again
            was_complete = False
        status, errors = ended(started(command.again, output))
        if status and command.name == "train" and "checkpoint" in errors:
            # Killed before the first checkpoint, so there is nothing to resume.
            status, errors = ended(started(command.first, output))
        if status and not was_complete:  # commands refuse to overwrite or resume what is finished
            raise AssertionError(f"{command.name} failed when it was run again: {errors}")
        found = content(Path(name))
        if found != expected:
            names = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
            raise AssertionError(f"{command.name}: other files, or other content: {names}")
    return not was_complete


def main() -> int:
    return run(arguments(__doc__, "kills", 250).parse_args(), case)


if __name__ == "__main__":
    sys.exit(main())
