"""Scores of a model on genres that it was not trained on.

    OPEN_CORPORA=… python benchmarks/new_genres.py --output FOLDER [--genres video,novel,…] [--folds 2]

Sentences of some genres of ``wild`` are left out of training. The model is then scored on them, with PER, LOC and
ORG in convention ``open``. The systems are a FLAT, a linear tagger, and the ensemble of both with the weight of the
packaged one. Each of them is trained twice:

- on ``wild`` alone, without the gazetteer and other corpora;
- on ``all``, with the settings of the packaged models. The linear tagger has no other conventions here, and reads
  no raw text that models annotated.

``--folds N`` divides the genres into N groups, each of which is left out together; by default each genre is left
out alone.

No system learns from annotation of the genres that it is scored on. A corpus that contains sentences of a genre
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

import hanlattice
from hanlattice import corpus
from hanlattice.api import run_training
from hanlattice.atomic import atomic_write
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config
from hanlattice.config.settings import Config
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.model.folder import CARD, ModelFolder
from hanlattice.pipeline import NER
from hanlattice.text.normalise import Normaliser
from open_text import THREE, score

PAPERS = Path(__file__).parents[1] / "src/hanlattice/papers"
FLAT, LINEAR = PAPERS / "hanlattice/open.toml", PAPERS / "linear/open.toml"
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
    normaliser = Normaliser.of(load_config(FLAT).text)
    kept, only_here = (
        {normaliser(entity.text).text for document in documents for entity in document.entities}
        for documents in (corpus.read(train_path), left_out)
    )
    only_here -= kept
    with gazetteer.open(encoding="utf-8") as lines, atomic_write(output) as stream:
        stream.writelines(line for line in lines if line.partition("\t")[0] not in only_here)
    return output


def systems(genres: list[str], output: Path, epochs: tuple[int, int], share: float) -> dict[str, Config]:
    """The settings of FLAT and of the linear tagger, on ``wild`` and on ``all``, without the corpora of the genres.

    Args:
        output: the folder with the corpora and the gazetteer from which the genres were removed
        epochs: of FLAT on ``wild`` alone, and on ``all``
        share: of the other conventions, relative to the packaged model
    """
    banned = corpora_of(genres) | ANNOTATED_BY_MODELS
    flat, linear = (load_config(path).with_settings(_files(output)) for path in (FLAT, LINEAR))

    def kept(corpora: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, other in corpora.items():
            files = tuple(file for file in other.corpus if Path(file).stem not in banned)
            if name not in banned and files:
                found[name] = (
                    other if name == "annotated" else replace(other, corpus=files, share=share * other.share)
                )
        return found

    def trained(config: Config, epochs: int) -> Config:
        return config.with_settings({"training": {"epochs": epochs, "evaluate_from": epochs}})

    def alone(config: Config) -> Config:
        return replace(config, conventions={}, auxiliary={}, lexicon=replace(config.lexicon, files=()))

    everything = replace(flat, conventions=kept(flat.conventions), auxiliary=kept(flat.auxiliary))
    return {
        "FLAT, wild": trained(alone(flat), epochs[0]),
        "linear, wild": alone(linear),
        "FLAT, all": trained(everything, epochs[1]),
        "linear, all": replace(linear, conventions={}, auxiliary={"annotated": linear.auxiliary["annotated"]}),
    }


def _files(folder: Path) -> dict[str, Any]:
    """Settings that name the files of a folder."""
    return {
        "data": {"train": str(folder / "open.jsonl")},
        "auxiliary": {"annotated": {"corpus": str(folder / "annotated.jsonl")}},
        "lexicon": {"files": [str(folder / "gazetteer.txt")]},
    }


def models(genres: list[str], output: Path, epochs: tuple[int, int], share: float) -> dict[str, NER]:
    """All systems, trained without the genres; models that were trained before are loaded."""
    found = {}
    for system, settings in systems(genres, output, epochs, share).items():
        folder = output / system.replace(", ", "-")
        is_linear = settings.encoder.name == "linear"
        if not (folder / CARD).exists():
            watcher = TrainingLines(settings.training.epochs)
            run_training(settings, folder, resume=not is_linear, watcher=watcher)  # a linear tagger takes minutes
        found[system] = hanlattice.load(folder)
        if is_linear:
            corpora = system.removeprefix("linear, ")
            found[f"ensemble, {corpora}"] = ensemble(output / f"FLAT-{corpora}", folder)
    return found


def ensemble(flat: Path, linear: Path) -> NER:
    """The ensemble of a FLAT and a linear tagger, whose folders are side by side."""
    settings = EnsembleSettings(
        f"../{linear.name}", EnsembleSettings.of(ModelFolder.open()).weight, temperature=1.0
    )
    return Ensemble.open(ModelFolder.open(flat), hanlattice.load(flat, engine="native").engine, settings=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--genres", default=",".join(GENRES))
    parser.add_argument("--folds", type=int, default=0, help="number of groups of genres (0: each genre alone)")
    parser.add_argument("--epochs", type=int, nargs=2, default=(8, 3), help="of FLAT on wild alone and on all")
    parser.add_argument("--share", type=float, default=0.25)
    a = parser.parse_args()
    genres = a.genres.split(",")
    folds = [genres[i :: a.folds] for i in range(a.folds)] if a.folds else [[genre] for genre in genres]
    a.output.mkdir(parents=True, exist_ok=True)
    corpora = Path(os.environ["OPEN_CORPORA"])
    found: dict[str, dict[str, float]] = {}
    for fold in folds:
        output = a.output / "-".join(fold)
        output.mkdir(exist_ok=True)
        scored = without(corpora / "open.jsonl", set(fold), output / "open.jsonl")
        sources = corpora_of(fold).union(*(FILES_OF.get(genre, set()) for genre in fold))
        without(corpora / "annotated.jsonl", sources, output / "annotated.jsonl")
        gazetteer_without(corpora / "gazetteer.txt", output / "open.jsonl", scored, output / "gazetteer.txt")
        for system, ner in models(fold, output, tuple(a.epochs), a.share).items():
            for genre in fold:
                documents = [d for d in scored if d.meta.get("genre") == genre]
                found.setdefault(genre, {})[system] = 100 * score(ner, documents, THREE, THREE).micro.f1
    names = list(next(iter(found.values())))
    print(f"| genre | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for genre, row in found.items():
        print(f"| {genre} | {' | '.join(f'{row[name]:.2f}' for name in names)} |")
    means = [sum(row[name] for row in found.values()) / len(found) for name in names]
    cells = [f"{means[0]:.2f}", *(f"{mean:.2f} ({mean - means[0]:+.2f})" for mean in means[1:])]
    print(f"| mean | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
