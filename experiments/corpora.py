"""The corpora of experiments: read by name, sampled, changed, and written where the runs read them.

Corpora are read from ``$HANLATTICE_DATA/labelled``. All parts are written as JSON Lines into the folder of an
experiment, so that a run depends on nothing else. A file that exists must have the same content.
"""

import filecmp
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hanlattice import corpus
from hanlattice.config.files import located
from hanlattice.config.values import suggestion
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError

LABELLED = "$HANLATTICE_DATA/labelled"
DEV_SHARE = 0.1  # of a training corpus without a dev file
SEED = 0  # of all samples, so that every run of an experiment has the same corpora


@dataclass(frozen=True)
class Source:
    """The files of a corpus.

    Attributes:
        train, dev, test: paths below ``$HANLATTICE_DATA/labelled``, or other paths; ``dev`` may be empty.
        labels: new names of labels, where the files of a corpus differ.
        days: for a single file that is divided by date: the first day of dev and of test, as in its ids.
    """

    train: str
    dev: str
    test: str
    labels: Mapping[str, str] = field(default_factory=dict)
    days: tuple[str, str] | None = None


_WEIBO = f"{LABELLED}/weibo/weiboNER_2nd_conll."
_PEOPLE_DAILY = f"{LABELLED}/people_daily_199801/derived/nested.jsonl"
SOURCES = {
    "weibo": Source(_WEIBO + "train", _WEIBO + "dev", _WEIBO + "test"),
    "resume": Source(
        f"{LABELLED}/resume/train.char.bmes",
        f"{LABELLED}/resume/dev.char.bmes",
        f"{LABELLED}/resume/test.char.bmes",
    ),
    "msra": Source(
        f"{LABELLED}/msra/train_data",
        "",
        f"{LABELLED}/msra/test4365.char.bmes",
        {"NR": "PER", "NS": "LOC", "NT": "ORG"},
    ),
    "cluener": Source(f"{LABELLED}/cluener2020/train.json", "", f"{LABELLED}/cluener2020/dev.json"),
    "cmeee": Source(f"{LABELLED}/cmeee/train_data.txt", "", f"{LABELLED}/cmeee/val_data.txt"),
    "people_daily": Source(_PEOPLE_DAILY, "", _PEOPLE_DAILY, days=("19980125", "19980127")),
}


@dataclass(frozen=True)
class Parts:
    """The documents of a corpus."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]


def read_source(name: str, overrides: Mapping[str, str] | None = None) -> Parts:
    """The parts of a corpus. Without a dev file, a random tenth of train is dev.

    Args:
        name: a name of ``SOURCES``.
        overrides: paths of ``train``, ``dev`` and ``test`` to read instead.

    Raises:
        ConfigError: there is no such corpus.
        DataError: a file cannot be read.
    """
    if overrides and overrides.get("train") and overrides.get("test"):
        source = Source(overrides["train"], overrides.get("dev", ""), overrides["test"])
    elif name in SOURCES:
        source = SOURCES[name]
    else:
        raise ConfigError(f"there is no corpus {name!r}{suggestion(name, SOURCES)}")
    if source.days is not None:
        return _by_day(_read(source.train, source.labels), *source.days)
    train, test = (_read(path, source.labels) for path in (source.train, source.test))
    if source.dev:
        return Parts(train, _read(source.dev, source.labels), test)
    shuffled = _shuffled(train)
    n = max(1, round(DEV_SHARE * len(train)))
    return Parts(shuffled[n:], shuffled[:n], test)


def _read(path: str, labels: Mapping[str, str]) -> list[Document]:
    """The documents of a file, without annotations that cannot be read, which some corpora have."""
    skipped: list[Defect] = []
    read = relabelled(corpus.read(located(path), on_defect=skipped.append), labels)
    documents = [Document(document.text, document.entities, id=document.id) for document in read]
    if not documents:
        raise DataError("has no document; name a corpus with text", path)
    return documents


def _by_day(documents: Iterable[Document], dev: str, test: str) -> Parts:
    """The parts of a newspaper whose ids begin with the date."""
    parts = Parts([], [], [])
    for document in documents:
        day = (document.id or "").replace("-", "")[: len(dev)]
        (parts.train if day < dev else parts.dev if day < test else parts.test).append(document)
    return parts


def _shuffled(documents: Sequence[Document]) -> list[Document]:
    return [documents[i] for i in np.random.default_rng(SEED).permutation(len(documents))]


def sampled(parts: Parts, sentences: int) -> Parts:
    """A random sample of train, and a dev part of at most half its size; test stays complete. 0 keeps all."""
    if not sentences:
        return parts
    return Parts(_shuffled(parts.train)[:sentences], _shuffled(parts.dev)[: max(1, sentences // 2)], parts.test)


def limited_test(parts: Parts, sentences: int) -> Parts:
    """The same with a random sample of test; 0 keeps all."""
    return replace(parts, test=_shuffled(parts.test)[:sentences]) if sentences else parts


def kept(path: Path, write: Callable[[Path], object]) -> str:
    """The path of an input that an experiment makes; it is written once, and stays the same from then on.

    Raises:
        ConfigError: the file exists, and ``write`` writes something else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        write(made)
        if not path.exists():
            made.replace(path)
        elif not filecmp.cmp(made, path, shallow=False):
            raise ConfigError(f"{path} was made from other files or settings; name another --output")
    return str(path)


def written(documents: Sequence[Document], path: Path) -> str:
    """The path of a file of these documents; see :func:`kept`."""
    return kept(path, lambda made: corpus.write(documents, made, "jsonl"))


def with_missing(documents: Sequence[Document], share: float) -> list[Document]:
    """The documents without a random ``share`` of their entities, as if annotators had missed them.

    A greater share removes the entities that a smaller one removes, and more.
    """
    draws = np.random.default_rng(SEED)
    return [
        replace(
            d,
            entities=tuple(e for e, x in zip(d.entities, draws.random(len(d.entities)), strict=True) if x >= share),
        )
        for d in documents
    ]


def overlapping(document: Document) -> list[Entity]:
    """The entities that overlap another one of their sentence: those inside another, and those around another."""
    entities = document.entities
    return [
        e
        for i, e in enumerate(entities)
        if any(e.start < o.end and o.start < e.end for k, o in enumerate(entities) if k != i)
    ]


def with_nested_share(documents: Sequence[Document], sentences: int, share: float) -> list[Document]:
    """A sample of sentences with entities, in which about a ``share`` of the entities overlaps another one.

    In random order, a sentence with such entities is taken while their share is too low, and one without while it
    is not.

    Raises:
        DataError: the corpus has too few sentences of one kind.
    """
    kinds: dict[bool, list[tuple[Document, int]]] = {True: [], False: []}
    for document in _shuffled([d for d in documents if d.entities]):
        nested = len(overlapping(document))
        kinds[nested > 0].append((document, nested))
    taken: list[Document] = []
    n_nested = n_entities = 0
    for _ in range(sentences):
        is_low = share > 0 and n_nested < share * max(n_entities, 1)
        if not kinds[is_low]:
            kind = "with nested entities" if is_low else "without nested entities"
            raise DataError(
                f"after {len(taken)} sentences there is no further one {kind} for a share of {share:.0%};"
                " use fewer --sentences"
            )
        document, nested = kinds[is_low].pop()
        taken.append(document)
        n_nested, n_entities = n_nested + nested, n_entities + len(document.entities)
    return taken


def divided(
    documents: Sequence[Document], is_first: Callable[[Document], bool]
) -> tuple[list[Document], list[Document]]:
    """The documents for which ``is_first`` holds, and the others."""
    first = [d for d in documents if is_first(d)]
    return first, [d for d in documents if not is_first(d)]


def n_characters(documents: Iterable[Document]) -> int:
    """The number of characters of all texts."""
    return sum(len(d.text) for d in documents)
