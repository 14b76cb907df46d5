"""Remake the packaged model from the data folder: corpora, gazetteer, training, calibration, packing, card.

    HANLATTICE_DATA=… python scripts/make_default_model.py [--work runs/default] [--processes 2]

``HANLATTICE_DATA`` is a folder with ``labelled``, ``lexicons``, ``rawtext`` and ``held_out.py`` as docs/results.md
describes them. Each step leaves its result in the working folder and is skipped when that is there; a training run
that was stopped is resumed. The settings of the model are papers/hanlattice/open.toml.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import torch

from hanlattice import corpus
from hanlattice.cli.progress import TrainingLines
from hanlattice.config.files import load_config
from hanlattice.embeddings.characters import Characters
from hanlattice.encoders.flat import Flat
from hanlattice.engines.export import export
from hanlattice.evaluation.temperature import calibrate, confidences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model import weights
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, DEFAULT, GRAPH
from hanlattice.pipeline import NER
from hanlattice.training import train
from hanlattice.vectors import default_vectors

ROOT = Path(__file__).parents[1]
SETTINGS = Path(str(files("hanlattice").joinpath("papers/hanlattice/open.toml")))
TEACHER_EPOCHS = 5
LISTS = ("admin_divisions.txt=LOC", "THUOCL_diming.txt=LOC:3", "THUOCL_lishimingren.txt=PER")
FOR_TEMPERATURE = (
    1_000  # documents kept aside to which the temperature is fitted; the error is measured on the others
)
BIGRAMS, WORDS = 160_000, 152_000  # rows of the packaged tables


def run(*command: object) -> None:
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT)


def corpora_in(work: Path) -> Path:
    """The folder of the corpora."""
    folder = work / "corpora"
    os.environ["OPEN_CORPORA"] = str(folder)
    if not (folder / "words.jsonl").exists():
        run(sys.executable, "scripts/open_corpora.py", "--output", folder)
    return folder


def teacher(output: Path, gazetteer: Path | None, noise: float) -> Path:
    """A model of convention ``open`` alone, by the settings of the packaged one."""
    config = load_config(SETTINGS)
    files = () if gazetteer is None else (str(gazetteer),)
    config = replace(config, conventions={}, auxiliary={}, lexicon=replace(config.lexicon, files=files))
    settings = {
        "data": {"noise": noise, "user_words": noise},
        "training": {"epochs": TEACHER_EPOCHS, "batch_size": 16, "learning_rate": 1.5e-3},
    }
    if not (output / CARD).exists():
        train(config.with_settings(settings), output, resume=True, watcher=TrainingLines(TEACHER_EPOCHS))
    return output


def gazetteer(output: Path, model_folder: Path, corpora: Path, characters: int) -> Path:
    """Names that a model finds in so many characters of each file of raw text, and those of corpora and lists."""
    data = Path(os.environ["HANLATTICE_DATA"])
    if not output.exists():
        run(
            *(sys.executable, "scripts/gazetteer.py", *sorted((data / "rawtext").glob("*.xz"))),
            *("--model", model_folder, "--corpus", corpora / "open.jsonl", corpora / "names.jsonl"),
            *("--list", *(f"{data}/lexicons/{name}" for name in LISTS)),
            *("--held-out", data / "held_out.py", "--characters", str(characters), "--output", output),
        )
    return output


def silver(output: Path, models: Sequence[Path]) -> None:
    """Sentences of raw text that some models annotated."""
    data = Path(os.environ["HANLATTICE_DATA"])
    if not output.exists():
        run(
            *(sys.executable, "scripts/silver.py", *sorted((data / "rawtext").glob("*.xz")), "--models", *models),
            *("--held-out", data / "held_out.py", "--output", output),
        )


def prepare(work: Path) -> Path:
    """All that the packaged model learns from; the folder of it.

    A first model, without a gazetteer, finds names in raw text; two more learn with them, find more names, and
    annotate raw text together with the first.
    """
    corpora = corpora_in(work)
    first = teacher(work / "first", None, 0.0)
    names = gazetteer(work / "names.txt", first, corpora, 4_000_000)
    second, third = teacher(work / "second", names, 0.0), teacher(work / "third", names, 0.25)
    gazetteer(corpora / "gazetteer.txt", second, corpora, 10_000_000)
    silver(corpora / "silver.jsonl", [first, second, third])
    return corpora


def trained(work: Path, processes: int) -> Path:
    """The folder of the finished run."""
    output = work / "run"
    if not (output / CARD).exists():
        launch = (
            [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "-m"]
            if processes > 1
            else [sys.executable, "-m"]
        )
        run(*launch, "hanlattice", "train", "--paper", "hanlattice/open", "--output", output, "--resume")
    return output


def calibrated(work: Path, folder: Path, corpora: Path) -> tuple[Path, str]:
    """A copy of the model whose confidences are calibrated, and what they are worth on other documents."""
    documents = list(corpus.read(corpora / "aside.jsonl"))
    corpus.write(documents[:FOR_TEMPERATURE], work / "temperature.jsonl", "jsonl")
    output = work / "calibrated"
    if output.exists():
        shutil.rmtree(output)
    done = calibrate(folder, work / "temperature.jsonl", output)
    before, after = (confidences(weights.load_model(f), documents[FOR_TEMPERATURE:]) for f in (folder, output))
    return output, (
        f"Scores of convention `open` are divided by {done.temperature:.3f}, fitted to {FOR_TEMPERATURE:,}"
        f" sentences kept aside. On the other {len(documents) - FOR_TEMPERATURE:,} the expected calibration error"
        f" over {len(after.p):,} found entities is {after.error:.4f}, before {before.error:.4f}."
    )


def trimmed(ner: NER, bigrams: int, words: int) -> Vocabulary:
    """Drop the rarest rows of the two large tables, in place, to keep the package small."""
    embedding, encoder = ner.tagger.embedding, ner.tagger.encoder
    assert isinstance(embedding, Characters)
    assert embedding.bigrams is not None
    assert isinstance(encoder, Flat)
    with torch.no_grad():
        embedding.bigrams.weight.data = embedding.bigrams.weight[: bigrams + 2].clone()
        encoder.words.table.weight.data = encoder.words.table.weight[: words + 1].clone()
    return ner.vocabulary.first(len(ner.vocabulary.chars), bigrams, words)


def packed_lexicon(ner: NER) -> Lexicon:
    """The words with a vector or a label."""
    known = set(default_vectors().words.names)
    return Lexicon(entry for entry in ner.lexicon.entries() if entry.label or entry.text in known)


def card(ner: NER, scores: str, calibration: str) -> str:
    labels = Counter(entry.label for entry in ner.lexicon.entries() if entry.label)
    kinds = ", ".join(f"{n:,} {label}" for label, n in sorted(labels.items()))
    conventions = "\n".join(
        f"| `{name}` | {', '.join(ner.vocabulary.labels_of(name))} |" for name in ner.conventions
    )
    return f"""# The packaged model: named entities in Chinese text of today

FLAT over characters, bigrams and words, with a CRF for each annotation convention. Simplified and traditional
script, full and half width, text as it comes. Tables in int8 (one scale a row), other weights in float16.

| convention | labels |
|---|---|
{conventions}

## Data

- `open`, the default: `wild`, sentences of 2012 to 2026 in ten genres with PER, LOC, ORG, WORK, PRODUCT and EVENT.
  **They were annotated by large language models** that read each sentence under a written guideline, not by people;
  a second, independent annotation of the test part agrees with the first at 98 F1.
- The other conventions: the training files of MSRA NER (SIGHAN 2006), CLUENER 2020, Weibo NER (second release),
  Resume NER, CMeEE (outermost entities; `medical`), and the People's Daily of January 1998 (PFR corpus; `news1998`
  its names, `words` its words and parts of speech). Embedding and encoder also learnt from the literature corpus of
  Xu et al. 2017, and from annotated e-commerce titles, video titles and requests for books, music and videos.
- Left out of all of them: documents that share 13 characters in a row with a dev or test text of any of these
  corpora. So the sentences of Weibo's test file that also stand in its train file were not trained on.
- Vectors: `data/VECTORS.md` in the package.
- Lexicon: {len(ner.lexicon):,} words, {labels.total():,} of them with a label ({kinds}): names that a first
  model of this recipe found in raw text, names of the training corpora, and open lists of
  places, companies and historic persons (NOTICE names them).

No licence covers some of these corpora; they were released for research. Check whether your use is covered before
you rely on this model commercially. Names in the text of a time and a country carry its prejudices.

## Scores

By `python benchmarks/open_text.py`, micro F1 in percent over exact spans and labels, nothing left out. The epoch
was chosen on wild dev.

{scores}

{calibration}

## How it was made

    HANLATTICE_DATA=… python scripts/make_default_model.py

The settings are `config.toml` beside this file.
"""


def packed(folder: Path, output: Path) -> NER:
    """The model as it is shipped, in the folder ``output``."""
    ner = weights.load_model(folder)
    vocabulary = trimmed(ner, BIGRAMS, WORDS)
    weights.save_model(
        output, ner.tagger, vocabulary, packed_lexicon(ner), ner.config, precision="int8", card="being scored"
    )
    with tempfile.TemporaryDirectory() as place:
        graph = export(output, Path(place) / "exported").folder / GRAPH
        shutil.copy(graph, output / GRAPH)
    return weights.load_model(output)


def printed(command: Sequence[str | Path]) -> str:
    return subprocess.run(list(map(str, command)), check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/default"), help="folder of all steps")
    parser.add_argument("--processes", type=int, default=2, help="that train together")
    parser.add_argument("--output", type=Path, default=DEFAULT, help="folder of the packaged model")
    a = parser.parse_args()
    work = a.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    corpora = prepare(work)
    folder, calibration = calibrated(work, trained(work, a.processes), corpora)
    ner = packed(folder, a.output)
    scores = printed([sys.executable, "benchmarks/open_text.py", "--model", a.output.resolve()])
    (a.output / CARD).write_text(card(ner, scores.strip(), calibration), encoding="utf-8")
    record(a.output)
    print(scores)


if __name__ == "__main__":
    main()
