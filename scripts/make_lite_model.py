"""Make the packaged lite model, a linear tagger, from the corpora of the packaged model.

    HANLATTICE_DATA=… python scripts/make_lite_model.py [--work runs/default] [--calibrate-only]

``HANLATTICE_DATA`` is the folder that scripts/make_default_model.py describes; run that script first. A first model
learns from the annotated corpora and the silver annotations of the packaged model. An ensemble of the packaged
model and this first model annotates more raw text, from which the lite model learns. The settings are those of
papers/linear/open.toml. ``--calibrate-only`` keeps the weights that are there, and fits the temperature of their
scores again, which takes a minute.
"""

import argparse
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.api import run_training
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config, save_config
from hanlattice.config.settings import Config
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.evaluation.temperature import calibrate, confidences
from hanlattice.files import atomic_write
from hanlattice.kernels.library import supports_int8
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, CONFIG, DEFAULT, LEXICON, LITE, VOCABULARY, WEIGHTS, ModelFolder
from hanlattice.pipeline import NER
from hanlattice.training.distillation import annotate, raw_sentences
from left_out import left_out
from make_default_model import FOR_TEMPERATURE, about_calibration, count_documents, output_of, prepare

SETTINGS = Path(hanlattice.__file__).parent / "papers" / "linear" / "open.toml"
CHARACTERS = 3_000_000  # of each file of raw text, read by the ensemble
LITE_WEIGHT = 0.4  # of the first model in this ensemble
LEAST_SCORE = 0.5  # sentences with a less certain entity are left out
NEEDED = ("open.jsonl", "annotated.jsonl", "silver.jsonl", "gazetteer.txt")

CARD_TEXT = """# The packaged lite model: named entities in contemporary Chinese text, fast

A linear-chain conditional random field over character n-grams, types of characters and lexicon words, with weights
in int8: `hanlattice.load("lite")`. It has the convention `open` with {labels}.
It is much faster than the packaged model and finds fewer entities.

## Data

- `wild`, the sentences of 2012 to 2026 in ten genres that the packaged model was trained on, and {n_annotated:,}
  sentences of raw text and of other corpora (`annotations/` in the repository). **They were annotated by large
  language models** with a written guideline, not by people.
- {n_silver:,} sentences of raw text, annotated by an ensemble of the packaged model and a first lite model.
- Documents that share 13 consecutive characters with a dev or test text of any corpus were left out.
- Lexicon: {n_words:,} words with a label
  ({kinds}):
  names that a model found in raw text, names of training corpora, and open lists of places and historic persons
  (see NOTICE).

Some of these texts have no licence; they were released for research. Before you use this model commercially, check
whether your use is permitted. Names in texts of one time and country carry the biases of that time and country.

## Scores

Micro precision, recall and F1 in percent over exact spans and labels, printed by
`python benchmarks/open_text.py --model lite`. No sentence is left out. The epoch was chosen on wild dev.

{scores}

## Confidences

{calibration}

## How it was made

    HANLATTICE_DATA=… python scripts/make_lite_model.py

The settings are in `config.toml` in this folder.
"""


def trained(config: Config, output: Path) -> Path:
    """Train a linear tagger, unless it exists, and return its folder."""
    if not (output / CARD).exists():
        run_training(config, output, watcher=TrainingLines(config.training.epochs))
    return output


def teacher(lite: Path) -> NER:
    """The ensemble of the packaged model and a lite model."""
    folder = ModelFolder.open(DEFAULT)
    flat = hanlattice.load(DEFAULT, engine="native", int8=supports_int8())
    second = os.path.relpath(lite, folder.path)
    return Ensemble.open(folder, flat.engine, settings=EnsembleSettings(second, LITE_WEIGHT, 1.0))


def distilled(work: Path, corpora: Path) -> Path:
    """Train the lite model from the annotations of an ensemble, and return its folder."""
    config = load_config(SETTINGS)
    if not (corpora / "lite.jsonl").exists():
        silver = {"corpus": str(corpora / "silver.jsonl"), "share": 1.0}
        first = trained(config.with_settings({"auxiliary": {"silver": silver}}), work / "lite-first")
        data = Path(os.environ["HANLATTICE_DATA"])
        is_left_out = left_out(data / "held_out.py", [corpora / "aside.jsonl"])
        texts = raw_sentences(sorted((data / "rawtext").glob("*.xz")), CHARACTERS, is_left_out)
        print(annotate([teacher(first)], texts, corpora / "lite.jsonl", min_score=LEAST_SCORE), flush=True)
    return trained(config, work / "lite")


def calibrated(work: Path, folder: Path, corpora: Path) -> tuple[Path, str]:
    """Fit the temperature of the scores on documents that no model was trained on.

    Returns:
        the folder of the calibrated model, and sentences for the model card about the calibration error
    """
    documents = list(corpus.read(corpora / "aside.jsonl"))
    corpus.write(documents[:FOR_TEMPERATURE], work / "temperature.jsonl", "jsonl")
    plain, output = work / "lite-plain", work / "lite-calibrated"
    for old in (plain, output):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(folder, plain)
    config = load_config(plain / CONFIG)
    save_config(config.with_settings({"decoder": {"temperature": 1.0}}), plain / CONFIG)
    done = calibrate(plain, work / "temperature.jsonl", output)
    before, after = (confidences(hanlattice.load(f), documents[FOR_TEMPERATURE:]) for f in (plain, output))
    others = len(documents) - FOR_TEMPERATURE
    return output, about_calibration("Scores", done.temperature, others, before, after)


def card(folder: Path, corpora: Path, scores: str, calibration: str) -> str:
    """The model card in Markdown.

    Args:
        folder: the model
        corpora: the corpora of the packaged model
        scores: the table that benchmarks/open_text.py printed
        calibration: sentences about the calibration error
    """
    ner = hanlattice.load(folder)
    labels = Counter(entry.label for entry in ner.lexicon.entries() if entry.label)
    return CARD_TEXT.format(
        labels=", ".join(ner.labels),
        n_annotated=count_documents(corpora / "annotated.jsonl"),
        n_silver=count_documents(corpora / "lite.jsonl"),
        n_words=labels.total(),
        kinds=", ".join(f"{n:,} {label}" for label, n in sorted(labels.items())),
        scores=scores,
        calibration=calibration,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/default"), help="working folder")
    parser.add_argument("--output", type=Path, default=LITE, help="folder of the packaged model")
    parser.add_argument("--calibrate-only", action="store_true", help="keep the weights of --output")
    a = parser.parse_args()
    work, output = a.work.resolve(), a.output.resolve()
    corpora = work / "corpora"
    if not all((corpora / name).exists() for name in NEEDED):
        corpora = prepare(work)
    os.environ["OPEN_CORPORA"] = str(corpora)
    run = output if a.calibrate_only else distilled(work, corpora)
    output.mkdir(parents=True, exist_ok=True)
    made, calibration = calibrated(work, run, corpora)
    for name in (CONFIG, LEXICON, VOCABULARY, WEIGHTS):
        if not (output / name).exists() or (output / name).read_bytes() != (made / name).read_bytes():
            shutil.copyfile(made / name, output / name)
    printed = output_of([sys.executable, "benchmarks/open_text.py", "--model", output]).splitlines()
    scores = "\n".join([*printed[:2], *(line for line in printed[2:] if "| open |" in line)])
    with atomic_write(output / CARD) as stream:
        stream.write(card(output, corpora, scores.strip(), calibration))
    record(output)
    print(scores)


if __name__ == "__main__":
    main()
