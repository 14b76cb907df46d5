"""Speed and memory of bulk annotation: with one worker, with two, killed and resumed, and on Ray.

    python benchmarks/annotate.py [--lines 1000000] [--model FOLDER] [--chunk-rows 2000] [--no-ray]

Prints the seconds, lines per second and peak memory of each run: of the reading process, and of all processes. One
run is killed with signal 9 at three random points, which ``--seed`` fixes, and resumed. The exit status is 1 if the
bytes of any output differ from the output of the first run.
"""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PATTERNS = (
    "{p}昨天从{l}来到{l}，参观了{o}。",
    "{o}今天在{l}宣布，由{p}出任总经理。",
    "据{o}消息，{l}上半年进出口总额比去年同期增长{n}%。",
    "今天天气很好，我们去公园散步吧！",
    "{p}、{p}和{p}等人出席了在{l}举行的会议。",
    "记者{p}从{l}报道：经过{n}天的谈判，{o}与{o}终于签订了为期{n}年的合作协议，双方对此都表示满意。",
)
SURNAMES, GIVEN = "王李张刘陈杨黄赵吴周徐孙", "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英"
PLACES = ("北京", "上海", "重庆", "广州", "南京", "武汉", "成都", "杭州", "渝中区", "浦东新区", "云南省", "美国")
FIRMS = ("人和药店", "光明集团", "长江大桥局", "中国银行", "新华社", "清华大学", "外交部")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--chunk-rows", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-ray", action="store_true")
    options = parser.parse_args()
    common = ["--chunk-rows", str(options.chunk_rows), *(["--model", options.model] if options.model else [])]
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = folder / "texts.txt"
        with texts.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in generated(options.lines, rng))
        print(f"{options.lines:,} lines, {texts.stat().st_size / 1e6:.1f} MB; system load {load()}\n")
        print(f"{'':34}{'seconds':>9}{'lines/s':>9}{'reader MB':>11}{'all MB':>9}  output")
        outputs = {
            "one worker": annotated(texts, folder / "one.jsonl", common),
            "two workers": annotated(texts, folder / "two.jsonl", [*common, "--workers", "2"]),
        }
        percents = sorted(rng.sample(range(5, 95), 3))
        chunks = -(-options.lines // options.chunk_rows)
        kills = [max(1, chunks * percent // 100) for percent in percents]
        outputs[f"killed at {', '.join(f'{percent} %' for percent in percents)}"] = annotated(
            texts, folder / "killed.jsonl", [*common, "--workers", "2"], kills
        )
        if not options.no_ray and find_spec("ray"):
            outputs["Ray, two actors"] = annotated(
                texts, folder / "ray.jsonl", [*common, "--workers", "2", "--engine", "ray"]
            )
        first = outputs["one worker"]
        for label, run in outputs.items():
            same = "the same" if run.digest == first.digest else "DIFFERENT"
            print(
                f"{label:34}{run.seconds:9.1f}{options.lines / run.seconds:9,.0f}{run.reader:11,.0f}{run.all:9,.0f}"
                f"  {same}"
            )
        print(f"\ntwo workers / one: {first.seconds / outputs['two workers'].seconds:.2f} times as fast")
        print(f"system load {load()}")
    sys.exit(any(run.digest != first.digest for run in outputs.values()))


class Annotated:
    """Measurements of a finished run: seconds, peak MB of the reader and of all processes, digest of the output."""

    def __init__(self) -> None:
        self.seconds, self.reader, self.all, self.digest = 0.0, 0.0, 0.0, ""


def annotated(texts: Path, output: Path, options: list[str], kills: list[int] | None = None) -> Annotated:
    """Run ``hanlattice annotate``, and run it again if it was killed, until the output exists.

    Args:
        texts: the input file
        output: the output file
        options: further command-line options
        kills: numbers of finished chunks at which the process is killed
    """
    run, kills = Annotated(), list(kills or [])
    command = [sys.executable, "-m", "hanlattice", "annotate", str(texts), str(output), *options, "--quiet"]
    parts = output.with_name(f"{output.name}.parts")
    started = time.perf_counter()
    while not output.exists():
        process = subprocess.Popen(command)
        while process.poll() is None:
            time.sleep(0.1)
            reader, total = memory(process.pid)
            run.reader, run.all = max(run.reader, reader), max(run.all, total)
            if kills and len(list(parts.glob("part-*"))) >= kills[0]:
                kills.pop(0)
                process.send_signal(signal.SIGKILL)
                process.wait()
        if process.returncode not in (0, -signal.SIGKILL):
            sys.exit(process.returncode)
    run.seconds = time.perf_counter() - started
    with output.open("rb") as stream:
        run.digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return run


def memory(pid: int) -> tuple[float, float]:
    """Megabytes of a process, and of the process with its children; shared memory is counted once."""
    own = proportional_memory(pid)
    try:
        children = [
            int(child)
            for path in Path(f"/proc/{pid}/task").glob("*/children")
            for child in path.read_text().split()
        ]
    except OSError:
        children = []
    return own, own + sum(memory(child)[1] for child in children)


def proportional_memory(pid: int) -> float:
    """Megabytes of a process, with its share of shared memory (PSS of Linux); 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("Pss:")), 0.0)


def load() -> str:
    """The system load of the last minute."""
    return f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def generated(n: int, rng: random.Random) -> Iterator[str]:
    """``n`` sentences from patterns with random names and numbers."""
    for _ in range(n):
        text = rng.choice(PATTERNS)
        while "{" in text:
            text = text.replace("{p}", rng.choice(SURNAMES) + "".join(rng.choices(GIVEN, k=rng.choice((1, 2)))), 1)
            text = text.replace("{l}", rng.choice(PLACES), 1).replace("{o}", rng.choice(FIRMS), 1)
            text = text.replace("{n}", str(rng.randrange(1, 100)), 1)
        yield text


if __name__ == "__main__":
    main()
