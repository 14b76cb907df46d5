"""Scores of a model on genres that it was not trained on.

    OPEN_CORPORA=… python benchmarks/new_genres.py --output FOLDER [--genres video,novel,…] [--folds 2]

Sentences of some genres of ``wild`` are left out of training. The model is then scored on them, with PER, LOC and
ORG in convention ``open``. There are two systems: ``wild alone``, without the gazetteer and other corpora, and
``all``, with the settings of the packaged model. ``--folds N`` divides the genres into N groups, each of which is
left out together; by default each genre is left out alone.

``all`` knows nothing from the sentences that it is scored on. A corpus that contains the sentences of a genre
(``video``, ``queries``, ``products``, ``novel``, ``resume``) is left out with the genre. So are the corpora that
have sentences of all genres, or that were annotated by models trained on all genres. A name that is annotated in
the genre and nowhere else in ``wild`` is removed from the gazetteer, even if the gazetteer has it from raw text.
"""

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path

from hanlattice import corpus
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.files import atomic_write
from hanlattice.model import weights
from hanlattice.model.folder import CARD
from hanlattice.text.normalise import Normaliser
from hanlattice.training import train
from open_text import THREE, score

SETTINGS = Path(__file__).parents[1] / "src/hanlattice/papers/hanlattice/open.toml"
GENRES = ("video", "novel", "queries", "ecommerce", "resume", "history", "reviews", "titles")
CORPUS_OF = {"ecommerce": "products"}
OF_ALL_GENRES = {"annotated", "silver"}


def without(corpora: Path, genres: list[str], output: Path) -> tuple[Path, list[Document]]:
    """Write the corpus of convention ``open`` without some genres.

    Returns:
        the new file, and the documents of the genres that were left out
    """
    left_out = []
    with (corpora / "open.jsonl").open(encoding="utf-8") as lines, output.open("w", encoding="utf-8") as kept:
        for line in lines:
            row = json.loads(line)
            if row.get("genre") in genres:
                left_out.append(line)
            else:
                kept.write(line)
    scored = output.with_suffix(".out.jsonl")
    scored.write_text("".join(left_out), encoding="utf-8")
    return output, list(corpus.read(scored))


def gazetteer_without(gazetteer: Path, train_path: Path, left_out: list[Document], output: Path) -> Path:
    """Write the gazetteer without names that only the left-out documents show."""
    normaliser = Normaliser.of(load_config(SETTINGS).text)
    kept, only_here = (
        {normaliser(entity.text).text for document in documents for entity in document.entities}
        for documents in (corpus.read(train_path), left_out)
    )
    only_here -= kept
    with gazetteer.open(encoding="utf-8") as lines, atomic_write(output) as stream:
        stream.writelines(line for line in lines if line.partition("\t")[0] not in only_here)
    return output


def systems(config: Config, train_path: Path, gazetteer: Path, genres: list[str], epochs: int) -> dict[str, Config]:
    """The settings of both systems, without the corpora of the genres."""
    config = config.with_settings({"data": {"train": str(train_path)}, "training": {"epochs": epochs}})
    banned = {CORPUS_OF.get(genre, genre) for genre in genres} | OF_ALL_GENRES
    everything = replace(
        config,
        conventions={k: v for k, v in config.conventions.items() if k not in banned},
        auxiliary={k: v for k, v in config.auxiliary.items() if k not in banned},
        lexicon=replace(config.lexicon, files=(str(gazetteer),)),
    )
    alone = replace(config, conventions={}, auxiliary={}, lexicon=replace(config.lexicon, files=()))
    return {"wild alone": alone, "all": everything}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--genres", default=",".join(GENRES))
    parser.add_argument("--folds", type=int, default=0, help="number of groups of genres (0: each genre alone)")
    parser.add_argument("--epochs", type=int, default=5)
    a = parser.parse_args()
    genres = a.genres.split(",")
    folds = [genres[i :: a.folds] for i in range(a.folds)] if a.folds else [[genre] for genre in genres]
    a.output.mkdir(parents=True, exist_ok=True)
    corpora, config = Path(os.environ["OPEN_CORPORA"]), load_config(SETTINGS)
    found: dict[str, dict[str, float]] = {}
    for fold in folds:
        name = "-".join(fold)
        train_path, scored = without(corpora, fold, a.output / f"{name}.jsonl")
        gazetteer = gazetteer_without(
            corpora / "gazetteer.txt", train_path, scored, a.output / f"{name}.gazetteer.txt"
        )
        for system, settings in systems(config, train_path, gazetteer, fold, a.epochs).items():
            folder = a.output / f"{name}-{system.replace(' ', '-')}"
            if not (folder / CARD).exists():
                train(settings, folder, resume=True, watcher=TrainingLines(a.epochs))
            ner = weights.load_model(folder)
            for genre in fold:
                documents = [d for d in scored if d.meta.get("genre") == genre]
                found.setdefault(genre, {})[system] = 100 * score(ner, documents, THREE, THREE).micro.f1
    print("| genre | wild alone | all |\n|---|---|---|")
    for genre, row in found.items():
        print(f"| {genre} | {row['wild alone']:.2f} | {row['all']:.2f} |")
    means = [sum(row[s] for row in found.values()) / len(found) for s in ("wild alone", "all")]
    print(f"| mean | {means[0]:.2f} | {means[1]:.2f} ({means[1] - means[0]:+.2f}) |")


if __name__ == "__main__":
    main()
