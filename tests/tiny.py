"""A small world to train in: made-up sentences, vectors and words, and a model of them in seconds."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from annotation_checks import switched_off
from hanlattice import api, corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity, Lattice
from hanlattice.pipeline import NER
from hanlattice.vectors import Vectors, VectorSet

PEOPLE = ["李明", "王小红", "张伟", "赵子龙", "钱多多"]
PLACES = ["北京", "重庆", "渝中区", "南京市", "上海"]
FIRMS = ["人和药店", "东方公司", "长江大桥局", "光明集团"]
PATTERNS = ["{p}在{l}工作。", "{o}在{l}开业了", "昨天{p}去了{o}", "{l}的{o}很好,{p}说", "今天天气很好", "{p}和{l}"]
WORDS = [*PEOPLE, *PLACES, *FIRMS, "工作", "开业", "昨天", "今天", "天气", "很好", "药店", "公司", "大桥", "集团"]


def documents() -> list[Document]:
    """Thirty sentences of persons, places and organisations."""
    return [_document(PATTERNS[i % len(PATTERNS)], i) for i in range(30)]


def _document(pattern: str, i: int) -> Document:
    text, entities = "", []
    names = {"p": ("PER", PEOPLE), "l": ("LOC", PLACES), "o": ("ORG", FIRMS)}
    for part in pattern.replace("{", "|{").replace("}", "}|").split("|"):
        if part.startswith("{"):
            label, choices = names[part[1]]
            name = choices[(i * 7 + i // 6) % len(choices)]
            entities.append(Entity(name, label, len(text), len(text) + len(name)))
            text += name
        else:
            text += part
    return Document(text, tuple(entities))


RUN = "HANLATTICE_TEST_RUN"  # the variable that names the folder of a test run, which conftest.py makes


@cache
def folder() -> Path:
    """The files of this world, until the tests are over. All processes of a test run share them.

    Tests of a changed copy of the package, such as mutation tests, have their own.
    """
    package = sha256(str(Path(corpus.__file__).parent).encode()).hexdigest()[:8]
    place = (Path(os.environ[RUN]) if RUN in os.environ else temporary()) / package
    place.mkdir(exist_ok=True)
    _once(place, "vectors.safetensors", lambda path: vectors().save(path))
    _once(place, "words.txt", lambda path: path.write_text("".join(f"{word}\n" for word in WORDS), "utf-8"))
    _once(place, "corpus.bmes", lambda path: corpus.write(documents(), path, "bmes"))
    return place


def temporary() -> Path:
    """A new folder that this process removes when it ends."""
    place = Path(tempfile.mkdtemp(prefix="hanlattice-tests-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def shared(name: str, make: Callable[[Path], object]) -> Path:
    """A file or folder of this world. The first process that needs it makes it, the others wait."""
    return _once(folder(), name, make)


def _once(folder: Path, name: str, make: Callable[[Path], object]) -> Path:
    place, made = folder / name, folder / f"{name}.made"
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(place, ignore_errors=True)  # what a process has left that failed
            make(place)
            made.touch()
    return place


def vectors() -> VectorSet:
    draw = np.random.default_rng(0)
    texts = [document.text for document in documents()]
    chars = tuple(sorted(set("".join(texts))))
    bigrams = tuple(sorted({a + b for text in texts for a, b in zip(text, [*text[1:], "<end>"], strict=True)}))

    def some(names: tuple[str, ...]) -> Vectors:
        return Vectors(names, draw.normal(size=(len(names), 8)).astype(np.float32))

    return VectorSet(some(chars), some(bigrams), some(tuple(WORDS)))


@cache
def word_vectors() -> Path:
    """A file of word2vec's text format, with the words of this world and some of its characters."""
    draw = np.random.default_rng(1)
    names = (*WORDS, *sorted(set("".join(WORDS)))[::2])
    rows = [" ".join([name, *(f"{number:.4f}" for number in draw.normal(size=6))]) for name in names]
    return shared("words.vec", lambda path: path.write_text("\n".join(rows) + "\n", "utf-8"))


def settings(**training: Any) -> dict[str, Any]:
    """Everything small, adamw, and what is named on top."""
    place = folder()
    return {
        "data": {**{name: str(place / "corpus.bmes") for name in ("train", "dev", "test")}, "user_words": 0.0},
        "lexicon": {"files": [str(place / "words.txt")]},
        "vectors": {"path": str(place / "vectors.safetensors")},
        "text": {"window": 64, "overlap": 16},
        "embedding": {"dropout": 0.1},
        "encoder": {
            "d_model": 20, "heads": 2, "d_feed_forward": 24, "word_dropout": 0.1, "output_dropout": 0.1,
            "forget": 0.0, "drop": 0.0,
        },
        "training": {
            "epochs": 20, "batch_size": 6, "optimiser": "adamw", "learning_rate": 0.02, "schedule": "linear",
            "device": "cpu", "average": 0.0, "clip_value": 0.0, **training,
        },
    }  # fmt: skip


def config(**training: Any) -> Config:
    return Config().with_settings(settings(**training))


@cache
def body() -> Path:
    """The folder of a pretrained body that knows the characters of this world, with random weights."""
    import torch

    from hanlattice.embeddings.body import Body
    from hanlattice.embeddings.body_files import Characters as KnownCharacters
    from hanlattice.embeddings.body_files import Shape, save_files
    from hanlattice.embeddings.body_folder import WEIGHTS, save_body

    def make(place: Path) -> None:
        known = KnownCharacters("".join(vectors().chars.names))
        torch.manual_seed(0)
        body = Body(Shape(layers=2, width=8, heads=2, window=10), len(known))
        save_files(place, body.shape, known)
        save_body(place / WEIGHTS, body, half=False, steps=1)

    return shared("body", make)


@cache
def trained() -> Path:
    """The folder of a model that knows this world by heart."""
    return shared("model", lambda place: api.train(config(), output=place))


def scores(document: Document) -> list[float]:
    """The scores of the entities that a model found, each of which has one."""
    found = [entity.score for entity in document.entities if entity.score is not None]
    assert len(found) == len(document.entities)
    return found


def lattice(document: Document) -> Lattice:
    """The lattice of a document that a model has read."""
    assert document.lattice is not None
    return document.lattice


def ner() -> NER:
    """The model by torch, loaded afresh, so that a test may edit its lexicon.

    Its width fits the native engine on some processors only.
    """
    return api.load(trained(), engine="torch")


@cache
def two_conventions() -> Path:
    """The folder of a model with the conventions ``open`` (PER, LOC, ORG) and ``names`` (name, place).

    It has user words and tidied text, and is wide enough for the native engine.
    """
    names = shared("names.jsonl", lambda path: corpus.write(other_documents(), path, "jsonl"))
    changed = {
        "encoder": {"d_model": 32, "d_feed_forward": 32},
        "data": {"convention": "open", "user_words": 0.5},
        "text": {"tidy": True, "simplify": True},
        "conventions": {"names": {"corpus": str(names)}},
    }
    given = config().with_settings(changed)
    return shared("two_conventions", lambda place: api.train(given, output=place))


@cache
def exported() -> Path:
    """The folder of the same model, exported for ONNX Runtime."""
    from hanlattice.engines.export import export  # imports torch

    source = two_conventions()
    with switched_off():
        return shared("exported", lambda place: export(source, place))


def other_documents() -> list[Document]:
    """The same sentences, annotated otherwise: names and places under other labels, and no organisations."""
    labels = {"PER": "name", "LOC": "place"}
    return [
        Document(d.text, tuple(replace(e, label=labels[e.label]) for e in d.entities if e.label in labels))
        for d in documents()
    ]
