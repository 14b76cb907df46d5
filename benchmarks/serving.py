"""Throughput and latency of the service under load, with and without dynamic batching.

    python benchmarks/serving.py [--model FOLDER] [--seconds 60] [--clients 64] [--workers 1] [--texts FILE]

Two services run: one with the default settings, and one without batching (--max-batch 1). They are loaded in turns
of a few seconds, so that other programs on the machine affect both alike. Every response is compared with the
offline prediction of the model for the same text; the run stops at the first difference or error. Without --texts,
the texts are generated, with 3 to 120 characters.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import hanlattice
from hanlattice.document import Entity
from hanlattice.serving.settings import Settings

TURN = 5.0  # seconds
TOLERANCE = 1e-3  # of a score; rounding depends on the other texts of a batch

CLAUSES = (
    "重庆人和药店在渝中区开业", "李明昨天从北京来到上海", "会议由王小红主持", "天气很好", "他没有说话", "你好",
    "记者从南京市长江大桥管理局获悉", "中国科学院发布了新的报告", "张伟在广州大学教书", "价格上涨了百分之三",
    "他们下午三点到达成都", "新华社东京电", "该公司计划在深圳设立分部", "比赛在体育馆举行", "赵子龙是常山人",
    "双方签署了合作协议",
)  # fmt: skip

Found = list[tuple[int, int, str, str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a model (default: the packaged model)")
    parser.add_argument("--texts", type=Path, help="file with one text per line")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds under load, for each service")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()

    texts = options.texts.read_text("utf-8").splitlines() if options.texts else generated(400)
    ner = hanlattice.load(options.model)
    expected = [(text, [row(e) for e in d.entities]) for text, d in zip(texts, ner(texts), strict=True)]
    lengths = sorted(map(len, texts))
    mean, load_now = sum(lengths) / len(texts), os.getloadavg()[0]
    print(f"{len(texts)} texts of {lengths[0]} to {lengths[-1]} characters, {mean:.0f} on average")
    print(f"{options.clients} clients, {options.workers} worker(s), {os.cpu_count()} cores, load {load_now:.1f}")
    most = Settings().max_batch
    batched, alone = Service(f"batches of up to {most} texts", most), Service("--max-batch 1", 1)
    with running(batched, options), running(alone, options):
        for service in (batched, alone):  # warm-up
            asyncio.run(load(service, expected, options.clients, 2.0))
            service.milliseconds.clear()
            service.seconds, service.memory = 0.0, [service.resident()]
        while alone.seconds < options.seconds:
            for service in (batched, alone):
                asyncio.run(load(service, expected, options.clients, min(TURN, options.seconds)))
                service.memory.append(service.resident())
    for service in (batched, alone):
        service.report()
    print(f"\ndynamic batching: {batched.rate / alone.rate:.2f} times the throughput; all responses are right")


@dataclass
class Service:
    """A running service and its measurements.

    Attributes:
        name: title in the report
        max_batch: maximum number of texts of a batch
        port: TCP port
        pid: id of the main process
        seconds: time under load
        milliseconds: latency of each request
        memory: MiB of the workers after each turn
    """

    name: str
    max_batch: int
    port: int = 0
    pid: int = 0
    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Texts per second."""
        return len(self.milliseconds) / self.seconds

    def resident(self) -> float:
        """Resident memory of the workers in MiB."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        sizes = [re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()) for pid in children]
        return sum(int(size[1]) for size in sizes if size) / 1024

    def report(self) -> None:
        """Print throughput, latency and memory."""
        times = sorted(self.milliseconds)
        p50, p99, most = (times[min(int(len(times) * share), len(times) - 1)] for share in (0.50, 0.99, 1))
        print(f"\n{self.name}: {len(times):,} responses in {self.seconds:.0f} s, all right, no errors")
        print(f"  {self.rate:.0f} texts/s, p50 {p50:.0f} ms, p99 {p99:.0f} ms, maximum {most:.0f} ms")
        print(
            f"  memory of the workers {self.memory[0]:.0f} MiB at the start, {self.memory[-1]:.0f} MiB at the end"
        )


@contextmanager
def running(service: Service, options: argparse.Namespace) -> Iterator[None]:
    """Start a service, wait until it is ready, and stop it at the end."""
    command = [sys.executable, "-m", "hanlattice", "serve", "--port", "0", "--max-batch", str(service.max_batch)]
    command += ["--workers", str(options.workers), *(["--model", options.model] if options.model else [])]
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+b") as log:
        process = subprocess.Popen([*command, "--lexicons", f"{folder}/lexicons"], stderr=log)
        try:
            service.pid, service.port = process.pid, port_when_ready(process, Path(log.name))
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def port_when_ready(process: subprocess.Popen[bytes], log: Path) -> int:
    """Wait until the log reports that the service is ready, and return its port."""
    while process.poll() is None:
        events = {row["event"]: row for row in map(json.loads, log.read_text("utf-8").splitlines())}
        if "ready" in events:
            return int(events["listening"]["url"].rpartition(":")[2])
        time.sleep(0.1)
    sys.exit(log.read_text("utf-8"))


async def load(service: Service, expected: Sequence[tuple[str, Found]], clients: int, seconds: float) -> None:
    """Send requests from several clients for some seconds.

    Args:
        service: the service, which records latencies and time
        expected: texts and their entities
        clients: number of concurrent clients
        seconds: duration of the load
    """
    until = time.perf_counter() + seconds
    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for i in range(clients):
            mixed = random.Random(i).sample(expected, len(expected))
            group.create_task(client(service, mixed, until))
    service.seconds += time.perf_counter() - started


async def client(service: Service, texts: Sequence[tuple[str, Found]], until: float) -> None:
    """Send one text after another over one connection until a time, and check each response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    for text, expected in cycle(texts):
        if time.perf_counter() > until:
            break
        started = time.perf_counter()
        body = json.dumps({"text": text}, ensure_ascii=False).encode()
        head = "POST /v1/entities HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        response = await read_response(reader)
        service.milliseconds.append(1000 * (time.perf_counter() - started))
        check(text, expected, response)
    writer.close()


async def read_response(reader: asyncio.StreamReader) -> Any:
    """The JSON body of the next response; exits if the status is not 200."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = re.search(r"content-length: (\d+)", head)
    body = await reader.readexactly(int(length[1]) if length else 0)
    if not head.startswith("http/1.1 200"):
        sys.exit(f"error: {head.splitlines()[0]} {body.decode()}")
    return json.loads(body)


def check(text: str, expected: Found, response: Any) -> None:
    """Exit if the entities of a response differ from the expected ones."""
    found = [(e["start"], e["end"], e["text"], e["label"], e["score"]) for e in response["entities"]]
    same = [e[:4] for e in found] == [e[:4] for e in expected]
    if not same or any(abs(a[4] - b[4]) > TOLERANCE for a, b in zip(found, expected, strict=True)):
        sys.exit(f"wrong response for {text}:\n{found}\nexpected:\n{expected}")


def row(entity: Entity) -> tuple[int, int, str, str, float]:
    """Start, end, text, label and score of an entity."""
    return entity.start, entity.end, entity.text, entity.label, entity.score or 0.0


def generated(n: int) -> list[str]:
    """Texts of one or more clauses: many short texts and a few long ones, as in typical requests."""
    rng = random.Random(0)
    texts = [",".join(rng.sample(CLAUSES, min(int(rng.expovariate(0.5)) + 1, 12))) for _ in range(n)]
    return [text[:120] + "。" for text in texts]


if __name__ == "__main__":
    main()
