"""What the tests of annotation share: a run in this process, and the entities that it should find."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tiny
from hanlattice.annotation import Chunk, Job, Part, Run, annotate
from hanlattice.annotation.annotator import Annotator

TEXTS = [document.text for document in tiny.documents()]


Engine = Callable[[Iterator[Chunk], Job], Iterable[Part]]


def job(**settings: Any) -> Job:
    return Job(**{"model": str(tiny.trained()), **settings})


def here(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
    """An engine that annotates in this process."""
    return map(Annotator(job), chunks)


def run(given: Path | str, output: Path, engine: Engine = here, **settings: Any) -> Run:
    """Annotate one file; ``settings`` are those of the job, and ``chunk_rows``."""
    chunk_rows = settings.pop("chunk_rows", 4)
    return annotate([str(given)], output, job(**settings), engine, chunk_rows=chunk_rows)


def written(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return [json.loads(line) for line in text.decode().splitlines()]


def expected(texts: Iterable[str]) -> list[list[dict[str, Any]]]:
    ner = tiny.ner()
    return [[{k: v for k, v in e.to_dict().items() if k != "score"} for e in ner(text).entities] for text in texts]


def without_scores(rows: Iterable[dict[str, Any]], into: str = "entities") -> list[list[dict[str, Any]]]:
    wanted = ("start", "end", "text", "label")
    return [[{key: entity[key] for key in wanted} for entity in row[into]] for row in rows]
