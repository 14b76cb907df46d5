"""The training data of the packaged models: corpora, a gazetteer, and raw text that teachers annotate.

HANLATTICE_DATA is a folder with the corpora under ``labelled``, word lists under ``lexicons``, raw text under
``rawtext``, and ``held_out.py``, which decides whether a text is held out (see gazetteer.py).

:func:`prepare` makes everything in a working folder; a step is skipped if its result exists:

1. ``corpora``: open_corpora.py prepares the annotated corpora.
2. ``first``: FLAT without a gazetteer finds names in raw text, ``names.txt``. ``second`` is trained with these
   names and finds more of them, ``gazetteer.txt``, which ``annotations/names.tsv`` joins.
3. ``teacher``: FLAT over a pretrained body, trained with this gazetteer.
4. ``lite-first``: a linear tagger that learns from raw text that the teacher annotated, ``by_teacher.jsonl``.
5. The ensemble of both annotates more raw text, ``by_ensemble.jsonl``.
6. ``corpora/gazetteer.txt``: the final gazetteer, from the names in these annotations.
7. ``corpora/annotated_names.txt``: names of annotated sentences, also those that occur once, and
   ``corpora/news1998_names.txt``: persons of the People's Daily of 1998. They join the lexicon when a model is
   packed (:func:`with_annotated_names`).
8. ``corpora/silver.jsonl`` and ``corpora/lite.jsonl``: parts of these annotations, for the packaged models.
9. ``specialist-weibo`` and so on: FLATs for some other conventions, each trained on its corpus alone. They annotate
   raw text in these conventions, ``corpora/silver_weibo.jsonl`` and so on.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import hanlattice
from hanlattice import corpus
from hanlattice.api import run_training
from hanlattice.atomic import atomic_write
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config, save_config
from hanlattice.config.settings import Config
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.kernels.library import supports_int8
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import CARD, LEXICON, ModelFolder, save_lexicon
from hanlattice.pipeline import NER
from hanlattice.training import train
from hanlattice.training.distillation import annotate, raw_sentences
from left_out import left_out

ROOT = Path(__file__).parents[1]
PAPERS = Path(str(files("hanlattice").joinpath("papers")))
FIRST_EPOCHS, TEACHER_EPOCHS = 5, 8
TEACHER_RATE = 2e-3
LISTS = ("admin_divisions.txt=LOC", "THUOCL_diming.txt=LOC:3", "THUOCL_lishimingren.txt=PER")
NAMES = ROOT / "annotations" / "names.tsv"
ANNOTATED_NAMES, NEWS_NAMES = "annotated_names.txt", "news1998_names.txt"
LONGEST_NAME = 6  # characters; longer names of annotated sentences seldom occur again, and need much space
# Characters of each file of raw text that are read.
BY_FIRST, BY_SECOND, BY_TEACHER, BY_ENSEMBLE = 4_000_000, 10_000_000, 3_000_000, 10_000_000
SHARE = 0.3  # of the teacher's sentences that the first linear tagger reads in each epoch
WEIGHT = 0.5  # of the linear tagger in the ensemble
LEAST_SCORE = 0.5  # sentences with a less certain entity are left out
EACH_SILVER, EACH_LITE = 10, 2  # every tenth sentence for FLAT, every second one for the linear tagger
BY_SPECIALIST = 1_000_000  # characters of each file of raw text that a specialist reads


class Specialist(NamedTuple):
    """A model of one convention, and the sentences that it annotates.

    Attributes:
        epochs: of its training.
        n_sentences: number of sentences that are kept.
        n_entities: the least number of entities in each: raw text is unlike the corpus, such as curricula vitae.
    """

    epochs: int
    n_sentences: int
    n_entities: int = 1


SPECIALISTS = {
    "msra": Specialist(5, 20_000),  # for the lite model alone
    "cluener": Specialist(8, 20_000),
    "weibo": Specialist(20, 10_000),
    "resume": Specialist(12, 8_000, 3),
}


def run(*command: object) -> None:
    """Print and run a command.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT)


def output_of(command: Sequence[str | Path]) -> str:
    """What a command prints to standard output.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    return subprocess.run(list(map(str, command)), check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def in_processes(processes: int, *command: object) -> None:
    """Run a command of hanlattice in several processes that train together.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    together = ("torch.distributed.run", "--nproc-per-node", processes, "-m") if processes > 1 else ()
    run(sys.executable, "-m", *together, "hanlattice", *command)


def trained(config: Config, output: Path, processes: int) -> Path:
    """Train a model with several processes, and return the folder of the run. A run that was stopped is resumed."""
    settings = output.with_suffix(".toml")
    save_config(config, settings)
    if not (output / CARD).exists():
        in_processes(processes, "train", settings, "--output", output, "--resume")
    return output


def corpora_in(work: Path, without: Sequence[str] = ()) -> Path:
    """The folder of the prepared corpora; prepares them if needed, and sets OPEN_CORPORA."""
    folder = work / "corpora"
    os.environ["OPEN_CORPORA"] = str(folder)
    if not (folder / "words.jsonl").exists():
        left_out = ("--without", *without) if without else ()
        run(sys.executable, "scripts/open_corpora.py", "--output", folder, *left_out)
    return folder


def settings_without(settings: Path, without: Sequence[str]) -> Config:
    """The settings of a model, without some corpora."""
    config = load_config(settings)
    conventions = {name: c for name, c in config.conventions.items() if name not in without}
    auxiliary = {name: c for name, c in config.auxiliary.items() if name not in without}
    return replace(config, conventions=conventions, auxiliary=auxiliary)


def of_open(settings: Path, auxiliary: Sequence[str], lexicon: Path | None) -> Config:
    """The settings of a model with the convention ``open`` alone.

    Args:
        settings: those of a packaged model
        auxiliary: the auxiliary corpora that are kept
        lexicon: a file with words of the lexicon; None for the words of the vectors alone
    """
    config = load_config(settings)
    kept = {name: c for name, c in config.auxiliary.items() if name in auxiliary}
    files = () if lexicon is None else (str(lexicon),)
    return replace(config, conventions={}, auxiliary=kept, lexicon=replace(config.lexicon, files=files))


def flat_alone(output: Path, lexicon: Path | None) -> Path:
    """Train a FLAT without a pretrained body that finds names in raw text, and return its folder."""
    settings = {
        "data": {"noise": 0.0, "user_words": 0.0},
        "training": {"epochs": FIRST_EPOCHS, "batch_size": 16, "learning_rate": 1.5e-3},
    }
    config = of_open(PAPERS / "hanlattice" / "open.toml", (), lexicon).with_settings(settings)
    if not (output / CARD).exists():
        train(config, output, resume=True, watcher=TrainingLines(FIRST_EPOCHS))
    return output


def gazetteer(output: Path, model: Path, corpora: Path, characters: int, annotated: Sequence[Path] = ()) -> Path:
    """Build a gazetteer from names of raw text, of the corpora and of the word lists.

    Args:
        output: the new file
        model: annotates raw text
        corpora: the folder of the corpora
        characters: so many characters of each file of raw text are annotated
        annotated: raw text that was annotated before, used instead if it is given
    """
    data = Path(os.environ["HANLATTICE_DATA"])
    texts = () if annotated else sorted((data / "rawtext").glob("*.xz"))
    if not output.exists():
        run(
            *(sys.executable, "scripts/gazetteer.py", *texts, "--model", model),
            *("--corpus", corpora / "open.jsonl", corpora / "names.jsonl", *annotated),
            *("--list", *(f"{data}/lexicons/{name}" for name in LISTS), "--names", NAMES),
            *("--held-out", data / "held_out.py", "--aside", corpora / "aside.jsonl"),
            *("--characters", str(characters), "--output", output),
        )
    return output


def annotated_names(model: Path, corpora: Path, by_ensemble: Path) -> None:
    """Collect the names of annotated sentences, and the persons of the People's Daily.

    Of the People's Daily only persons are taken, which all conventions annotate alike, and no words that the model
    knows without a label: such as 乐天, which is most often a company.

    Args:
        model: its normalisation is used
        corpora: the folder of the corpora
        by_ensemble: raw text that was annotated; words that are hardly ever a name in it are left out
    """
    names, news = corpora / ANNOTATED_NAMES, corpora / NEWS_NAMES
    if not names.exists():
        names_of(names, model, [corpora / "open.jsonl", corpora / "annotated.jsonl"], by_ensemble)
    if not news.exists() and not (corpora / "news1998.jsonl").exists():  # it was left out
        save_lexicon(Lexicon(), news)
    elif not news.exists():
        every, known = news.with_suffix(".all.txt"), Lexicon.open(model / LEXICON)
        names_of(every, model, [corpora / "news1998.jsonl"], by_ensemble)
        found = Lexicon.open(every).entries()
        save_lexicon(Lexicon(entry for entry in found if entry.label == "PER" and entry.text not in known), news)
        every.unlink()


def names_of(output: Path, model: Path, annotated: Sequence[Path], by_ensemble: Path) -> None:
    """Write the names of annotated corpora, also those that occur once: see :func:`annotated_names`."""
    run(
        *(sys.executable, "scripts/gazetteer.py", "--model", model, "--least", "1"),
        *("--corpus", *annotated, "--check", by_ensemble, "--output", output),
    )


def with_annotated_names(lexicon: Lexicon, corpora: Path) -> Lexicon:
    """A lexicon with the names of annotated sentences that have no label in it, up to `LONGEST_NAME` characters.

    A model is not trained with them. A name that is in the lexicon only because this very sentence was annotated
    would teach it that the lexicon has every name.
    """
    labelled = {entry.text for entry in lexicon.entries() if entry.label}
    more = Lexicon(lexicon.entries())
    for name in (NEWS_NAMES, ANNOTATED_NAMES):
        found = Lexicon.open(corpora / name).entries()
        more.update(entry for entry in found if len(entry.text) <= LONGEST_NAME and entry.text not in labelled)
    return more


def annotated(output: Path, teacher: NER, corpora: Path, characters: int) -> Path:
    """Let a model annotate sentences of raw text, and return the new file.

    Args:
        output: the new file
        teacher: the model
        corpora: the folder of the corpora; texts of ``aside.jsonl`` are left out
        characters: so many characters of each file of raw text are read
    """
    data = Path(os.environ["HANLATTICE_DATA"])
    is_left_out = left_out(data / "held_out.py", [corpora / "aside.jsonl"])
    texts = raw_sentences(sorted((data / "rawtext").glob("*.xz")), characters, is_left_out)
    print(annotate([teacher], texts, output, min_score=LEAST_SCORE), flush=True)
    return output


def opened(folder: Path) -> NER:
    """A FLAT by the C kernels, as fast as this machine can run it."""
    return hanlattice.load(folder, engine="native", int8=supports_int8())


def ensemble(flat: Path, linear: Path) -> NER:
    """The ensemble of a FLAT and a linear tagger."""
    folder = ModelFolder.open(flat)
    second = os.path.relpath(linear, folder.path)
    return Ensemble.open(folder, opened(flat).engine, settings=EnsembleSettings(second, WEIGHT, 1.0))


def of_first_lite(silver: Path, lexicon: Path) -> Config:
    """The settings of the linear tagger of the ensemble that annotates raw text."""
    config = of_open(PAPERS / "linear" / "open.toml", ("annotated", "silver"), lexicon)
    return config.with_settings({"auxiliary": {"silver": {"corpus": str(silver), "share": SHARE}}})


def first_lite(output: Path, silver: Path, lexicon: Path) -> Path:
    """Train a linear tagger from the teacher's annotations, and return its folder."""
    config = of_first_lite(silver, lexicon)
    if not (output / CARD).exists():
        run_training(config, output, watcher=TrainingLines(config.training.epochs))
    return output


def of_convention(convention: str, corpora: Path, epochs: int) -> Config:
    """The settings of a FLAT that learns one convention from its corpus alone. Dev is a twentieth of the corpus."""
    config = replace(load_config(PAPERS / "hanlattice" / "open.toml"), conventions={}, auxiliary={})
    data = {
        "convention": convention,
        "train": [str(corpora / f"{convention}.jsonl")],
        "dev": "",
        "dev_share": 0.05,
        "unpunctuated": 0.0,
        "noise": 0.0,
        "user_words": 0.0,
    }
    training = {"epochs": epochs, "batch_size": 16, "evaluate_from": epochs // 2}
    return config.with_settings({"data": data, "training": training})


def specialised(output: Path, convention: str, corpora: Path, epochs: int) -> Path:
    """Train a FLAT for one convention, and return its folder."""
    if not (output / CARD).exists():
        train(of_convention(convention, corpora, epochs), output, resume=True, watcher=TrainingLines(epochs))
    return output


def in_convention(output: Path, teacher: NER, corpora: Path, specialist: Specialist) -> Path:
    """Let a model annotate sentences of raw text in its own convention, and return the new file.

    Args:
        output: the new file
        teacher: the model
        corpora: the folder of the corpora; texts of ``aside.jsonl`` are left out
        specialist: which sentences are kept, evenly from all
    """
    every = annotated(output.with_suffix(".all.jsonl"), teacher, corpora, BY_SPECIALIST)
    kept = [document for document in corpus.read(every) if len(document.entities) >= specialist.n_entities]
    step = max(len(kept) / specialist.n_sentences, 1)
    corpus.write((kept[int(i * step)] for i in range(int(len(kept) / step))), output, "jsonl")
    every.unlink()
    return output


def prepare(work: Path, body: Path, processes: int, without: Sequence[str] = ()) -> Path:
    """Make all training data of the packaged models, and return the folder of the corpora.

    Args:
        work: the working folder
        body: the folder of the teacher's pretrained body
        processes: number of processes that train the teacher
        without: corpora to leave out
    """
    corpora = corpora_in(work, without)
    first = flat_alone(work / "first", None)
    names = gazetteer(work / "names.txt", first, corpora, BY_FIRST)
    second = flat_alone(work / "second", names)
    found = gazetteer(work / "gazetteer.txt", second, corpora, BY_SECOND)
    os.environ["OPEN_BODY"] = str(body)
    settings = of_open(PAPERS / "hanlattice" / "large.toml", ("annotated",), found)
    alone = {"start": "", "epochs": TEACHER_EPOCHS, "learning_rate": TEACHER_RATE, "evaluate_from": 3}
    teacher = trained(settings.with_settings({"training": alone}), work / "teacher", processes)
    by_teacher, by_ensemble = work / "by_teacher.jsonl", work / "by_ensemble.jsonl"
    if not by_teacher.exists():
        annotated(by_teacher, opened(teacher), corpora, BY_TEACHER)
    lite = first_lite(work / "lite-first", by_teacher, found)
    if not by_ensemble.exists():
        annotated(by_ensemble, ensemble(teacher, lite), corpora, BY_ENSEMBLE)
    gazetteer(corpora / "gazetteer.txt", teacher, corpora, 0, [by_ensemble])
    annotated_names(teacher, corpora, by_ensemble)
    for name, each in (("silver.jsonl", EACH_SILVER), ("lite.jsonl", EACH_LITE)):
        with by_ensemble.open(encoding="utf-8") as lines, atomic_write(corpora / name) as stream:
            stream.writelines(islice(lines, 0, None, each))
    for name, specialist in SPECIALISTS.items():
        output = corpora / f"silver_{name}.jsonl"
        if name not in without and not output.exists():
            model = specialised(work / f"specialist-{name}", name, corpora, specialist.epochs)
            in_convention(output, opened(model), corpora, specialist)
    return corpora
