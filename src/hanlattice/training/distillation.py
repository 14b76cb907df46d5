"""Distillation: one or more teachers annotate raw text, and a student learns from it beside the annotated corpora.

The student is any model that can be trained (Hinton et al. 2015 with hard labels). This module prepares its corpus.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from hanlattice import corpus
from hanlattice.compressed import decompressed_lines
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.pipeline import NER
from hanlattice.spans import Span
from hanlattice.text.windows import sentences
from hanlattice.training.corpora import Corpora, load_corpora, plain_texts
from hanlattice.training.held_out import IsHeldOut

LENGTHS = range(6, 121)  # characters of the sentences that the teacher reads
USUAL = f"{LENGTHS[0]} to {LENGTHS[-1]} characters"
NAME = "teacher"  # of the auxiliary corpus in the settings of the student
BATCH = 4_000  # sentences that one teacher annotates before the next teacher reads them


@dataclass
class Annotated:
    """Counts of the sentences, characters and entities that are kept, and of the sentences that are left out.

    ``n_uncertain`` counts sentences with an entity of a low score, ``n_contested`` sentences on which the teachers
    disagree.
    """

    n_sentences: int = 0
    n_characters: int = 0
    n_entities: int = 0
    n_uncertain: int = 0
    n_contested: int = 0


def sample(texts: Iterable[str], characters: int) -> list[str]:
    """Texts with about ``characters`` characters in total, spread evenly over all, in one pass; one text at least.

    Every ``step``-th text is kept. When there are twice as many characters as wanted, every second one is dropped
    and the step doubles.
    """
    kept: list[tuple[int, str]] = []
    step, total = 1, 0
    for number, text in enumerate(texts):
        if number % step:
            continue
        kept.append((number, text))
        total += len(text)
        while total > 2 * characters and len(kept) > 1:
            step *= 2
            kept = [(n, text) for n, text in kept if n % step == 0]
            total = sum(len(text) for _, text in kept)
    share = min(1.0, characters / max(total, 1))
    return [text for i, (_, text) in enumerate(kept) if math.ceil((i + 1) * share) > math.ceil(i * share)]


def sentences_of(line: str) -> Iterator[str]:
    """The sentences of a line that are not empty; a line of at most 120 characters counts as one sentence."""
    line = line.strip()
    if len(line) in LENGTHS:
        yield line
        return
    yield from (text for start, end in sentences(line) if (text := line[start:end].strip()))


@dataclass
class Unused:
    """What a teacher does not read of raw texts.

    Attributes:
        n_sentences: sentences of fewer than 6 or more than 120 characters.
        files: files without any other sentence.
    """

    n_sentences: int = 0
    files: list[Path] = field(default_factory=list)

    def others(self, path: Path) -> Iterator[str]:
        """The sentences of a file that the teacher reads; the rest is counted."""
        is_used = False
        for text in chain.from_iterable(map(sentences_of, decompressed_lines(path))):
            if len(text) in LENGTHS:
                is_used = True
                yield text
            else:
                self.n_sentences += 1
        if not is_used:
            self.files.append(path)


def raw_sentences(
    paths: Sequence[Path], characters: int, is_held_out: IsHeldOut | None = None, unused: Unused | None = None
) -> Iterator[str]:
    """Distinct sentences of text files, of 6 to 120 characters.

    Args:
        paths: text files, plain or compressed, with one paragraph or sentence per line.
        characters: about how many characters of each file are read.
        is_held_out: whether a sentence is left out.
        unused: counts what is left out because of its length.

    Raises:
        DataError: no file has such a sentence; see also :func:`hanlattice.compressed.decompressed_lines`.
    """
    seen, unused = set[str](), unused or Unused()
    for path in paths:
        for text in sample(unused.others(path), characters):
            if text not in seen and not (is_held_out is not None and is_held_out(text)):
                seen.add(text)
                yield text
    if paths and len(unused.files) == len(paths):
        raise DataError(f"no sentence of {USUAL} to annotate; name other texts", ", ".join(map(str, paths)))


def voted(found: Sequence[Sequence[Entity]]) -> tuple[list[Span], int]:
    """Merge the predictions of several models for one text.

    Args:
        found: the entities of each model

    Returns:
        the spans that more than half of the models found, sorted, and the number of spans that some models found
        but not all. If no model predicts overlapping entities, the spans do not overlap either: any two of them
        have a model in common.
    """
    votes = Counter(entity.span for entities in found for entity in entities)
    return sorted(span for span, n in votes.items() if 2 * n > len(found)), sum(
        n < len(found) for n in votes.values()
    )


def vote(text: str, found: Sequence[Sequence[Entity]]) -> tuple[Document, int]:
    """A text with the entities that more than half of the teachers found, and the number of contested spans.

    The score of an entity is the mean over the teachers that found it.
    """
    scores: dict[Span, list[float]] = {}
    for entity in (entity for entities in found for entity in entities):
        scores.setdefault(entity.span, []).append(entity.score or 0.0)
    spans, contested = voted(found)
    entities = (Entity.of(text, span, sum(scores[span]) / len(scores[span])) for span in spans)
    return Document(text, tuple(entities)), contested


def annotate(
    teachers: Sequence[NER],
    texts: Iterable[str],
    output: Path,
    *,
    min_score: float = 0.0,
    max_contested: int = 1,
    is_learnt: Callable[[str], bool] | None = None,
) -> Annotated:
    """Write texts with the teachers' entities to a JSONL file, which appears when it is complete.

    Args:
        teachers: models with the same labels. An entity is kept if more than half of them predict it.
        texts: sentences.
        output: the new file.
        min_score: texts with an entity whose score is below this value are left out, from 0 to 1.
        max_contested: texts with more entities that some teachers predict but not all are left out.
        is_learnt: whether the student can learn a label; see :func:`labels_of_student`.

    Raises:
        ConfigError: the labels of the teachers differ, or a text that is kept has a label that the student cannot
            learn.
        DataError: no entity is left.
    """
    _refuse_different_teachers(teachers)
    found = Annotated()

    def kept() -> Iterator[Document]:
        remaining = iter(texts)
        while batch := list(islice(remaining, BATCH)):
            predicted = [[d.entities for d in teacher.pipe(batch, batch_size=64)] for teacher in teachers]
            for text, *entities in zip(batch, *predicted, strict=True):
                document, contested = vote(text, entities)
                if contested > max_contested:
                    found.n_contested += 1
                elif any((entity.score or 0.0) < min_score for entity in document.entities):
                    found.n_uncertain += 1
                else:
                    _refuse_other_labels(document, is_learnt)
                    found.n_sentences += 1
                    found.n_characters += len(document.text)
                    found.n_entities += len(document.entities)
                    yield document

    corpus.write(kept(), output, "jsonl")
    if not found.n_entities:
        output.unlink()
        raise DataError(_why_empty(found, min_score, max_contested))
    return found


def _refuse_different_teachers(teachers: Sequence[NER]) -> None:
    """
    Raises:
        ConfigError: their labels differ.
    """
    for teacher in teachers[1:]:
        if teacher.labels != teachers[0].labels:
            first, other = (", ".join(ner.labels) for ner in (teachers[0], teacher))
            raise ConfigError(f"the teachers must have the same labels, but one has {first} and one has {other}")


def _refuse_other_labels(document: Document, is_learnt: Callable[[str], bool] | None) -> None:
    """
    Raises:
        ConfigError: an entity has a label that the student cannot learn.
    """
    for entity in document.entities:
        if is_learnt is not None and not is_learnt(entity.label):
            raise ConfigError(
                f"the teacher finds {entity.label} {entity.text!r}, and the training corpora of the student have no"
                f" {entity.label}; rename it with --auxiliary.{NAME}.labels.{entity.label} NEW, or name corpora"
                " that have it"
            )


def _why_empty(found: Annotated, min_score: float, max_contested: int) -> str:
    """Why no entity is left, and what to change."""
    if found.n_uncertain:
        return (
            f"no entity is left: {found.n_uncertain:,} sentences have one with a score below {min_score:g}; lower"
            " --min-score"
        )
    if found.n_contested:
        return (
            f"no entity is left: the teachers disagree on more than {max_contested} entities of"
            f" {found.n_contested:,} sentences; raise --max-contested, or name other teachers"
        )
    return "the teacher finds no entity in the raw text; name other texts, or more of them"


def corpora_of_student(config: Config) -> Corpora:
    """Read the corpora of a student, before its teachers annotate anything.

    Args:
        config: the settings of the student.

    Raises:
        ConfigError: no training corpus is named.
        DataError: a corpus cannot be read, or has no entity.
    """
    others = {name: settings for name, settings in config.auxiliary.items() if name != NAME}
    return load_corpora(replace(config, auxiliary=others))


def labels_of_student(config: Config, corpora: Corpora) -> Callable[[str], bool]:
    """Whether a student can learn a label of the teachers.

    It can if train has this label, or the one that ``auxiliary.teacher.labels`` renames it to.
    """
    known = {entity.label for document in corpora.train for entity in document.entities}
    renamed = config.auxiliary[NAME].labels if NAME in config.auxiliary else {}
    return lambda label: renamed.get(label, label) in known


def held_out_of(corpora: Corpora, is_held_out: IsHeldOut | None = None) -> IsHeldOut:
    """Whether a text is one of dev or test, apart from white space and case, or is held out otherwise."""
    known = set(plain_texts(document.text for document in (*corpora.dev, *corpora.test)))

    def decide(text: str) -> bool:
        return next(plain_texts([text])) in known or (is_held_out is not None and is_held_out(text))

    return decide


def with_annotated(config: Config, annotated: Path) -> Config:
    """The settings of a student that also learns from the teacher's sentences."""
    return config.with_settings({"auxiliary": {NAME: {"corpus": str(annotated), "same_convention": True}}})
