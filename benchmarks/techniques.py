"""Screens training techniques: the same settings with and without each of them, scored on dev.

    HANLATTICE_DATA=… python benchmarks/techniques.py --output FOLDER [--settings FILE] [--techniques fgm,r_drop,…]
        [--corpora wild,weibo] [--epochs 50] [--seeds 1] [--jobs 2] [--speed]

Each corpus has one table, which ``hanlattice compare`` makes: the baseline is the settings without a technique.
Test corpora are not read. Dev is scored in their place, so that the table has the significance of a difference;
as the epoch is chosen on the same corpus, these scores only rank techniques. The same command resumes a stopped
screening; finished runs are not repeated. docs/training.md describes the techniques.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hanlattice.cli.config_options import preset
from hanlattice.config.files import load_config, save_config
from hanlattice.config.settings import Config
from hanlattice.config.values import suggestion
from hanlattice.errors import ConfigError, HanlatticeError

LABELLED = "$HANLATTICE_DATA/labelled"
CORPORA = {
    "wild": (f"{LABELLED}/wild/train.jsonl", f"{LABELLED}/wild/dev.jsonl"),
    "weibo": (f"{LABELLED}/weibo/weiboNER_2nd_conll.train", f"{LABELLED}/weibo/weiboNER_2nd_conll.dev"),
}
BASELINE = "none"
TECHNIQUES: dict[str, dict[str, dict[str, Any]]] = {
    "fgm": {"training": {"fgm": 0.5}},
    "fgm_tables": {"training": {"fgm": 0.5, "fgm_on": "tables"}},
    "r_drop": {"training": {"r_drop": 1.0}},
    "samples": {"training": {"dropout_samples": 4, "sample_dropout": 0.3}},
    "names": {"data": {"replaced_names": 0.3}},
    "joined": {"data": {"joined": 0.3}},
    "joined_random": {"data": {"joined": 0.3, "joined_with": "random"}},
    "curriculum": {"training": {"curriculum": 5}},
}


def systems(base: Config, names: list[str], corpus: str, epochs: int) -> dict[str, Config]:
    """The settings without a technique, and those with each of the named ones, on a corpus.

    Raises:
        ConfigError: there is no such technique or corpus.
    """
    if corpus not in CORPORA:
        raise ConfigError(f"there is no corpus {corpus!r}{suggestion(corpus, CORPORA)}")
    train, dev = CORPORA[corpus]
    shared: dict[str, Mapping[str, Any]] = {"data": {"train": train, "dev": dev, "test": dev}}
    if epochs:
        shared["training"] = {"epochs": epochs}
    start = base.with_settings(shared)
    found = {BASELINE: start}
    for name in names:
        if name not in TECHNIQUES:
            raise ConfigError(f"there is no technique {name!r}{suggestion(name, TECHNIQUES)}")
        found[name] = start.with_settings(TECHNIQUES[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="folder of all runs")
    parser.add_argument("--settings", default="hanlattice/weibo", help="a settings file, or one of the package")
    parser.add_argument("--techniques", default=",".join(TECHNIQUES), help=", ".join(TECHNIQUES))
    parser.add_argument("--corpora", default=",".join(CORPORA), help=", ".join(CORPORA))
    parser.add_argument("--epochs", type=int, default=0, help="0 for those of the settings")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--jobs", type=int, default=1, help="parallel runs")
    parser.add_argument("--speed", action="store_true", help="also measure the cost of each technique")
    a = parser.parse_args()
    if "HANLATTICE_DATA" not in os.environ:
        sys.exit("error: set HANLATTICE_DATA to the folder of the corpora")
    options = [f"--seeds={a.seeds}", f"--jobs={a.jobs}", "--speed" if a.speed else "--no-speed", "--format=md"]
    status = 0
    try:
        base = load_config(a.settings if Path(a.settings).is_file() else preset(a.settings))
        chosen = {name: systems(base, a.techniques.split(","), name, a.epochs) for name in a.corpora.split(",")}
    except HanlatticeError as error:
        sys.exit(f"error: {error}")
    for corpus, configs in chosen.items():
        runs = a.output / corpus
        files = {name: runs / "settings" / f"{name}.toml" for name in configs}
        (runs / "settings").mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            save_config(configs[name], path)
        print(f"\n{corpus} dev\n", flush=True)
        command = [sys.executable, "-m", "hanlattice", "compare", *map(str, files.values())]
        status |= subprocess.run([*command, "--output", str(runs), *options], check=False).returncode
    sys.exit(status)


if __name__ == "__main__":
    main()
