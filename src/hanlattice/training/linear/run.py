"""A training run of a linear tagger: from settings to a model folder."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from hanlattice.config.linear import LinearSettings, linear_settings, refuse_neural
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.engines.linear.folder import save_linear
from hanlattice.engines.linear.tables import MOST_CHARS, Tables, columns_of_tags, lanes_of
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ConfigError, DataError
from hanlattice.evaluation.evaluate import evaluate
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary, merged
from hanlattice.kernels.library import require_kernels
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import RECORD
from hanlattice.model.folder import CARD, CONFIG, LEXICON, VOCABULARY, WEIGHTS
from hanlattice.pipeline import NER
from hanlattice.spans import to_tags
from hanlattice.text.normalise import Normaliser
from hanlattice.training.card import card
from hanlattice.training.corpora import (
    Corpora,
    absent_labels,
    examples_left_out,
    identical_texts,
    left_out,
    load_corpora,
    n_entities,
    refuse_overlaps,
    unknown_labels,
)
from hanlattice.training.examples import annotated_windows, labels_of, refuse_unlabelled
from hanlattice.training.linear.learner import Corpus, LinearLearner
from hanlattice.training.linear.variation import GoldSpans, kinds_without_label, varied, with_user_words
from hanlattice.training.noise import noisy, normalised, without_punctuation
from hanlattice.training.progress import Progress, Run
from hanlattice.training.run_folder import alone_in, refuse_other_files
from hanlattice.training.vocabularies import load_lexicon, load_vectors
from hanlattice.training.watcher import Silent, Watcher, plan
from hanlattice.training.window import AnnotatedWindow

PRUNED_BEFORE = 2  # epochs before the end when rows are removed
FILES = (CARD, LEXICON, RECORD, VOCABULARY, WEIGHTS)  # what a run writes, beside its settings
NOISE_OF_CONVENTIONS = 3  # times data.noise; the corpus of a further convention often has text of one kind only


def train_linear(config: Config, output: str | Path, *, watcher: Watcher | None = None) -> Run:
    """Train a linear tagger and leave the weights of the epoch with the best dev F1 in the folder ``output``.

    It takes minutes and cannot be resumed: the folder is written at the end. Of ``config.training`` it uses
    ``epochs``, ``learning_rate``, ``patience``, ``evaluate_from`` and ``seed``.

    Raises:
        ConfigError: a setting does not fit, the folder already holds a run or other files, or another process
            trains in it.
        DataError: a corpus or lexicon cannot be read, entities of a training corpus overlap, or an auxiliary corpus
            has labels that train does not have.
        EngineError: the kernels are not compiled.
    """
    output, watcher = Path(output), watcher or Silent()
    settings = check_linear(config, output)
    with alone_in(output):
        return _trained(config, settings, output, watcher)


def _trained(config: Config, settings: LinearSettings, output: Path, watcher: Watcher) -> Run:
    start = time.monotonic()
    corpora = load_corpora(config)
    for documents in (corpora.train, *corpora.further.values()):
        refuse_overlaps(documents)
    data = _Data.of(config, corpora, watcher)
    best, progress = _fit(config, settings, data, watcher)
    tables = {"": best}
    for name, own in settings.conventions.items():
        watcher.say(f"convention {name}")
        epochs = config.conventions[name].epochs or config.training.epochs
        of_convention = config.with_settings({"training": {"epochs": epochs}})
        tables[name], _ = _fit(of_convention, own, data.of_convention(name), watcher)
    ner = data.ner(best)
    dev, test = (evaluate(ner, documents) if documents else None for documents in (corpora.dev, corpora.test))
    assert dev is not None
    progress.seconds = time.monotonic() - start
    text = card(config, ner, progress, dev, test)
    save_linear(output, tables, data.vocabulary, data.lexicon, config, card=text)
    return Run(output, progress, dev, test)


def check_linear(config: Config, output: Path) -> LinearSettings:
    """Check the settings and the folder of a run before anything is read.

    Raises:
        ConfigError: a setting does not fit, or the folder already holds a run.
        EngineError: the kernels are not compiled.
    """
    settings = linear_settings(config)
    if settings is None:
        raise ConfigError(f"the encoder {config.encoder.name!r} is not trained by train_linear")
    refuse_neural(config)
    require_kernels()
    _refuse_used(output)
    return settings


def _refuse_used(output: Path) -> None:
    """Check the folder of a run.

    Raises:
        ConfigError: it is a file or in one, holds a model, or has other files that the run would replace.
    """
    if (output / CONFIG).exists():
        raise ConfigError(f"{output} already holds a run; name another folder")
    refuse_other_files(output, FILES)


@dataclass(frozen=True)
class _Data:
    """What the tagger of a convention learns from, and what it is scored on.

    Attributes:
        config: the settings of the run.
        corpus: the sentences with their tags.
        gold: their gold spans.
        n_own: the first so many sentences are those of ``data.train``, or of the corpus of another convention.
        shares: for each auxiliary corpus the half-open range of its sentences, and the share used in an epoch.
        vocabulary: has the labels of the convention as those of the default one.
        lexicon: the words.
        dev: the documents that choose the epoch; empty for other conventions than the default one.
        others: the windows of each other convention; empty if this is one of them.
    """

    config: Config
    corpus: Corpus
    gold: GoldSpans
    n_own: int
    shares: list[tuple[int, int, float]]
    vocabulary: Vocabulary
    lexicon: Lexicon
    dev: list[Document]
    others: dict[str, list[AnnotatedWindow]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Config, corpora: Corpora, watcher: Watcher) -> "_Data":
        normaliser = Normaliser.of(config.text)
        lexicon = _lexicon(config, normaliser)
        own, unused = _windows(corpora.train, config, normaliser)
        own = _with_noise(own, config, config.data.noise, normaliser)
        further: dict[str, list[AnnotatedWindow]] = {}
        unused_of: dict[str, str] = {}
        for name, documents in corpora.further.items():
            further[name], unused_of[name] = _windows(documents, config, normaliser)
        noise = min(1.0, NOISE_OF_CONVENTIONS * config.data.noise)
        others = {name: _with_noise(further.pop(name), config, noise, normaliser) for name in config.conventions}
        windows, labels = list(chain(own, *further.values())), labels_of(own)
        refuse_unlabelled({"": own, **further, **others}, config)
        _refuse_other_labels(further, labels, config)
        vocabulary = _vocabulary(config, windows, labels, others, lexicon)
        shares, first = [], sum(bool(w.text) for w in own)
        n_own = first
        for name, found in further.items():
            shares.append((first, first + sum(bool(w.text) for w in found), config.auxiliary[name].share))
            first = shares[-1][1]
        watcher.say(
            f"{len(corpora.train):,} documents, {n_entities(corpora.train):,} entities of {len(labels)} labels;"
            f" {sum(map(len, corpora.further.values())):,} further documents;"
            f" dev {len(corpora.dev):,}, test {len(corpora.test):,}{unused}{left_out(corpora)};"
            f" {len(lexicon):,} words in the lexicon"
        )
        for message in chain(_further(corpora, unused_of), _warnings(corpora, labels)):
            watcher.say(message)
        examples = _examples(windows, config, vocabulary, lexicon)
        return cls(config, *examples, n_own, shares, vocabulary, lexicon, corpora.dev, others)

    def of_convention(self, name: str) -> "_Data":
        """The same for another convention."""
        windows = self.others[name]
        vocabulary = replace(self.vocabulary, labels=self.vocabulary.conventions[name])
        corpus, gold = _examples(windows, self.config, vocabulary, self.lexicon)
        return _Data(self.config, corpus, gold, len(corpus.sentences), [], vocabulary, self.lexicon, [])

    def ner(self, tables: Tables) -> NER:
        """The pipeline with these tables."""
        return NER(LinearTagger(tables, self.vocabulary), self.vocabulary, self.lexicon, self.config)

    def for_features(self, draw: np.random.Generator) -> Corpus:
        """The sentences from which features are chosen: with user words, if these are simulated."""
        if not (share := self.config.data.user_words):
            return self.corpus
        sentences = with_user_words(self.corpus.sentences, self.gold, self.vocabulary, share, draw)
        return Corpus(sentences, self.corpus.tags)

    def epoch(self, settings: LinearSettings, draw: np.random.Generator) -> tuple[Corpus, np.ndarray]:
        """The sentences with the words of an epoch, and their order."""
        chosen = [np.arange(self.n_own)]
        for first, last, share in self.shares:
            n = max(1, round((last - first) * share)) if last > first else 0
            chosen.append(first + draw.permutation(last - first)[:n])
        sentences = varied(
            self.corpus.sentences,
            forget=settings.forget,
            drop=settings.drop,
            kind_without_label=kinds_without_label(self.vocabulary),
            draw=draw,
        )
        if share := self.config.data.user_words:
            sentences = with_user_words(sentences, self.gold, self.vocabulary, share, draw)
        return Corpus(sentences, self.corpus.tags), draw.permutation(np.concatenate(chosen))


def _refuse_other_labels(
    further: Mapping[str, Sequence[AnnotatedWindow]], labels: Sequence[str], config: Config
) -> None:
    """Check the labels of auxiliary corpora.

    Raises:
        DataError: one has labels that train does not have.
    """
    for name, windows in further.items():
        if unknown := sorted(set(labels_of(windows)) - set(labels)):
            reason = f"has {', '.join(unknown)}, which data.train lacks; rename them with auxiliary.{name}.labels"
            raise DataError(reason, config.auxiliary[name].corpus[0])


def _lexicon(config: Config, normaliser: Normaliser) -> Lexicon:
    """The lexicon of the settings; unlike other taggers, a linear one may have none."""
    if not config.lexicon.files and not config.lexicon.vector_words:
        return Lexicon(rewrite=normaliser.words)
    vectors: Any = load_vectors(config) if config.lexicon.vector_words else None
    return load_lexicon(config, vectors, normaliser)


def _with_noise(
    windows: Sequence[AnnotatedWindow], config: Config, noise: float, normaliser: Normaliser
) -> list[AnnotatedWindow]:
    """The windows, and copies of a share ``noise`` of them with noise, and of some without punctuation."""
    draw = np.random.default_rng((config.training.seed, 0))
    found, n = list(windows), len(windows)
    for i in np.flatnonzero(draw.random(n) < noise).tolist():
        found.append(normalised(noisy(windows[i], windows, draw), normaliser))
    for i in np.flatnonzero(draw.random(n) < config.data.unpunctuated).tolist():
        found.append(without_punctuation(windows[i]))
    return found


def _windows(
    documents: Sequence[Document], config: Config, normaliser: Normaliser
) -> tuple[list[AnnotatedWindow], str]:
    """The windows without discontinuous entities, which tags cannot express, and the numbers of unused entities."""
    found, n_cut = annotated_windows(documents, config.text, normaliser)
    n_gaps = sum(entity.discontinuous for document in documents for entity in document.entities)
    unused = (
        (n_cut, "entities cross the border of a window and are not trained on"),
        (n_gaps, "are discontinuous and are not trained on"),
    )
    whole = [replace(w, spans=tuple(span for span in w.spans if not span.gaps)) for w in found]
    return whole, "".join(f"; {n:,} {what}" for n, what in unused if n)


def _further(corpora: Corpora, unused: Mapping[str, str]) -> Iterator[str]:
    """A message for each further corpus; ``unused`` has the numbers of unused entities by name."""
    for name, documents in corpora.further.items():
        yield f"also {len(documents):,} documents of {name!r}, {n_entities(documents):,} entities{unused[name]}"


def _warnings(corpora: Corpora, labels: Sequence[str]) -> Iterator[str]:
    yield from examples_left_out(corpora)
    yield from identical_texts(corpora)
    yield from unknown_labels(corpora, labels)
    yield from absent_labels(corpora)


def _examples(
    windows: Sequence[AnnotatedWindow], config: Config, vocabulary: Vocabulary, lexicon: Lexicon
) -> tuple[Corpus, GoldSpans]:
    """The windows that have text as a linear tagger reads them, and their gold spans."""
    windows, labels = [w for w in windows if w.text], vocabulary.labels
    reader = Reader(vocabulary, min_word_length=config.lexicon.min_word_length)
    sentences = reader.read([w.text for w in windows], lexicon)
    tags = [columns_of_tags(to_tags(w.spans, len(w.text)), labels, lanes_of(len(labels))) for w in windows]
    return Corpus(sentences, np.concatenate(tags)), GoldSpans.of([w.spans for w in windows], labels)


def _vocabulary(
    config: Config,
    windows: Sequence[AnnotatedWindow],
    labels: tuple[str, ...],
    others: Mapping[str, Sequence[AnnotatedWindow]],
    lexicon: Lexicon,
) -> Vocabulary:
    """The characters that are frequent enough, the labels of the lexicon, and the entity labels.

    ``windows`` and ``labels`` are those of the default convention, and ``others`` the windows of other conventions.
    Characters that only these have come last, so that other conventions do not change the default one.
    """
    chars: dict[str, None] = {}
    for group in (windows, list(chain.from_iterable(others.values()))):
        counts = Counter(chain.from_iterable(w.text for w in group))
        ordered = sorted(counts, key=lambda c: (-counts[c], c))
        chars |= dict.fromkeys(c for c in ordered if counts[c] >= config.vectors.min_frequency)
    has_user_words = config.data.user_words > 0
    of_others = {name: labels_of(found) for name, found in others.items()}
    word_labels = merged(lexicon.labels, labels, *of_others.values()) if has_user_words else lexicon.labels
    known = tuple(chars)[: MOST_CHARS - 2]
    return Vocabulary(known, (), (), word_labels, labels, has_user_words, config.data.convention, of_others)


def _fit(config: Config, settings: LinearSettings, data: _Data, watcher: Watcher) -> tuple[Tables, Progress]:
    """The tables of the epoch with the best dev F1, or without a dev set those of the last one."""
    training, progress = config.training, Progress()
    draw = np.random.default_rng(training.seed)
    learner = LinearLearner(
        data.for_features(draw),
        data.vocabulary,
        window=settings.window,
        longest=settings.longest,
        min_count=settings.min_count,
        dropout=settings.feature_dropout,
        seed=training.seed,
    )
    watcher.say(f"{len(learner.rows):,} rows of {learner.rows.shape[1]:,} weights")
    plan(watcher, training.epochs)
    best, start = learner.tables(), time.monotonic()
    # Never before the first epoch, when all weights are 0: with a single epoch, rows are removed after it.
    pruned_at = max(training.epochs - PRUNED_BEFORE + 1, 2) if settings.rows else 0
    for epoch in range(1, training.epochs + 1):
        if epoch == pruned_at:
            learner.prune(settings.rows)
            progress = Progress(step=progress.step)  # the tables of earlier epochs are too large
        given, order = data.epoch(settings, draw)
        loss = learner.epoch(given, order, training.learning_rate * (1 - (epoch - 1) / training.epochs))
        if pruned_at > training.epochs:
            learner.prune(settings.rows)
        progress.epoch, progress.step = epoch, progress.step + len(order)
        watcher.step(epoch, len(order), len(order), loss)
        row: dict[str, Any] = {"epoch": epoch, "loss": round(loss, 4)}
        if not data.dev:
            best = learner.tables() if epoch == training.epochs else best
        elif epoch >= min(training.evaluate_from, training.epochs):
            tables = learner.tables()
            micro = evaluate(data.ner(tables), data.dev, upper_bound=False).micro
            if micro.f1 > progress.best_f1:
                best, progress.best_f1, progress.best_epoch = tables, micro.f1, epoch
            scores = {"dev_p": micro.precision, "dev_r": micro.recall, "dev_f1": micro.f1}
            row |= {name: round(100 * score, 2) for name, score in scores.items()}
            row["best_epoch"] = progress.best_epoch
        watcher.epoch({**row, "seconds": round(time.monotonic() - start, 1)})
        if epoch >= pruned_at and progress.out_of_patience(training.patience):
            break
    return best, progress
