"""What pretraining brings: FLAT on open text without a body, with one of random weights, and with pretrained ones.

    HANLATTICE_DATA=… python benchmarks/pretraining.py --corpora FOLDER --output FOLDER BODY [BODY …]
        [--sentences 12800] [--epochs 6] [--rate 0.2] [--seeds 1] [--jobs 2]

BODY is a folder that `hanlattice pretrain` has written. ``--corpora`` is the folder with the output of
scripts/open_corpora.py and scripts/gazetteer.py, such as ``runs/default/corpora``. All models learn from the same
sentences of wild train, in the convention ``open`` alone, with the settings of the packaged model. The best epoch
is chosen on wild dev, and the score is on the sentences kept aside, which are from the same ten genres. The same
command resumes a stopped comparison; finished runs are not repeated.
"""

import argparse
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from hanlattice.cli.config_options import preset
from hanlattice.config.files import load_config, save_config
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.embeddings.body_folder import random_body
from hanlattice.errors import HanlatticeError

SHUFFLE = 5  # seed by which the sentences are chosen
NONE, RANDOM = "none", "random"


def sampled(corpus: Path, path: Path, n: int) -> None:
    """Write ``n`` lines of a corpus, drawn by a fixed seed."""
    lines = corpus.read_text(encoding="utf-8").splitlines()
    random.Random(SHUFFLE).shuffle(lines)
    path.write_text("\n".join(lines[:n]) + "\n", encoding="utf-8")


def systems(base: Config, bodies: dict[str, Path], rate: float) -> dict[str, Config]:
    """The settings without a body, and those with each of the ``bodies``."""
    found = {NONE: base}
    for name, folder in bodies.items():
        own = {"name": "own", "path": str(folder.resolve()), "mode": "tuned", "bigrams": True}
        plain = replace(base, embedding=Part("own"))
        found[name] = plain.with_settings({"embedding": own, "training": {"pretrained_rate": rate}})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bodies", type=Path, nargs="+", metavar="BODY")
    parser.add_argument(
        "--corpora", type=Path, required=True, help="folder of open.jsonl, aside.jsonl, gazetteer.txt"
    )
    parser.add_argument("--output", type=Path, required=True, help="folder of all runs")
    parser.add_argument("--sentences", type=int, default=12_800)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument(
        "--rate", type=float, default=0.2, help="learning rate of the body, as a share of the other"
    )
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--jobs", type=int, default=1, help="parallel runs")
    a = parser.parse_args()
    os.environ["OPEN_CORPORA"] = str(a.corpora.resolve())
    a.output.mkdir(parents=True, exist_ok=True)
    train = a.output / f"train-{a.sentences}.jsonl"
    try:
        sampled(a.corpora / "open.jsonl", train, a.sentences)
        random_body(a.bodies[0], a.output / RANDOM)
        base = replace(load_config(preset("hanlattice/open")), conventions={}, auxiliary={}).with_settings(
            {
                "data": {"train": str(train.resolve()), "test": str((a.corpora / "aside.jsonl").resolve())},
                "training": {"epochs": a.epochs, "evaluate_from": max(1, a.epochs // 2)},
            }
        )
        names = [NONE, RANDOM, *(body.name for body in a.bodies)]
        if len(set(names)) < len(names):
            sys.exit(f"error: the bodies need different names, other than {NONE} and {RANDOM}")
        chosen = systems(base, {RANDOM: a.output / RANDOM, **{body.name: body for body in a.bodies}}, a.rate)
    except (HanlatticeError, OSError) as error:
        sys.exit(f"error: {error}")
    files = []
    for name, config in chosen.items():
        files.append(a.output / f"{name}.toml")
        save_config(config, files[-1])
    options = [f"--seeds={a.seeds}", f"--jobs={a.jobs}", "--no-speed", "--format=md"]
    command = [sys.executable, "-m", "hanlattice", "compare", *map(str, files)]
    sys.exit(subprocess.run([*command, "--output", str(a.output / "runs"), *options], check=False).returncode)


if __name__ == "__main__":
    if "HANLATTICE_DATA" not in os.environ:
        sys.exit("error: set HANLATTICE_DATA to the folder of the corpora")
    main()
