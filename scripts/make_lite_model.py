"""Make the packaged lite model, a linear tagger, from the training data of the packaged model.

    HANLATTICE_DATA=… python scripts/make_lite_model.py [--work runs/default] [--calibrate-only]

Run scripts/make_default_model.py first, which makes the data: the lite model learns from the annotated corpora, and
from raw text that an ensemble annotated. The settings are those of papers/linear/open.toml. ``--calibrate-only``
keeps the weights that are there, and fits the temperature of their scores again, which takes a minute.
"""

import argparse
import os
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.api import run_training
from hanlattice.atomic import atomic_write
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config, save_config
from hanlattice.engines.linear.folder import save_linear
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.evaluation.temperature import calibrate, confidences
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, CONFIG, LEXICON, LITE, VOCABULARY, WEIGHTS
from make_default_model import FOR_TEMPERATURE, about_calibration, count_documents
from training_data import ANNOTATED_NAMES, NEWS_NAMES, PAPERS, output_of, with_annotated_names

NEEDED = (
    *("open.jsonl", "annotated.jsonl", "lite.jsonl", "gazetteer.txt", "aside.jsonl", ANNOTATED_NAMES, NEWS_NAMES),
    *("msra.jsonl", "silver_msra.jsonl", "cluener.jsonl", "resume.jsonl", "weibo.jsonl", "silver_weibo.jsonl"),
)
LEAST_WEIGHT, LEAST_OF_OTHERS = 6, 9  # of `open` and other conventions; times the scale of weights, at most 127

CARD_TEXT = """# The packaged lite model: named entities in contemporary Chinese text, fast

A linear-chain conditional random field over character n-grams, types of characters and lexicon words, with weights
in int8: `hanlattice.load("lite")`. It has the convention `open` with {labels},
and the conventions {others} with weights of their own.
It is much faster than the packaged model and finds fewer entities.

## Data

- `wild`, the sentences of 2012 to 2026 in ten genres that the packaged model was trained on, and {n_annotated:,}
  sentences of raw text and of other corpora (`annotations/` in the repository). **They were annotated by large
  language models** with a written guideline, not by people.
- {n_silver:,} sentences of raw text, annotated by an ensemble of a larger model and a first linear tagger.
- For the other conventions, the training parts of MSRA, CLUENER, Resume and Weibo; also {n_msra:,} sentences of
  raw text that a FLAT of the convention `msra` annotated, and {n_weibo:,} of `weibo`.
- Documents that share 13 consecutive characters with a dev or test text of any corpus were left out.
- Lexicon: {n_words:,} words with a label
  ({kinds}):
  names that the ensemble found in raw text, names of annotated sentences, persons of the People's Daily of 1998,
  open lists of places and historic persons (see NOTICE), and names that language models wrote from general
  knowledge (`annotations/names.tsv`).

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


def trained(output: Path) -> Path:
    """Train the linear tagger, unless it exists, and return its folder."""
    config = load_config(PAPERS / "linear" / "open.toml")
    if not (output / CARD).exists():
        run_training(config, output, watcher=TrainingLines(config.training.epochs))
    return output


def packed(folder: Path, output: Path, corpora: Path) -> Path:
    """Write the linear tagger without its smallest weights, which keeps the package small, and with more names."""
    ner = hanlattice.load(folder)
    tagger = cast(LinearTagger, ner.engine)
    tables = {name: tagger.of(name).tables for name in tagger.conventions}
    for name, one in tables.items():
        least = LEAST_OF_OTHERS if name else LEAST_WEIGHT
        tables[name] = replace(one, rows=np.where(np.abs(one.rows) < least, np.int8(0), one.rows))
    lexicon = with_annotated_names(ner.lexicon, corpora)
    save_linear(output, tables, ner.vocabulary, lexicon, ner.config, card="The scores are being computed.")
    return output


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
        others=", ".join(f"`{name}`" for name in ner.conventions[1:]),
        n_annotated=count_documents(corpora / "annotated.jsonl"),
        n_silver=count_documents(corpora / "lite.jsonl"),
        n_msra=count_documents(corpora / "silver_msra.jsonl"),
        n_weibo=count_documents(corpora / "silver_weibo.jsonl"),
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
    if missing := [name for name in NEEDED if not (corpora / name).exists()]:
        parser.error(f"{corpora} has no {missing[0]}: run scripts/make_default_model.py --work {work} first")
    os.environ["OPEN_CORPORA"] = str(corpora)
    run = output if a.calibrate_only else packed(trained(work / "lite"), work / "lite-packed", corpora)
    output.mkdir(parents=True, exist_ok=True)
    made, calibration = calibrated(work, run, corpora)
    for name in (CONFIG, LEXICON, VOCABULARY, WEIGHTS):
        if not (output / name).exists() or (output / name).read_bytes() != (made / name).read_bytes():
            shutil.copyfile(made / name, output / name)
    printed = output_of([sys.executable, "benchmarks/open_text.py", "--model", output]).splitlines()
    scores = "\n".join(printed)
    with atomic_write(output / CARD) as stream:
        stream.write(card(output, corpora, scores.strip(), calibration))
    record(output)
    print(scores)


if __name__ == "__main__":
    main()
