"""All experiments by name."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments import (
    batch_size,
    coverage,
    lexicon_size,
    missing_labels,
    nested_share,
    positions,
    random_vectors,
    sentence_length,
    short_to_long,
    word_level,
)
from experiments.arms import Arm, Setup
from experiments.corpora import SOURCES
from experiments.running import Results

# Options of the command that not all experiments use.
TRAINING = frozenset({"sentences", "test_sentences", "epochs", "seeds", "jobs"})
OPTIONS = TRAINING | {"systems", "words"}


@dataclass(frozen=True)
class Trained:
    """An experiment whose arms are trained.

    Attributes:
        question: what it answers.
        arms: the arms for a setup.
        report: the tables of the finished runs.
        corpus: the corpus if the user names none.
        sentences: the sentences of train if the user gives no number; 0 for all.
        options: those of :data:`OPTIONS` that it uses.
    """

    question: str
    arms: Callable[[Setup], list[Arm]]
    report: Callable[[Setup, list[Arm], Results], str]
    corpus: str = "weibo"
    sentences: int = 0
    options: frozenset[str] = TRAINING


@dataclass(frozen=True)
class Measured:
    """An experiment without runs to keep; ``report`` gets a function that receives progress messages.

    The attributes are those of :class:`Trained`.
    """

    question: str
    report: Callable[[Setup, Callable[[str], None]], str]
    corpus: str = "weibo"
    sentences: int = 0
    options: frozenset[str] = frozenset()


EXPERIMENTS: dict[str, Trained | Measured] = {
    "coverage": Measured(
        "which part of the entities is in the lexicon?",
        lambda setup, say: coverage.report(setup),
        ",".join(SOURCES),
        options=frozenset({"words"}),
    ),
    "lexicon_size": Trained(
        "what is a larger lexicon worth?", lexicon_size.arms, lexicon_size.report, options=OPTIONS
    ),
    "sentence_length": Trained(
        "how does F1 depend on the length of a sentence?",
        sentence_length.arms,
        sentence_length.report,
        "resume",
        options=TRAINING | {"systems"},
    ),
    "short_to_long": Trained(
        "which positions extrapolate to longer sentences?", short_to_long.arms, short_to_long.report, "resume"
    ),
    "missing_labels": Trained(
        "which framework suffers least from missing labels?",
        missing_labels.arms,
        missing_labels.report,
        "cluener",
        8000,
    ),
    "nested_share": Trained(
        "which framework gains from nested entities?", nested_share.arms, nested_share.report, "cmeee", 2000
    ),
    "positions": Trained("which position encoding is best?", positions.arms, positions.report, "msra", 8000),
    "word_level": Trained("are words better units than characters?", word_level.arms, word_level.report),
    "batch_size": Measured(
        "how fast are encoders with larger batches?",
        batch_size.report,
        options=frozenset({"sentences", "test_sentences", "systems"}),
    ),
    "random_vectors": Trained(
        "what are pretrained vectors worth?",
        random_vectors.arms,
        random_vectors.report,
        options=TRAINING | {"systems"},
    ),
}
