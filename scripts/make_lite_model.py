"""Make the packaged lite model, a linear tagger, from the corpora of the packaged model.

    HANLATTICE_DATA=… python scripts/make_lite_model.py [--work runs/default] [--calibrate-only]

``HANLATTICE_DATA`` is the folder that scripts/make_default_model.py describes. Its steps that prepare
corpora, gazetteer and silver annotations run first, unless their results are in the working folder. The settings
are those of papers/linear/open.toml. ``--calibrate-only`` keeps the weights that are there, and fits the
temperature of their scores again, which takes a minute.
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
from hanlattice.evaluation.temperature import calibrate, confidences
from hanlattice.files import atomic_write
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, CONFIG, LEXICON, LITE, VOCABULARY, WEIGHTS
from make_default_model import FOR_TEMPERATURE, about_calibration, output_of, prepare

SETTINGS = Path(hanlattice.__file__).parent / "papers" / "linear" / "open.toml"
NEEDED = ("open.jsonl", "silver.jsonl", "gazetteer.txt")

CARD_TEXT = """# The packaged lite model: named entities in contemporary Chinese text, fast

A linear-chain conditional random field over character n-grams, types of characters and lexicon words, with weights
in int8: `hanlattice.load("lite")`. It has the convention `open` with {labels}.
It is much faster than the packaged model and finds fewer entities.

## Data

- `wild`, the sentences of 2012 to 2026 in ten genres that the packaged model was trained on. **They were annotated
  by large language models** with a written guideline, not by people.
- {n_silver:,} sentences of raw text, annotated by a vote of three models (`scripts/silver.py`).
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
    with (corpora / "silver.jsonl").open("rb") as lines:
        n_silver = sum(1 for _ in lines)
    return CARD_TEXT.format(
        labels=", ".join(ner.labels),
        n_silver=n_silver,
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
    run = output if a.calibrate_only else work / "lite"
    if not (run / CARD).exists():
        config = load_config(SETTINGS)
        run_training(config, run, watcher=TrainingLines(config.training.epochs))
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
