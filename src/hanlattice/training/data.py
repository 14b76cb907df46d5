"""Corpora as examples, and the vocabulary, lexicon and tables that follow from them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

import numpy as np

from hanlattice import corpus
from hanlattice.config.files import located
from hanlattice.config.settings import AuxiliaryConfig, Config
from hanlattice.corpus.defects import Defect
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.inputs.encoded import Encoded
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import END, Vocabulary, bigrams_of, merged
from hanlattice.lexicon import BatchMatches, Lexicon
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.text.windows import windows
from hanlattice.training.noise import without_punctuation
from hanlattice.training.window import Piece
from hanlattice.vectors import VectorSet, default_vectors

SHARED_RUN = 20  # characters that two texts must share to count as leaked


@dataclass(frozen=True)
class Example:
    """A piece as the model reads it."""

    encoded: Encoded
    spans: tuple[Span, ...]

    @property
    def piece(self) -> Piece:
        return Piece(self.encoded.text, self.spans)


@dataclass(frozen=True)
class Corpora:
    """``others`` are the corpora of other conventions, and auxiliary ones, by the names that the settings give
    them.

    ``leaked`` counts the documents of train and of these left out because they share 20 characters with an excluded
    corpus or with dev, ``inner`` the entities left out because another holds them. ``dropped`` are the defects of
    all corpora that were passed over, ``contradictions`` the documents left out because an earlier one of their
    convention has the same text with other entities.
    """

    train: list[Document]
    others: dict[str, list[Document]]
    dev: list[Document]
    test: list[Document]
    leaked: int
    inner: int
    dropped: list[Defect]
    contradictions: list[Document]


def load_corpora(config: Config) -> Corpora:
    """Read train, dev and test; a share of the first training corpus becomes dev where there is no dev file.

    Documents that share 20 characters with an excluded corpus are left out of train, and so are those of the
    second and further training corpora, and of other conventions and auxiliary ones, that share them with dev.
    Dev and test keep the entities inside others, even where train does not, so that scores say what a decoder of
    flat ones misses.

    Raises:
        ConfigError: no training corpus is named.
        DataError: a corpus is empty or cannot be read, or train or a corpus beside it holds no entity.
    """
    data = config.data
    if not data.train:
        raise ConfigError("no training corpus: give --train FILE, or data.train in the settings")
    further = others(config)
    for name, settings in further.items():
        if not settings.corpus:
            kind = "conventions" if name in config.conventions else "auxiliary"
            raise ConfigError(f"{kind}.{name}.corpus is empty: name a file, or remove {name!r}")
    dropped: list[Defect] = []
    read = partial(_read, config=config, dropped=dropped)
    banned = _runs(document for path in data.exclude for document in read(path))
    train, leaked = _without(banned, read(data.train[0]))
    dev = read(data.dev) if data.dev else []
    test = read(data.test) if data.test else []
    if not dev:
        chosen = np.random.default_rng(config.training.seed).random(len(train)) < data.dev_share
        dev = [d for d, is_dev in zip(train, chosen, strict=True) if is_dev]
        train = [d for d, is_dev in zip(train, chosen, strict=True) if not is_dev]
    if data.train[1:] or further:
        banned = banned | _runs(dev)
    parts = {"": train, **{name: [] for name in further}}
    own = ("", AuxiliaryConfig(data.train[1:]))
    files = [(name, path, kind.labels) for name, kind in (own, *further.items()) for path in kind.corpus]
    for name, path, labels in files:
        kept, shared = _without(banned, _renamed(read(path), labels))
        parts[name], leaked = [*parts[name], *kept], leaked + shared
    inner = 0
    if data.outermost:
        entities = sum(len(d.entities) for part in parts.values() for d in part)
        parts = {name: list(map(_outermost, part)) for name, part in parts.items()}
        inner = entities - sum(len(d.entities) for part in parts.values() for d in part)
    contradictions: list[Document] = []
    for name, part in parts.items():
        if len(data.train if not name else further[name].corpus) > 1:
            parts[name], contradicting = consistent(part)
            contradictions += contradicting
    train = parts.pop("")
    if not train or not dev:
        raise DataError("too few documents for training and development; name more files", data.train[0])
    if not any(document.entities for document in train):
        raise DataError("holds no entity to learn from; name an annotated corpus", data.train[0])
    for name, part in parts.items():
        if not any(document.entities for document in part):
            reason = f"{name!r} is left with no entity to learn from; name an annotated corpus, or remove {name!r}"
            raise DataError(reason, further[name].corpus[0])
    return Corpora(train, parts, dev, test, leaked, inner, dropped, contradictions)


def others(config: Config) -> dict[str, AuxiliaryConfig]:
    """The settings of other conventions and of auxiliary corpora, by their names.

    Raises:
        ConfigError: a convention and an auxiliary corpus, or another convention and the default one, share a name.
    """
    twice = (config.conventions.keys() & config.auxiliary.keys()) | (
        {config.data.convention} & {*config.conventions, *config.auxiliary}
    )
    if twice:
        raise ConfigError(f"{min(twice)!r} names two conventions or auxiliary corpora; rename one of them")
    return {**config.conventions, **config.auxiliary}


def consistent(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """The documents but for those whose text an earlier one has with other entities, and these."""
    first: dict[str, list[Span]] = {}
    kept: list[Document] = []
    contradicting: list[Document] = []
    for document in documents:
        spans = sorted(document.spans)
        same = first.setdefault(document.text, spans) == spans
        (kept if same else contradicting).append(document)
    return kept, contradicting


def _renamed(documents: Iterable[Document], labels: Mapping[str, str]) -> list[Document]:
    if not labels:
        return list(documents)
    return [
        replace(d, entities=tuple(replace(e, label=labels.get(e.label, e.label)) for e in d.entities))
        for d in documents
    ]


def _read(path: str, config: Config, dropped: list[Defect]) -> list[Document]:
    data, path = config.data, located(path)

    def take(defect: Defect) -> None:
        if defect.lossy:
            dropped.append(defect)

    on_defect = take if data.drop else None
    read = corpus.read(path, format=data.format or None, scheme=data.scheme or None, on_defect=on_defect)
    documents = [replace(document, meta={"@file": path, **document.meta}) for document in read]
    if not documents:
        raise DataError("holds no document", path)
    return documents


def refuse_overlaps(documents: Iterable[Document]) -> None:
    """For a decoder that finds no entity inside another.

    Raises:
        DataError: two entities overlap; the file and line of their text are named.
    """
    for document in documents:
        for first, second in pairwise(sorted(span for span in document.spans if not span.gaps)):
            if second.start < first.end:
                names = " and ".join(f"{s.label} {document.text[s.start : s.end]!r}" for s in (first, second))
                raise DataError(
                    f"{names} overlap, which this decoder cannot learn; keep the outermost of such entities with"
                    " data.outermost = true",
                    document.meta["@file"],
                    document.meta.get("@line"),
                )


def _outermost(document: Document) -> Document:
    """The document with those entities only that overlap no longer one before them or around them."""
    kept: list[Entity] = []
    for entity in sorted(document.entities, key=lambda e: (e.start, -e.end)):
        if not kept or kept[-1].end <= entity.start:
            kept.append(entity)
    return replace(document, entities=tuple(kept))


def without_shared(banned: Iterable[Document], documents: list[Document]) -> list[Document]:
    """The documents that share no 20 characters in a row with those banned."""
    return _without(_runs(banned), documents)[0]


def _without(banned: set[str], documents: list[Document]) -> tuple[list[Document], int]:
    """The documents that share no run of characters with the banned ones, and how many do."""
    kept = [d for d in documents if not _runs([d]) & banned] if banned else documents
    return kept, len(documents) - len(kept)


def _runs(documents: Iterable[Document]) -> set[str]:
    plain = Normaliser(lower=True)
    texts = (plain(document.text).text for document in documents)
    return {text[i : i + SHARED_RUN] for text in texts for i in range(len(text) - SHARED_RUN + 1)}


def pieces(documents: Sequence[Document], config: Config, normaliser: Normaliser) -> tuple[list[Piece], int]:
    """Windows of the documents with their spans, and how many entities no window holds whole."""
    found, lost = [], 0
    for document in documents:
        plain = normaliser(document.text)
        spans = [s.mapped(plain.normalised) for s in document.spans]
        spans = [s for s in spans if s.start < s.end]
        held: set[Span] = set()
        for w in windows(plain.text, config.text.window, config.text.overlap):
            inside = [s for s in spans if w.start <= s.start and s.end <= w.end]
            held.update(inside)
            local = tuple(s.moved(-w.start) for s in inside)
            found.append(Piece(plain.text[w.start : w.end], local))
        lost += len(document.spans) - sum(s in held for s in spans)
    return found, lost


def unpunctuated(documents: Iterable[Document]) -> list[Document]:
    """The documents as :func:`without_punctuation` leaves them."""
    bare = [without_punctuation(Piece(d.text, tuple(d.spans))) for d in documents]
    return [Document(p.text, tuple(Entity.of(p.text, span) for span in p.spans)) for p in bare]


def load_vectors(config: Config) -> VectorSet:
    """The vectors named in the settings, or those inside the package."""
    return VectorSet.load(located(config.vectors.path)) if config.vectors.path else default_vectors()


def load_lexicon(config: Config, vectors: VectorSet, normaliser: Normaliser) -> Lexicon:
    """The words of the vectors and the word lists named in the settings, written as texts are normalised.

    A compiled lexicon that is the only one is used as it is.

    Raises:
        ConfigError: neither is wanted, so there would be no words at all.
    """
    settings = config.lexicon
    if not settings.files and not settings.vector_words:
        raise ConfigError("no lexicon: name lexicon.files, or set lexicon.vector_words = true")
    if len(settings.files) == 1 and not settings.vector_words and "=" not in settings.files[0]:
        return Lexicon.open(located(settings.files[0]))
    lexicon = Lexicon(vectors.words.names if settings.vector_words else (), normaliser.words)
    for name in settings.files:
        path, _, label = name.partition("=")
        listed = Lexicon.open(located(path))
        lexicon.update((word.text, label or word.label, word.weight) for word in listed.entries())
    return lexicon


@dataclass(frozen=True)
class Vocabularies:
    """``seen`` are the names met in the corpora, the only ones with a row while training; ``full`` begins with
    them and goes on with names of the vectors, whose rows training would leave as they are anyway.
    ``word_counts`` tells how often each word of ``seen`` occurs."""

    seen: Vocabulary
    full: Vocabulary
    word_counts: np.ndarray


def vocabularies(
    train: Sequence[Piece],
    others: Sequence[Piece],
    labels: tuple[str, ...],
    conventions: Mapping[str, tuple[str, ...]],
    lexicon: Lexicon,
    vectors: VectorSet,
    config: Config,
) -> Vocabularies:
    """Names met in train (with a vector, or often enough to learn a random one), names with a vector met in
    ``others``, then the rest of the vectors up to the limits of the settings."""
    limit, least = config.vectors, config.vectors.min_frequency
    texts, other_texts = [p.text for p in train], [p.text for p in others]
    pairs = [pair for name in vectors.bigrams.names if len(pair := name.replace("<end>", END)) == 2]
    words_known = set(vectors.words.names)
    chars_met = _met(chain.from_iterable(texts), chain.from_iterable(other_texts), set(vectors.chars.names), least)
    pairs_met = _met(_pairs(texts), _pairs(other_texts), set(pairs), least)
    matches = lexicon.match_batch([*texts, *other_texts], config.lexicon.min_word_length)
    known = [word for word in np.unique(matches.word).tolist() if lexicon.word(word) in words_known]
    words_met = tuple(map(lexicon.word, known))
    counted = len(texts) if config.lexicon.counts == "train" else len(matches)
    full = Vocabulary(
        merged(chars_met, [c for c in vectors.chars.names if len(c) == 1]),
        merged(pairs_met, pairs[: limit.bigrams or None]),
        merged(words_met, vectors.words.names[: limit.words or None]),
        merged(lexicon.labels, labels, *conventions.values()) if config.data.user_words else lexicon.labels,
        labels,
        config.data.user_words > 0,
        config.data.convention,
        conventions,
    )
    seen = full.first(len(chars_met), len(pairs_met), len(words_met))
    return Vocabularies(seen, full, _occurrences(matches, counted, lexicon.id_count)[known])


def labels_of(found: Iterable[Piece]) -> tuple[str, ...]:
    """Those of their spans, in order."""
    return tuple(sorted({span.label for piece in found for span in piece.spans}))


def _occurrences(matches: BatchMatches, n_texts: int, n_words: int) -> np.ndarray:
    """``[n_words]``: how often each word occurs in the first texts, not within a longer word; 1 for one never met.

    As SoftLexicon counts (Ma et al. 2020). A word met within longer ones only has 0.
    """
    among = slice(matches.offsets[n_texts])
    word = matches.word[among]
    counts = np.bincount(word[matches.outermost()[among]], minlength=n_words)
    return np.where(np.bincount(word, minlength=n_words) > 0, counts, 1)


def _met(train: Iterable[str], others: Iterable[str], known: Set[str], least: int) -> tuple[str, ...]:
    """Names of train that have a vector or occur ``least`` times, then those of others that have a vector.

    The lower case of a name counts as met with it, since that is what is looked up next.
    """
    counts = Counter(train)
    often = [
        name for name in sorted(counts, key=lambda n: (-counts[n], n)) if name in known or counts[name] >= least
    ]
    lower = [name.lower() for name in sorted(counts)]
    elsewhere = [form for name in sorted(set(others)) for form in (name, name.lower())]
    return merged(often, [name for name in (*lower, *elsewhere) if name in known])


def _pairs(texts: Iterable[str]) -> Iterator[str]:
    return chain.from_iterable(map(bigrams_of, texts))


def examples(found: Iterable[Piece], reader: Reader, lexicon: Lexicon) -> list[Example]:
    """Pieces read by a vocabulary and a lexicon; empty ones are left out."""
    found = [piece for piece in found if piece.text]
    read = reader.read([p.text for p in found], lexicon)
    return [Example(e, p.spans) for e, p in zip(read, found, strict=True)]


def batches(data: Sequence[Example], size: int, bucket: int, draw: np.random.Generator) -> list[list[int]]:
    """Indices of examples in batches of like length: shuffled, sorted within buckets of ``bucket`` batches, and
    the batches shuffled again. A ``bucket`` of 0 sorts nothing."""
    order = draw.permutation(len(data))
    stretch = max(size * bucket, 1)
    if bucket:
        order = np.concatenate(
            [
                sorted(order[i : i + stretch], key=lambda j: data[j].encoded.n_nodes)
                for i in range(0, len(order), stretch)
            ]
        )
    cut = [order[i : i + size].tolist() for i in range(0, len(order), size)]
    return [cut[i] for i in draw.permutation(len(cut))]
