"""Texts chosen by `hanlattice select` compared with as many random texts: F1 of a model that learns from them.

    python benchmarks/selection.py --train TRAIN --test TEST --output FOLDER

For each seed, a model learns from START random sentences. N further ones are added, either chosen by that model
from the rest of TRAIN or at random, and a model learns from all of them. All are scored on TEST. Finished runs in
FOLDER are not repeated.
"""

import argparse
from pathlib import Path
from random import Random
from statistics import mean

from hanlattice import api, corpus
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.model.folder import CARD
from hanlattice.selection import select


def trained(documents: list[Document], folder: Path, seed: int, epochs: int, test: list[Document]) -> float:
    """Train a model unless there is one; returns its micro F1 on ``test`` in percent."""
    if not (folder / CARD).exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        corpus.write(documents, folder.with_suffix(".jsonl"), "jsonl")
        settings = {
            "data": {"train": [str(folder.with_suffix(".jsonl"))], "dev_share": 0.2},
            "encoder": {"d_model": 96, "d_feed_forward": 192},
            "training": {
                "seed": seed,
                "epochs": epochs,
                "device": "cpu",
                "optimiser": "adamw",
                "learning_rate": 1e-3,
                "schedule": "linear",
                "average": 0.0,
                "evaluate_from": epochs // 2,
            },
        }
        api.train(Config().with_settings(settings), output=folder)
    return 100 * api.evaluate(api.load(folder), test).micro.f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--start", type=int, default=200, help="sentences of the first model")
    parser.add_argument("--n", type=int, default=200, help="sentences that are added")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    pool, test = list(corpus.read(a.train)), list(corpus.read(a.test))
    rows: dict[str, list[tuple[float, int]]] = {"start": [], "random": [], "select": []}
    for seed in map(int, a.seeds.split(",")):
        shuffled = Random(seed).sample(pool, len(pool))
        first, rest = shuffled[: a.start], shuffled[a.start :]
        folder = a.output / f"start-{seed}"
        rows["start"].append((trained(first, folder, seed, a.epochs, test), 0))
        gold = {document.text: document for document in rest}
        chosen = [gold[s.document.text] for s in select(api.load(folder), rest, a.n)]
        for name, added in (("random", rest[: a.n]), ("select", chosen)):
            f1 = trained([*first, *added], a.output / f"{name}-{seed}", seed, a.epochs, test)
            rows[name].append((f1, sum(len(document.text) for document in added)))
        print(
            f"seed {seed}: " + ", ".join(f"{name} {found[-1][0]:.2f}" for name, found in rows.items()), flush=True
        )
    print("| sentences | F1, mean | F1 of each seed | characters added |\n|---|---|---|---|")
    for name, found in rows.items():
        each = " ".join(f"{f1:.2f}" for f1, _ in found)
        print(f"| {name} | {mean(f1 for f1, _ in found):.2f} | {each} | {mean(n for _, n in found):,.0f} |")


if __name__ == "__main__":
    main()
