"""What is a word worth that is added to the dictionary after training?

    python benchmarks/live_lexicon.py --train TRAIN --test TEST --output runs/live

Trains two models by the same settings: one with the whole lexicon, one without a random share of its words. Then
scores three: the first; the second with the words it was trained with; the second with the other words added live,
which it has no vectors for and never saw. Prints how much of what the words are worth the live lexicon brings back.
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
from hanlattice.document import Document, Entity
from hanlattice.model import weights
from hanlattice.model.folder import CARD
from hanlattice.training import evaluate, train
from hanlattice.vectors import default_vectors

SETTINGS = Path(hanlattice.__path__[0]) / "papers" / "hanlattice" / "open.toml"


def documents(path: str, names: dict[str, str]) -> list[Document]:
    return [
        Document(d.text, tuple(Entity(e.text, names.get(e.label, e.label), e.start, e.end) for e in d.entities))
        for d in corpus.read(path)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--settings", default=str(SETTINGS), help="a TOML file; those of the packaged model by default"
    )
    parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", help="over those settings")
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--map", default="", help="names of the test's labels, such as NR=PER,NS=LOC")
    parser.add_argument("--documents", type=int, default=10_000, help="how many of train are used")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.5, help="of the words, held out")
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
    for name in lists:
        given = load_config(a.settings, dict(pair.split("=", 1) for pair in a.set))
        config = replace(given, conventions={}, auxiliary={}).with_settings(
            {
                "data": {"train": [str(part_of_train)], "dev": "", "dev_share": 0.05, "exclude": []},
                "lexicon": {"files": [str(a.output / f"{name}.txt")], "vector_words": False},
                "vectors": {"words": 1},  # words that are held out get no row from the vectors either
                "training": {"epochs": a.epochs, "seed": a.seed},
            }
        )
        if not (a.output / name / CARD).exists():
            train(config, a.output / name, resume=True, watcher=TrainingLines(a.epochs))
        ner = weights.load_model(a.output / name)
        scores[f"trained and read with the {name}"] = evaluate(ner, test).micro
    ner.lexicon.update(words[held_out].tolist())
    scores["trained with the part, the rest added live"] = evaluate(ner, test).micro

    print(f"\n{len(words):,} words, of them {held_out.sum():,} held out; test: {len(test):,} documents\n")
    for name, score in scores.items():
        print(f"| {name} | {score} |")
    whole, part, live = (score.f1 for score in scores.values())
    print(f"\nThe words are worth {100 * (whole - part):.2f} points, of which {100 * (live - part):.2f} come back.")


if __name__ == "__main__":
    main()
