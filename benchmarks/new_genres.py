"""Scores of a model on genres that it was not trained on.

    OPEN_CORPORA=… python benchmarks/new_genres.py --output FOLDER [--genres video,novel,…] [--folds 2]

Sentences of some genres of ``wild`` are left out of training. The model is then scored on them, with PER, LOC and
ORG in convention ``open``. There are two systems: ``wild alone``, without the gazetteer and other corpora, and
``all``, with the settings of the packaged model. ``--folds N`` divides the genres into N groups, each of which is
left out together; by default each genre is left out alone.

``all`` learns from no annotation of the genres that it is scored on. A corpus that contains sentences of a genre
(``video``, ``queries``, ``products``, ``novel``, ``resume``) is left out with the genre. So are the annotated
sentences from the files of raw text that contain the genre, and the corpora that were annotated by models trained
on all genres. A name that is annotated in the genre and nowhere else in ``wild`` is removed from the gazetteer,
even if the gazetteer has it from raw text. ``--share`` is the share of the other conventions that is read in an
epoch, relative to the packaged model: they cost most of the time, and these scores are of convention ``open``.
"""

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
# Other corpora that contain a genre than that of its name: some titles are sentences of ``novel``.
CORPORA_OF = {"ecommerce": {"products"}, "titles": {"novel"}}
ANNOTATED_BY_MODELS = {"silver", "silver_cluener", "silver_weibo", "silver_resume", "silver_msra"}
# The files of raw text that contain a genre, beside its corpora.
FILES_OF = {
    "ecommerce": {"fewclue_text.txt.xz"},
    "history": {"niutrans_modern.txt.xz"},
    "reviews": {"misc_reviews_social.txt.xz", "fewclue_text.txt.xz"},
    "titles": {"news_titles_finre_wiki_misc.txt.xz", "fewclue_text.txt.xz"},
}


def corpora_of(genres: Iterable[str]) -> set[str]:
    """The names of the corpora that contain sentences of these genres, and these genres."""
    return {*genres}.union(*(CORPORA_OF.get(genre, set()) for genre in genres))


def without(path: Path, genres: set[str], output: Path) -> list[Document]:
    """Write a corpus without the documents of some genres, and return these documents."""
    left_out = output.with_suffix(".out.jsonl")
    with path.open(encoding="utf-8") as lines, atomic_write(output) as kept, atomic_write(left_out) as others:
        for line in lines:
            (others if json.loads(line).get("genre") in genres else kept).write(line)
    return list(corpus.read(left_out))


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


def systems(
    config: Config, genres: list[str], output: Path, epochs: tuple[int, int], share: float
) -> dict[str, Config]:
    """The settings of both systems, without the corpora of the genres.

    Args:
        output: the folder with the corpora and the gazetteer from which the genres were removed
        epochs: of ``wild alone`` and of ``all``
        share: of the other conventions, relative to the packaged model
    """
    config = config.with_settings({"data": {"train": str(output / "open.jsonl")}})
    banned = corpora_of(genres) | ANNOTATED_BY_MODELS

    def kept(corpora: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, other in corpora.items():
            files = tuple(file for file in other.corpus if Path(file).stem not in banned)
            if name == "annotated":
                found[name] = replace(other, corpus=(str(output / "annotated.jsonl"),))
            elif name not in banned and files:
                found[name] = replace(other, corpus=files, share=share * other.share)
        return found

    everything = replace(
        config,
        conventions=kept(config.conventions),
        auxiliary=kept(config.auxiliary),
        lexicon=replace(config.lexicon, files=(str(output / "gazetteer.txt"),)),
    )
    alone = replace(config, conventions={}, auxiliary={}, lexicon=replace(config.lexicon, files=()))
    return {
        system: settings.with_settings({"training": {"epochs": number, "evaluate_from": number}})
        for system, settings, number in (("wild alone", alone, epochs[0]), ("all", everything, epochs[1]))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--genres", default=",".join(GENRES))
    parser.add_argument("--folds", type=int, default=0, help="number of groups of genres (0: each genre alone)")
    parser.add_argument("--epochs", type=int, nargs=2, default=(8, 3), help="of wild alone and of all")
    parser.add_argument("--share", type=float, default=0.25)
    a = parser.parse_args()
    genres = a.genres.split(",")
    folds = [genres[i :: a.folds] for i in range(a.folds)] if a.folds else [[genre] for genre in genres]
    a.output.mkdir(parents=True, exist_ok=True)
    corpora, config = Path(os.environ["OPEN_CORPORA"]), load_config(SETTINGS)
    found: dict[str, dict[str, float]] = {}
    for fold in folds:
        output = a.output / "-".join(fold)
        output.mkdir(exist_ok=True)
        scored = without(corpora / "open.jsonl", set(fold), output / "open.jsonl")
        sources = corpora_of(fold).union(*(FILES_OF.get(genre, set()) for genre in fold))
        without(corpora / "annotated.jsonl", sources, output / "annotated.jsonl")
        gazetteer_without(corpora / "gazetteer.txt", output / "open.jsonl", scored, output / "gazetteer.txt")
        for system, settings in systems(config, fold, output, tuple(a.epochs), a.share).items():
            folder = output / system.replace(" ", "-")
            if not (folder / CARD).exists():
                train(settings, folder, resume=True, watcher=TrainingLines(settings.training.epochs))
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
