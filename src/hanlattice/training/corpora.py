"""The corpora of a run: read, split, and without documents that dev or an excluded corpus shares."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from hanlattice import corpus
from hanlattice.config.files import located
from hanlattice.config.settings import AuxiliaryConfig, Config
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser

SHARED_LENGTH = 20  # characters that two texts must share to count as leaked
N_EXAMPLES = 3  # contradictions and defects that are shown; all are counted


@dataclass
class Corpora:
    """The documents of a run.

    Attributes:
        train: of the default convention.
        further: of other conventions and of auxiliary corpora, by the names that the settings give them.
        n_leaked: documents left out of ``train`` and ``further`` because they share 20 characters with an excluded
            corpus or with dev, or are identical to a shorter text of an excluded corpus.
        n_nested: entities left out because another one contains them.
        defects: those of all corpora that were skipped.
        contradictions: documents left out because an earlier file of their convention has the same text with other
            entities.
        absent_labels: labels that a setting renames but its corpora do not have, by the name of the setting.
    """

    train: list[Document]
    dev: list[Document]
    test: list[Document]
    further: dict[str, list[Document]] = field(default_factory=dict)
    n_leaked: int = 0
    n_nested: int = 0
    defects: list[Defect] = field(default_factory=list)
    contradictions: list[Document] = field(default_factory=list)
    absent_labels: dict[str, list[str]] = field(default_factory=dict)


def load_corpora(config: Config) -> Corpora:
    """Read train, dev, test and further corpora. Without a dev file a share of the first training corpus is dev.

    Documents that share 20 characters with an excluded corpus, or a whole text that is shorter, are left out of
    train. Documents of the second and later training corpora, of other conventions and of auxiliary corpora are
    also left out if they share 20 characters with dev. Dev and test keep nested entities, even if train does not,
    so that scores include what a flat decoder misses.

    Raises:
        ConfigError: the settings name no file for train or a further corpus, or a file twice, or two corpora have
            the same name.
        DataError: a corpus is empty or cannot be read, or a training corpus has no entity.
    """
    data, settings = config.data, further_corpora(config)
    _check_names(config, settings)
    defects: list[Defect] = []
    read_other = partial(_read, drop=data.drop, defects=defects)  # their formats may differ from those of train
    renaming = _Renaming()

    def read(path: str) -> list[Document]:
        found = read_other(path, kind=data.format, scheme=data.scheme)
        return renaming("data.labels", data.labels, found)

    banned = _banned(document for path in data.exclude for document in read_other(path))
    train, n_leaked = _without(banned, read(data.train[0]))
    dev = read(data.dev) if data.dev else []
    test = read(data.test) if data.test else []
    if not dev:
        train, dev = _split(train, data.dev_share, config.training.seed)
    found = Corpora(train, dev, test, {name: [] for name in settings}, n_leaked, defects=defects)
    if data.train[1:] or settings:
        banned = banned | _shared(dev)
    for path in data.train[1:]:
        kept, n_shared = _without(banned, read(path))
        found.train, found.n_leaked = [*found.train, *kept], found.n_leaked + n_shared
    for name, kind in settings.items():
        table = _table(name, config)
        for path in kind.corpus:
            kept, n_shared = _without(banned, renaming(f"{table}.labels", kind.labels, read_other(path)))
            found.further[name], found.n_leaked = [*found.further[name], *kept], found.n_leaked + n_shared
    found.absent_labels = {name: labels for name, labels in renaming.absent.items() if labels}
    if data.outermost:
        _keep_outermost(found)
    _leave_out_contradictions(found, config, settings)
    _check_entities(found, config, settings)
    return found


def further_corpora(config: Config) -> dict[str, AuxiliaryConfig]:
    """The settings of other conventions and of auxiliary corpora, by their names.

    Raises:
        ConfigError: two of them, or one of them and the default convention, have the same name.
    """
    twice = (config.conventions.keys() & config.auxiliary.keys()) | (
        {config.data.convention} & {*config.conventions, *config.auxiliary}
    )
    if twice:
        raise ConfigError(f"{min(twice)!r} names two conventions or auxiliary corpora; rename one of them")
    return {**config.conventions, **config.auxiliary}


def _table(name: str, config: Config) -> str:
    """The table of the settings that names a further corpus, such as ``conventions.msra``."""
    return f"{'conventions' if name in config.conventions else 'auxiliary'}.{name}"


class _Renaming:
    """Renames labels of documents.

    ``absent`` has the labels that no document had so far, by the name of the setting that renames them.
    """

    def __init__(self) -> None:
        self.absent: dict[str, list[str]] = {}

    def __call__(self, setting: str, labels: Mapping[str, str], documents: list[Document]) -> list[Document]:
        seen = {entity.label for document in documents for entity in document.entities}
        self.absent[setting] = [label for label in self.absent.get(setting, labels) if label not in seen]
        return list(relabelled(documents, labels))


def _check_names(config: Config, settings: Mapping[str, AuxiliaryConfig]) -> None:
    """
    Raises:
        ConfigError: the settings name no file for train or for a further corpus, or a file twice.
    """
    if not config.data.train:
        raise ConfigError("no training corpus: give --train FILE, or data.train in the settings")
    refuse_repeated("data.train", config.data.train)
    for name, kind in settings.items():
        if not kind.corpus:
            raise ConfigError(f"{_table(name, config)}.corpus is empty: name a file, or remove {name!r}")
        refuse_repeated(f"{_table(name, config)}.corpus", kind.corpus)


def refuse_repeated(what: str, paths: Iterable[str]) -> None:
    """Check that a setting or an option names no file twice, which would then count twice.

    Args:
        what: the name of the setting or option.
        paths: the files or folders, also by other names of the same.

    Raises:
        ConfigError: a file or folder is named twice, or a variable in a name is not set.
    """
    seen: set[Path] = set()
    for path in paths:
        place = Path(located(path)).resolve()
        if place in seen:
            raise ConfigError(f"{what} names {path} twice; name it once")
        seen.add(place)


def _check_entities(found: Corpora, config: Config, settings: Mapping[str, AuxiliaryConfig]) -> None:
    """
    Raises:
        DataError: there is no document for train or dev, or no entity in train or in a further corpus.
    """
    first = config.data.train[0]
    if not found.train or not found.dev:
        n = found.n_leaked
        left_out = f"; {n} share text with data.exclude or dev, and were left out" if n else ""
        dev = "" if config.data.dev else "a dev corpus with --dev, raise data.dev_share, or name "
        raise DataError(f"too few documents for training and development{left_out}; name {dev}more files", first)
    if not any(document.entities for document in found.train):
        raise DataError("has no entity to learn from; name an annotated corpus", first)
    for name, documents in found.further.items():
        if not any(document.entities for document in documents):
            reason = f"{name!r} is left with no entity to learn from; name an annotated corpus, or remove {name!r}"
            raise DataError(reason, settings[name].corpus[0])


def _read(path: str, drop: bool, defects: list[Defect], kind: str = "", scheme: str = "") -> list[Document]:
    """The documents of a corpus; its format, ``kind``, and its tag scheme are detected if they are empty."""
    path = located(path)

    def collect(defect: Defect) -> None:
        if defect.lossy:
            defects.append(defect)

    read = corpus.read(path, format=kind or None, scheme=scheme or None, on_defect=collect if drop else None)
    documents = [replace(document, meta={"@file": path, **document.meta}) for document in read]
    if not documents:
        first = next((one for one in defects if one.file == path), None)
        why = "" if first is None else f" that can be read: {first.message}; {first.fix}"
        raise DataError(f"has no document{why}", path, None if first is None else first.line)
    return documents


def _split(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Train and dev: each document is in dev with the probability ``share``. Equal texts are in the same part."""
    drawn = (np.random.default_rng(seed).random(len(documents)) < share).tolist()
    part_of: dict[str, bool] = {}
    chosen = [part_of.setdefault(d.text, is_dev) for d, is_dev in zip(documents, drawn, strict=True)]
    rows = list(zip(documents, chosen, strict=True))
    return [d for d, is_dev in rows if not is_dev], [d for d, is_dev in rows if is_dev]


def _keep_outermost(found: Corpora) -> None:
    """Leave nested entities out of train and further corpora, and count them."""

    def outermost(documents: list[Document]) -> list[Document]:
        kept = list(map(_outermost, documents))
        found.n_nested += n_entities(documents) - n_entities(kept)
        return kept

    found.train = outermost(found.train)
    found.further = {name: outermost(documents) for name, documents in found.further.items()}


def _outermost(document: Document) -> Document:
    """The document without entities that overlap an earlier or a longer one.

    A discontinuous entity is left out if it overlaps any other one: few decoders can learn it.
    """
    kept: list[Entity] = []
    taken: set[int] = set()
    for entity in sorted(document.entities, key=lambda e: (e.discontinuous, e.start, -e.end)):
        places = {place for start, end in entity.fragments for place in range(start, end)}
        if not places & taken:
            kept.append(entity)
            taken |= places
    return replace(document, entities=tuple(sorted(kept, key=lambda e: (e.start, e.end))))


def _leave_out_contradictions(found: Corpora, config: Config, settings: Mapping[str, AuxiliaryConfig]) -> None:
    """Check conventions of several files for texts that an earlier file annotates differently."""
    if len(config.data.train) > 1:
        found.train, found.contradictions = consistent(found.train)
    for name, documents in found.further.items():
        if len(settings[name].corpus) > 1:
            found.further[name], contradicting = consistent(documents)
            found.contradictions += contradicting


def consistent(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """Split documents into those to keep, and those whose text an earlier file has with other entities only."""
    first: dict[str, tuple[str, list[list[Span]]]] = {}  # the first file with a text, and its annotations
    kept: list[Document] = []
    contradicting: list[Document] = []
    for document in documents:
        spans, file = sorted(document.spans), document.meta["@file"]
        origin, known = first.setdefault(document.text, (file, []))
        if file == origin:
            known.append(spans)
        (kept if spans in known else contradicting).append(document)
    return kept, contradicting


def refuse_overlaps(documents: Iterable[Document]) -> None:
    """Check the corpus of a decoder that cannot learn nested entities.

    Raises:
        DataError: two entities overlap; file and line of their text are named.
    """
    for document in documents:
        for first, second in pairwise(sorted(span for span in document.spans if not span.gaps)):
            if second.start < first.end:
                names = " and ".join(f"{s.label} {document.text[s.start : s.end]!r}" for s in (first, second))
                raise DataError(
                    f"{names} overlap, which this decoder cannot learn; keep only the outermost of such entities"
                    " with data.outermost = true",
                    document.meta["@file"],
                    document.meta.get("@line"),
                )


def n_entities(documents: Iterable[Document]) -> int:
    """The number of entities of all documents."""
    return sum(len(document.entities) for document in documents)


def left_out(found: Corpora) -> str:
    """The numbers of everything that was left out of the corpora, each after a semicolon."""
    numbers = (
        (found.n_leaked, "documents left out that dev or an excluded corpus shares"),
        (found.n_nested, "nested entities left out"),
        (len(found.defects), "defects skipped"),
        (
            len(found.contradictions),
            "texts left out that an earlier file of their convention annotates differently",
        ),
    )
    return "".join(f"; {n:,} {what}" for n, what in numbers if n)


def examples_left_out(found: Corpora) -> Iterator[str]:
    """Messages for the first documents and defects that were left out."""
    for document in found.contradictions[:N_EXAMPLES]:
        where = f"{document.meta['@file']}:{document.meta.get('@line', '?')}"
        yield f"left out: {where}: an earlier file has this text with other entities: {document.text[:30]}"
    for defect in found.defects[:N_EXAMPLES]:
        yield f"skipped: {defect.where}: {defect.message}"


def absent_labels(found: Corpora) -> Iterator[str]:
    """A message for each setting that renames labels that its corpora do not have."""
    for setting, labels in found.absent_labels.items():
        corpora = "train, dev and test do" if setting == "data.labels" else "its corpus does"
        yield f"{setting} renames {', '.join(labels)}, which {corpora} not have"


def unknown_labels(found: Corpora, labels: Collection[str]) -> Iterator[str]:
    """A message for dev and for test if it has entities with labels that ``train`` lacks, or dev has no entity."""
    if not any(document.entities for document in found.dev):
        yield "dev has no entities, so the best epoch cannot be chosen: name another corpus with --dev"
    for name, documents in (("dev", found.dev), ("test", found.test)):
        counts = Counter(e.label for document in documents for e in document.entities if e.label not in labels)
        if counts:
            unknown = ", ".join(sorted(counts))
            yield f"{name} has {counts.total():,} entities with labels that train lacks: {unknown}"


def identical_texts(found: Corpora) -> Iterator[str]:
    """A message if texts of train are also in dev or test."""
    held_out = set(plain_texts(d.text for d in (*found.dev, *found.test)))
    if n := sum(text in held_out for text in plain_texts(d.text for d in found.train)):
        yield f"{n:,} texts of train are in dev or test too, where the scores are higher than for new texts"


def plain_texts(texts: Iterable[str]) -> Iterator[str]:
    """Texts without white space, in lower case."""
    plain = Normaliser(lower=True)
    return ("".join(plain(text).text.split()) for text in texts)


def without_shared(banned: Iterable[Document], documents: list[Document]) -> list[Document]:
    """The documents that share no 20 successive characters, and no shorter text, with the banned ones."""
    return _without(_banned(banned), documents)[0]


def _without(banned: set[str], documents: list[Document]) -> tuple[list[Document], int]:
    """The documents that contain none of the ``banned`` substrings, and the number of the others."""
    kept = [d for d in documents if not _banned([d]) & banned] if banned else documents
    return kept, len(documents) - len(kept)


def _banned(documents: Iterable[Document]) -> set[str]:
    """All substrings of 20 characters, and all shorter texts as a whole."""
    return {run for text in plain_texts(d.text for d in documents) for run in _runs(text) or {text}} - {""}


def _shared(documents: Iterable[Document]) -> set[str]:
    """All substrings of 20 characters."""
    return {run for text in plain_texts(d.text for d in documents) for run in _runs(text)}


def _runs(text: str) -> set[str]:
    return {text[i : i + SHARED_LENGTH] for i in range(len(text) - SHARED_LENGTH + 1)}
