"""The effect of words that are added to the lexicon after training.

    python benchmarks/live_lexicon.py --train TRAIN --test TEST --output runs/live

Trains two models with the same settings: one with the whole lexicon, and one without a random share of its words.
Then scores three: the first model; the second model with its training lexicon; and the second model with the
held-out words added, for which it has no vectors. Prints how many points the held-out words are worth in training,
and how many of these points return when the words are added to the trained model.
"""

import argparse
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.model import weights
from hanlattice.model.folder import CARD
from hanlattice.training import evaluate, train
from hanlattice.vectors import default_vectors

SETTINGS = Path(hanlattice.__path__[0]) / "papers" / "hanlattice" / "open.toml"


def documents(path: str, names: dict[str, str]) -> list[Document]:
    """The documents of a corpus with their labels renamed."""
    return [
        Document(d.text, tuple(Entity(e.text, names.get(e.label, e.label), e.start, e.end) for e in d.entities))
        for d in corpus.read(path)
    ]


def settings(a: argparse.Namespace, train_path: Path, lexicon: Path) -> Config:
    """The given settings for one convention, with the lexicon as the only word list."""
    given = load_config(a.settings, dict(pair.split("=", 1) for pair in a.set))
    return replace(given, conventions={}, auxiliary={}).with_settings(
        {
            "data": {"train": [str(train_path)], "dev": "", "dev_share": 0.05, "exclude": []},
            "lexicon": {"files": [str(lexicon)], "vector_words": False},
            "vectors": {"words": 1},  # held-out words get no vector either
            "training": {"epochs": a.epochs, "seed": a.seed},
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--settings", default=str(SETTINGS), help="settings file (default: settings of the packaged model)"
    )
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="override a setting")
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument(
        "--map", default="", help="labels of the test corpus and the training labels, such as NR=PER,NS=LOC"
    )
    parser.add_argument("--documents", type=int, default=10_000, help="number of training documents")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.5, help="share of the words that is held out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()

    a.output.mkdir(parents=True, exist_ok=True)
    words = np.array(default_vectors().words.names, dtype=object)
    held_out = np.random.default_rng(a.seed).random(len(words)) < a.share
    lists = {"whole": words, "part": words[~held_out]}
    for name, chosen in lists.items():
        (a.output / f"{name}.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")
    part_of_train = a.output / "train.jsonl"
    corpus.write(islice(corpus.read(a.train), a.documents), part_of_train, "jsonl")
    names = dict(pair.split("=") for pair in a.map.split(",") if pair)
    test = documents(a.test, names)

    scores = {}
    titles = {"whole": "trained with all words", "part": "trained with part of the words"}
    for name in lists:
        config = settings(a, part_of_train, a.output / f"{name}.txt")
        if not (a.output / name / CARD).exists():
            train(config, a.output / name, resume=True, watcher=TrainingLines(a.epochs))
        ner = weights.load_model(a.output / name)
        scores[titles[name]] = evaluate(ner, test).micro
    ner.lexicon.update(words[held_out].tolist())
    scores["the same, the other words added at prediction"] = evaluate(ner, test).micro

    print(f"\n{len(words):,} words, {held_out.sum():,} of them held out; test: {len(test):,} documents\n")
    for name, score in scores.items():
        print(f"| {name} | {score} |")
    whole, part, live = (score.f1 for score in scores.values())
    print(f"\nThe words are worth {100 * (whole - part):.2f} points, of which {100 * (live - part):.2f} return.")


if __name__ == "__main__":
    main()
