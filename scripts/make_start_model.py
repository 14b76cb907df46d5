"""Make a model like the packaged one from the annotated corpora alone, without some of them.

    HANLATTICE_DATA=… python scripts/make_start_model.py --without products cluener resume --work runs/start

benchmarks/fine_tuning.py starts from it: fine-tuning on a corpus that the model already learned would show nothing.
The settings are papers/hanlattice/open.toml without the raw text that other models annotated, and with fewer
epochs. The gazetteer has names of the remaining corpora and of word lists. The model is in the folder ``run`` of
``--work``; a run that was stopped is resumed. ``scripts/make_default_model.py --without`` makes one with raw text
too, in many hours.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from hanlattice.cli.progress import TrainingLines
from hanlattice.config.settings import Config
from hanlattice.model.folder import CARD, DEFAULT
from hanlattice.training import train
from make_default_model import settings_of
from training_data import corpora_in, gazetteer

SILVER = "silver"  # the name of raw text that other models annotated


def of_annotated_corpora(config: Config) -> Config:
    """The settings without raw text that other models annotated."""
    conventions = {
        name: replace(c, corpus=tuple(path for path in c.corpus if SILVER not in path))
        for name, c in config.conventions.items()
    }
    auxiliary = {name: c for name, c in config.auxiliary.items() if name != SILVER}
    return replace(config, conventions=conventions, auxiliary=auxiliary)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", nargs="+", required=True, metavar="NAME", help="corpora to leave out")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--work", type=Path, default=Path("runs/start"), help="working folder")
    a = parser.parse_args()
    work = a.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    corpora = corpora_in(work, a.without)
    gazetteer(corpora / "gazetteer.txt", DEFAULT, corpora, 0, [corpora / "annotated.jsonl"])
    config = of_annotated_corpora(settings_of("open", a.without))
    config = config.with_settings({"training": {"epochs": a.epochs, "evaluate_from": a.epochs}})
    if not (work / "run" / CARD).exists():
        train(config, work / "run", resume=True, watcher=TrainingLines(a.epochs))


if __name__ == "__main__":
    main()
