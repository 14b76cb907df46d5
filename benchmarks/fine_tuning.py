"""Fine-tuning on few sentences compared with training from random weights with the same vectors and lexicon.

    python benchmarks/fine_tuning.py --start MODEL --corpus NAME=TRAIN,TEST … --output FOLDER

For each corpus, size and seed, that many documents with entities are drawn from TRAIN. A fifth of them is the dev
set. Both models are scored on TEST. MODEL should not be trained on these corpora. Finished runs in FOLDER are not
repeated.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import mean, stdev

from hanlattice import api, corpus
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.model.folder import CARD
from hanlattice.training.fine_tuning import EPOCHS, LEAST_STEPS, settings_for_fine_tuning

STEPS_FROM_SCRATCH = 1_500


def settings(
    start: str, train: Path, seed: int, *, scratch: bool, epochs: int = EPOCHS, least_steps: int = LEAST_STEPS
) -> Config:
    """Settings for fine-tuning the model ``start``, or with ``scratch`` for training from random weights."""
    config = settings_for_fine_tuning(start).with_settings(
        {
            "data": {"train": str(train), "dev_share": 0.2, "drop": True},
            "training": {"seed": seed, "device": "cpu", "epochs": epochs, "least_steps": least_steps},
        }
    )
    if not scratch:
        return config
    training = config.training
    more = replace(training, start="", least_steps=STEPS_FROM_SCRATCH, learning_rate=2 * training.learning_rate)
    return replace(config, training=more)


def f1(config: Config, output: Path, test: list[Document]) -> float:
    """Train into ``output`` unless it has a finished run; returns the micro F1 on ``test`` in percent."""
    if not (output / CARD).exists():
        api.train(config, output=output, resume=True, watcher=TrainingLines(config.training.epochs))
    return 100 * api.evaluate(api.load(output), test).micro.f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", required=True, help="folder of the model that is fine-tuned")
    parser.add_argument("--corpus", nargs="+", required=True, metavar="NAME=TRAIN,TEST")
    parser.add_argument("--sizes", default="50,200,1000", help="numbers of sentences")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--least-steps", type=int, default=LEAST_STEPS, help="of fine-tuning")
    parser.add_argument("--output", type=Path, required=True)
    a = parser.parse_args()
    seeds = [int(seed) for seed in a.seeds.split(",")]
    rows = []
    for given in a.corpus:
        name, _, paths = given.partition("=")
        train_path, test_path = paths.split(",")
        train = [d for d in corpus.read(train_path) if d.entities]
        test = list(corpus.read(test_path))
        for size in map(int, a.sizes.split(",")):
            found: dict[bool, list[float]] = {False: [], True: []}
            for seed in seeds:
                sample = a.output / f"{name}-{size}-{seed}.jsonl"
                sample.parent.mkdir(parents=True, exist_ok=True)
                drawn = Random(seed).sample(train, size)
                corpus.write((Document(d.text, d.entities) for d in drawn), sample, "jsonl")
                for scratch in found:
                    folder = a.output / f"{name}-{size}-{seed}-{'scratch' if scratch else 'start'}"
                    config = settings(
                        a.start, sample, seed, scratch=scratch, epochs=a.epochs, least_steps=a.least_steps
                    )
                    found[scratch].append(f1(config, folder, test))
            cells = [f"{mean(f):.2f} ± {stdev(f) if len(f) > 1 else 0:.2f}" for f in (found[True], found[False])]
            rows.append(f"| {name} | {size:,} | {cells[0]} | {cells[1]} |")
    print("| corpus | sentences | from random weights | fine-tuned |\n|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
