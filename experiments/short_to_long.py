"""Trained on short sentences, tested on long ones: which position encodings extrapolate."""

from statistics import median

import numpy as np

from experiments.arms import Arm, Setup, against
from experiments.corpora import SEED, divided, n_characters, written
from experiments.running import Results, restricted, test_lengths
from experiments.tables import differences, grid
from hanlattice.document import Document
from hanlattice.errors import DataError

EPOCHS = {"training": {"epochs": 30}}  # for all rows, whatever their settings files have
ADAMW = {"training": {"optimiser": "adamw", "warmup": 0.05, "average": 0.998, "learning_rate": 1e-3}}
ROWS = {
    "bilstm": ("equal/bilstm", {}),
    **{
        name: (f"transformer/{name}-weibo", ADAMW)
        for name in ("none", "sinusoidal", "learned", "shaw", "t5", "rotary", "transformer-xl")
    },
    "tener": ("tener/weibo", ADAMW),
}


def longest(documents: list[Document]) -> int:
    """The length up to which a sentence counts as short: the median of train."""
    return int(median(len(document.text) for document in documents))


def arms(setup: Setup) -> list[Arm]:
    """Columns: train has short sentences only, or sentences of any length with as many characters.

    Dev has short sentences in both columns. The baseline of each row is training on any length.

    Raises:
        DataError: test has no long sentence.
    """
    limit = longest(setup.all_parts.train)
    if all(len(document.text) <= limit for document in setup.parts.test):
        raise DataError(
            f"no test sentence has more than {limit} characters, the median of train; name another test"
        )
    short, _ = divided(setup.all_parts.train, lambda d: len(d.text) <= limit)
    short = short[: setup.sentences or None]
    dev, _ = divided(setup.parts.dev, lambda d: len(d.text) <= limit)
    trained = {"short": short, "any": as_long(setup.all_parts.train, n_characters(short))}
    dev_path = written(dev, setup.place("short-dev"))
    made = []
    for column, documents in trained.items():
        data = setup.data(train=written(documents, setup.place(f"{column}-train")), dev=dev_path)
        for row, (system, settings) in ROWS.items():
            made.append(Arm(row, column, setup.config(system, settings, {"data": data}, EPOCHS)))
    return against(made, lambda arm: (arm.row, "any"))


def as_long(documents: list[Document], characters: int) -> list[Document]:
    """Random documents, until they have this number of characters."""
    taken: list[Document] = []
    n = 0
    for i in np.random.default_rng(SEED).permutation(len(documents)):
        if n >= characters:
            break
        taken.append(documents[i])
        n += len(documents[i].text)
    return taken


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    """Test F1 on short and on long sentences, and what training on short ones costs on long ones."""
    limit = longest(setup.all_parts.train)
    is_short = [n <= limit for n in test_lengths(made[0])]
    on_short, on_long = restricted(results, is_short), restricted(results, [not short for short in is_short])
    return (
        f"Short: up to {limit} characters. {sum(is_short)} of {len(is_short)} test sentences are short.\n\n"
        f"Short test sentences:\n\n{grid(on_short, 'trained on')}\n"
        f"Long test sentences:\n\n{grid(on_long, 'trained on')}\n"
        f"Training on short sentences, scored on long ones:\n\n{differences(made, on_long)}"
    )
