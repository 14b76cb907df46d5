"""Prepares a run: reads the corpora, and builds the vocabulary, the tagger and the training examples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import cast

import numpy as np

from hanlattice.build import build, build_head, own_parts
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.document import Document
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.words import Composition
from hanlattice.errors import ConfigError, DataError
from hanlattice.evaluation.recall_bound import described, unreachable
from hanlattice.inputs.batch import collate
from hanlattice.inputs.reader import Reader
from hanlattice.lexicon import Lexicon
from hanlattice.model import weights
from hanlattice.model.folder import ModelFolder
from hanlattice.pipeline import BATCH_SIZE, NER
from hanlattice.tagger import Head, Tagger
from hanlattice.text.normalise import Normaliser
from hanlattice.training.augmentation import Variation, one_draw
from hanlattice.training.corpora import (
    Corpora,
    absent_labels,
    examples_left_out,
    further_corpora,
    identical_texts,
    left_out,
    load_corpora,
    n_entities,
    refuse_overlaps,
    unknown_labels,
)
from hanlattice.training.distributed import ALONE, Group
from hanlattice.training.examples import annotated_windows, examples, labels_of, refuse_unlabelled
from hanlattice.training.fine_tuning import copy_weights, model_folder
from hanlattice.training.loop import Loop
from hanlattice.training.noise import noisy, without_punctuation
from hanlattice.training.optimiser import initialise
from hanlattice.training.tasks import Task
from hanlattice.training.techniques.replaced_names import gazetteer_of
from hanlattice.training.vocabularies import Vocabularies, load_lexicon, load_vectors, vocabularies
from hanlattice.training.watcher import Watcher
from hanlattice.training.window import AnnotatedWindow
from hanlattice.training.word_composition import fit_compositions
from hanlattice.vectors import VectorSet

N_EXAMPLES = 3  # maximum number of unreachable entities that are shown; all are counted


@dataclass
class Prepared:
    """The model to train, what it learns from, and what it is scored on.

    The first of the ``tasks`` is the model's own.
    """

    ner: NER
    tasks: list[Task]
    variation: Variation
    vocabularies: Vocabularies
    dev: list[Document]
    test: list[Document]

    def loop(self, config: TrainingConfig, *, watcher: Watcher | None = None, group: Group = ALONE) -> Loop:
        """The training loop of the model, before its first epoch."""
        return Loop(self.ner.tagger, self.tasks, self.variation, config, watcher=watcher, group=group)


@dataclass(frozen=True)
class _Windows:
    """Windows of all corpora.

    Attributes:
        train: those of the default convention.
        further: those of other conventions and of auxiliary corpora, by name.
        n_cut: by name, the number of entities that no window contains completely; that of ``train`` is under "".
        learned: all windows to train on. Their characters and bigrams get a row in the tables if they have a vector
            or are frequent enough to learn one.
        noisy: the same windows with noise. What only they have gets a row like what ``learned`` has.
        read: the windows of dev and test. Their characters and bigrams get a row only if they have a vector.
        copies: changed windows of ``learned``, such as joined ones, for which the same holds.
        gazetteer: words of the lexicon by label, which may replace names of the training corpora; empty if the
            settings do not ask for it.
    """

    train: list[AnnotatedWindow]
    further: dict[str, list[AnnotatedWindow]]
    n_cut: dict[str, int]
    learned: list[AnnotatedWindow] = field(repr=False)
    noisy: list[AnnotatedWindow] = field(repr=False)
    read: list[AnnotatedWindow] = field(repr=False)
    copies: list[AnnotatedWindow] = field(repr=False)
    gazetteer: Mapping[str, Sequence[str]] = field(repr=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity labels of the default convention."""
        return labels_of(self.train)

    def labels_by(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The entity labels of further corpora."""
        return {name: labels_of(self.further[name]) for name in names}


def prepare(config: Config, device: str, watcher: Watcher) -> Prepared:
    """Read corpora, vectors and lexicon, and build the tagger to train.

    Raises:
        ConfigError, DataError: see :func:`hanlattice.training.train`.
    """
    if config.data.joined_length > config.text.window:
        raise ConfigError(
            f"data.joined_length ({config.data.joined_length}) must be at most text.window ({config.text.window})"
        )
    corpora = load_corpora(config)
    vectors = load_vectors(config)
    normaliser = Normaliser.of(config.text)
    lexicon = load_lexicon(config, vectors, normaliser)
    windows = _windows_of(corpora, config, normaliser, lexicon)
    refuse_unlabelled({"": windows.train, **windows.further}, config)
    labels, conventions = windows.labels, windows.labels_by([*config.conventions])
    names = vocabularies(
        *(windows.learned, windows.read, labels, conventions, lexicon, vectors, config),
        noisy=windows.noisy,
        copies=windows.copies,
    )
    tagger = _built(config, names, vectors, device)
    heads = _heads(config, tagger, windows, device)
    _check_overlaps(corpora, tagger, heads)
    # Heads of conventions are modules of the tagger; those of auxiliary corpora are not.
    in_tagger = {id(head) for head in tagger.conventions.values()}
    for module in (tagger, *(head for head in heads.values() if head is not None and id(head) not in in_tagger)):
        initialise(module, config.training.initialisation)
    if config.vectors.spelled:
        fit_compositions(tagger, names.full, config.training.seed)
    if config.training.start:
        _start_from(config.training.start, config, tagger, names, watcher)
    reader = Reader(names.seen, min_word_length=config.lexicon.min_word_length)
    ner = NER(tagger, names.seen, lexicon, config)
    tasks = _tasks(config, windows, heads, reader, lexicon)
    _report(watcher, corpora, ner, tasks, windows)
    composes = any(isinstance(module, Composition) for module in tagger.modules())
    variation = Variation(config.data, reader, lexicon, normaliser, composes, config.text, windows.gazetteer)
    return Prepared(ner, tasks, variation, names, corpora.dev, corpora.test)


def _windows_of(corpora: Corpora, config: Config, normaliser: Normaliser, lexicon: Lexicon) -> _Windows:
    train, n_cut_of_train = annotated_windows(corpora.train, config.text, normaliser)
    further: dict[str, list[AnnotatedWindow]] = {}
    n_cut = {"": n_cut_of_train}
    for name, documents in corpora.further.items():
        further[name], n_cut[name] = annotated_windows(documents, config.text, normaliser)
    learned = [*train, *chain.from_iterable(further.values())]
    read, _ = annotated_windows([*corpora.dev, *corpora.test], config.text, normaliser)
    gazetteer = _gazetteer(config, lexicon, read, labels_of(learned))
    draw = np.random.default_rng((config.training.seed, 1))
    copies = [
        copy
        for windows in (train, *further.values())
        for copy in one_draw(windows, config.data, config.text, gazetteer, draw)
    ]
    if config.data.unpunctuated:
        copies += map(without_punctuation, learned)
    draw = np.random.default_rng((config.training.seed, 0))
    changed = [noisy(window, learned, draw) for window in learned] if config.data.noise else []
    return _Windows(train, further, n_cut, learned, changed, read, copies, gazetteer)


def _gazetteer(
    config: Config, lexicon: Lexicon, held_out: Sequence[AnnotatedWindow], labels: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The words of the lexicon that may replace names with the same label.

    Raises:
        ConfigError: the settings ask for them, but no word has one of the ``labels`` of the corpora.
    """
    if not config.data.replaced_names or config.data.names_from == "corpus":
        return {}
    found = gazetteer_of(lexicon, held_out)
    if not any(found.get(label) for label in labels):
        raise ConfigError(
            f"data.names_from = {config.data.names_from!r}: no word of the lexicon has one of the labels"
            f" {', '.join(labels)}; name files as FILE=LABEL in lexicon.files, or set data.names_from = 'corpus'"
        )
    return found


def _built(config: Config, names: Vocabularies, vectors: VectorSet, device: str) -> Tagger:
    """The tagger. Its tables train the rows of names in the corpora, and keep the others for the saved model."""
    tables = Tables.from_vectors(
        names.full,
        vectors,
        normalise=config.vectors.normalise,
        seed=config.training.seed,
        word_counts=names.word_counts,
    )
    seen = names.seen
    return build(config, tables.trained_on(seen), seen.labels, seen.conventions).to(device)


def _heads(config: Config, tagger: Tagger, windows: _Windows, device: str) -> dict[str, Head | None]:
    """The head of each further corpus; None where the tagger's own decoder learns from it.

    Raises:
        DataError: an auxiliary corpus of the default convention has labels that train does not have.
    """
    heads: dict[str, Head | None] = {name: cast(Head, tagger.conventions[name]) for name in config.conventions}
    for name, settings in config.auxiliary.items():
        labels = labels_of(windows.further[name])
        if settings.same_convention:
            _refuse_other_labels(name, labels, windows.labels, settings.corpus[0])
            heads[name] = None
            continue
        d_in = cast(int, tagger.embedding.d_out)
        heads[name] = build_head(f"auxiliary.{name}", settings.decoder, d_in, tagger.encoder, labels).to(device)
    return heads


def _refuse_other_labels(name: str, labels: Sequence[str], known: Sequence[str], path: str) -> None:
    """Check the labels of an auxiliary corpus of the default convention.

    Raises:
        DataError: it has labels that train does not have.
    """
    if others := [label for label in labels if label not in known]:
        raise DataError(
            f"has {', '.join(others)}, which data.train lacks; rename them with auxiliary.{name}.labels, or set"
            f" auxiliary.{name}.same_convention = false",
            path,
        )


def _check_overlaps(corpora: Corpora, tagger: Tagger, heads: Mapping[str, Head | None]) -> None:
    """Check that overlapping entities occur only in corpora whose decoder can learn them.

    Raises:
        DataError: entities overlap in another corpus.
    """
    for name, documents in (("", corpora.train), *corpora.further.items()):
        head = heads.get(name)
        if not (tagger.decoder if head is None else head.decoder).nested:
            refuse_overlaps(documents)


def _start_from(start: str, config: Config, tagger: Tagger, names: Vocabularies, watcher: Watcher) -> None:
    """Initialise the tagger with the weights of the model ``start``."""
    folder = model_folder(start)
    # The user trusts the parts that these settings name, and no others.
    trust = own_parts(ModelFolder.open(folder).config) <= own_parts(config)
    given = weights.load_model(folder, trust=trust)
    kept = copy_weights(given, tagger, names.full)
    if kept != names.seen.labels:
        new = [label for label in names.seen.labels if label not in kept]
        is_known = any(label in given.vocabulary.labels for label in new)
        unknown = f"does not have them in its convention {given.vocabulary.convention!r}"
        reason = "has another decoder or tag scheme" if is_known else unknown
        watcher.say(f"starts from {start}; its decoder learns {', '.join(new)} from scratch, as {start} {reason}")


def _tasks(
    config: Config, windows: _Windows, heads: Mapping[str, Head | None], reader: Reader, lexicon: Lexicon
) -> list[Task]:
    """The model's own task, and one for each further corpus."""
    own = examples(windows.train, reader, lexicon)
    tasks = [Task(None, windows.labels, own, first=config.data.from_epoch)]
    for name, settings in further_corpora(config).items():
        found = windows.further[name]
        read = examples(found, reader, lexicon)
        tasks.append(
            Task(
                heads[name],
                labels_of(found),
                read,
                weight=settings.weight,
                epochs=settings.epochs,
                share=settings.share,
                first=settings.from_epoch,
            )
        )
    return tasks


def _report(watcher: Watcher, corpora: Corpora, ner: NER, tasks: Sequence[Task], windows: _Windows) -> None:
    """Report what there is to learn from, what of it cannot be learned, and how large the model is."""
    n_lost = _n_unreachable(ner.tagger, tasks[0])
    watcher.say(_summary(corpora, len(ner.labels), len(tasks[0].examples), windows.n_cut[""], n_lost))
    for message in examples_left_out(corpora):
        watcher.say(message)
    if n_lost:
        lost = unreachable(ner, [d.text for d in corpora.train], [d.spans for d in corpora.train])
        for entity in islice(described(corpora.train, lost), N_EXAMPLES):
            watcher.say(f"this tagger can never find {entity}")
    watcher.say(
        f"{len(ner.lexicon):,} words in the lexicon; {len(ner.vocabulary.words):,} of those in the corpora have a"
        f" vector; {sum(p.numel() for p in ner.tagger.parameters()):,} parameters while training"
    )
    for message in chain(identical_texts(corpora), unknown_labels(corpora, ner.labels), absent_labels(corpora)):
        watcher.say(message)
    for name, task in zip(windows.further, tasks[1:], strict=True):
        documents, n_lost = corpora.further[name], _n_unreachable(ner.tagger, task)
        watcher.say(
            f"also {len(documents):,} documents of {name!r} in {len(task.examples):,} windows,"
            f" {n_entities(documents):,} spans of {len(task.labels)} labels{_unused(windows.n_cut[name], n_lost)}"
        )


def _summary(corpora: Corpora, n_labels: int, n_windows: int, n_cut: int, n_lost: int) -> str:
    """Sizes of the corpora, and the number of everything that is not used."""
    return (
        f"{len(corpora.train):,} documents in {n_windows:,} windows,"
        f" {n_entities(corpora.train):,} entities of {n_labels} labels;"
        f" dev {len(corpora.dev):,}, test {len(corpora.test):,}{left_out(corpora)}{_unused(n_cut, n_lost)}"
    )


def _unused(n_cut: int, n_lost: int) -> str:
    """The numbers of entities that are not used, each after a semicolon."""
    unused = (
        (n_cut, "entities cross the border of a window and are not trained on"),
        (n_lost, "entities that this tagger can never find"),
    )
    return "".join(f"; {n:,} {what}" for n, what in unused if n)


def _n_unreachable(tagger: Tagger, task: Task) -> int:
    """The number of gold spans that can never be found, such as spans within words that are read as one."""
    lost, found = 0, task.examples
    for i in range(0, len(found), BATCH_SIZE):
        chosen = found[i : i + BATCH_SIZE]
        batch = collate([e.encoded for e in chosen]).to(tagger.device)
        lost += sum(map(len, tagger.unreachable(batch, [e.spans for e in chosen], head=task.head)))
    return lost
