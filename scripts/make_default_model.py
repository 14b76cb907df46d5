"""Make the packaged model from the data folder: training data, training, calibration, packing, model card.

    HANLATTICE_DATA=… python scripts/make_default_model.py [--work runs/default] [--processes 2] [--body pretrained]
        [--without NAME … --output FOLDER]

The training data are those of training_data.py, which also describes ``HANLATTICE_DATA``. Each step writes its
result to the working folder and is skipped if the result exists. A training run that was stopped is resumed. The
settings are papers/hanlattice/open.toml, and open-final.toml for a second stage. With ``--without`` the model
learns nothing from the named corpora; benchmarks/fine_tuning.py starts from such a model.

The scores in the card are those of this model alone. Then run scripts/make_lite_model.py, scripts/make_ensemble.py
and scripts/make_cascade.py.
"""

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from hanlattice import corpus
from hanlattice.config.settings import Config
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.own import Own
from hanlattice.encoders.flat import Flat
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.temperature import calibrate, confidences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model import weights
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, DEFAULT
from hanlattice.pipeline import NER
from training_data import PAPERS, ROOT, output_of, prepare, settings_without, trained, with_annotated_names

FOR_TEMPERATURE = 1_000  # held-out documents on which the temperature is fitted; the others measure the error
LEAST_OF_A_BIGRAM = 32  # occurrences of a bigram in train; the package has no room for rarer ones
BIGRAMS, WORDS = 116_000, 61_000  # rows of the packaged embedding tables; the installation has at most 60 MB


class About(NamedTuple):
    """What differs between the cards of the packaged models.

    Attributes:
        title: the heading.
        model: the first sentence.
        commands: how it was made.
    """

    title: str
    model: str
    commands: str


DEFAULT_MODEL = About(
    "The packaged model",
    "FLAT over characters, bigrams and words, with a CRF for each annotation convention and a softmax for `words`.",
    """
    HANLATTICE_DATA=… python scripts/make_default_model.py
    HANLATTICE_DATA=… python scripts/make_lite_model.py
    python scripts/make_ensemble.py runs/default/temperature.jsonl $HANLATTICE_DATA/labelled/wild/dev.jsonl \\
      --rest runs/default/rest.jsonl --convention resume=$HANLATTICE_DATA/labelled/resume/dev.char.bmes
""",
)


def settings_of(stage: str, without: Sequence[str]) -> Config:
    """The settings of a stage of training, without the given corpora and without rare bigrams."""
    config = settings_without(PAPERS / "hanlattice" / f"{stage}.toml", without)
    return config.with_settings({"vectors": {"bigram_frequency": LEAST_OF_A_BIGRAM}})


def calibrated(work: Path, folder: Path, corpora: Path) -> tuple[Path, str]:
    """Fit the temperature of the scores on held-out documents.

    Returns:
        the folder of the calibrated model, and sentences for the model card about the calibration error
    """
    documents = list(corpus.read(corpora / "aside.jsonl"))
    corpus.write(documents[:FOR_TEMPERATURE], work / "temperature.jsonl", "jsonl")
    corpus.write(documents[FOR_TEMPERATURE:], work / "rest.jsonl", "jsonl")
    output = folder.with_name(f"{folder.name}-calibrated")
    if output.exists():
        shutil.rmtree(output)
    done = calibrate(folder, work / "temperature.jsonl", output)
    before, after = (confidences(weights.load_model(f), documents[FOR_TEMPERATURE:]) for f in (folder, output))
    others = len(documents) - FOR_TEMPERATURE
    return output, about_calibration("Scores of convention `open`", done.temperature, others, before, after)


def trimmed(ner: NER, bigrams: int, words: int) -> Vocabulary:
    """Remove the rows of the rarest bigrams and words, in place, to keep the package small.

    Args:
        ner: the model, whose rows are in order of falling frequency
        bigrams: number of bigrams that are kept
        words: number of words that are kept

    Returns:
        the vocabulary of the remaining rows
    """
    encoder = ner.tagger.encoder
    embedding = ner.tagger.embedding.beside if isinstance(ner.tagger.embedding, Own) else ner.tagger.embedding
    assert isinstance(embedding, Characters)
    assert embedding.bigrams is not None
    assert isinstance(encoder, Flat)
    with torch.no_grad():
        embedding.bigrams.weight.data = embedding.bigrams.weight[: bigrams + 2].clone()
        encoder.words.table.weight.data = encoder.words.table.weight[: words + 1].clone()
    return ner.vocabulary.first(len(ner.vocabulary.chars), bigrams, words)


def about_calibration(scores: str, temperature: float, others: int, before: Confidences, after: Confidences) -> str:
    """Sentences for a model card.

    Args:
        scores: what the temperature divides
        temperature: the fitted temperature
        others: number of sentences on which the error is measured
        before: confidences on these sentences without the temperature
        after: confidences with it
    """
    return (
        f"{scores} are divided by a temperature of {temperature:.3f}, which was fitted to {FOR_TEMPERATURE:,}"
        f" held-out sentences. On the other {others:,} held-out sentences the expected calibration error over"
        f" {len(after.p):,} predicted entities is {after.error:.4f}; without the temperature it is"
        f" {before.error:.4f}."
    )


def packed_lexicon(ner: NER, vocabulary: Vocabulary, corpora: Path) -> Lexicon:
    """The words of the lexicon that have a row or a label, and the names of annotated sentences."""
    known = set(vocabulary.words)
    kept = Lexicon(entry for entry in ner.lexicon.entries() if entry.label or entry.text in known)
    return with_annotated_names(kept, corpora)


def count_documents(path: Path) -> int:
    """The number of documents in a JSONL file."""
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def card(ner: NER, corpora: Path, scores: str, calibration: str, about: About) -> str:
    """The model card in Markdown.

    Args:
        ner: the packed model
        corpora: folder of the prepared corpora
        scores: table that benchmarks/open_text.py printed
        calibration: sentences about the calibration error
        about: what differs between the models of this recipe
    """
    labels = Counter(entry.label for entry in ner.lexicon.entries() if entry.label)
    return CARD_TEXT.format(
        **about._asdict(),
        conventions="\n".join(f"| `{n}` | {', '.join(ner.vocabulary.labels_of(n))} |" for n in ner.conventions),
        n_annotated=count_documents(corpora / "annotated.jsonl"),
        n_silver=count_documents(corpora / "silver.jsonl"),
        n_words=len(ner.lexicon),
        n_labelled=labels.total(),
        kinds=", ".join(f"{n:,} {label}" for label, n in sorted(labels.items())),
        scores=scores,
        calibration=calibration,
    )


CARD_TEXT = """# {title}: named entities in contemporary Chinese text

{model} The model reads simplified and
traditional script, in full and half width. Embedding tables are int8 with one scale per row, other weights float16.

| convention | labels |
|---|---|
{conventions}

## Data

- `open`, the default: `wild`, sentences of 2012 to 2026 in ten genres with PER, LOC, ORG, WORK, PRODUCT and EVENT,
  and {n_annotated:,} sentences of raw text and of other corpora (`annotations/` in the repository). **They were
  annotated by large language models** with a written guideline, not by people. A second, independent annotation of
  the test set agrees with the first at 98 F1. {n_silver:,} more sentences of raw text were annotated by an
  ensemble of a larger model and a linear tagger.
- The other conventions: the training files of MSRA NER (SIGHAN 2006), CLUENER 2020, Weibo NER (second release),
  Resume NER, CMeEE (outermost entities; `medical`), and the People's Daily of January 1998 (PFR corpus; `news1998`
  has its names, `words` its words and parts of speech). Embedding and encoder were also trained on the literature
  corpus of Xu et al. 2017, and on annotated e-commerce titles, video titles and requests for books, music and
  videos.
- Documents that share 13 consecutive characters with a dev or test text of any of these corpora were left out of
  all of them. Therefore sentences that are both in the training and in the test file of Weibo were not trained on.
- Vectors: see `data/VECTORS.md` in the package.
- Lexicon: {n_words:,} words, {n_labelled:,} of them with a label
  ({kinds}).
  The words are names that the ensemble found in raw text, names of the annotated sentences, persons of the
  People's Daily of 1998, open lists of places and historic persons (see NOTICE), and names that language models
  wrote from general knowledge (`annotations/names.tsv`).

Some of these corpora have no licence; they were released for research. Before you use this model commercially,
check whether your use is permitted. Names in texts of one time and country carry the biases of that time and
country.

## Scores

Micro precision, recall and F1 in percent over exact spans and labels, printed by `python benchmarks/open_text.py`.
No sentence is left out.

{scores}

{calibration}

## How it was made
{commands}
The settings are in `config.toml` in this folder.
"""


def packed(folder: Path, output: Path, corpora: Path, bigrams: int, words: int) -> NER:
    """Write a model with int8 tables, reduced vocabulary and more names to the folder ``output``, and load it.

    For ``bigrams`` and ``words`` see :func:`trimmed`.
    """
    ner = weights.load_model(folder)
    vocabulary = trimmed(ner, bigrams, words)
    weights.save_model(
        output,
        ner.tagger,
        vocabulary,
        packed_lexicon(ner, vocabulary, corpora),
        ner.config,
        precision="int8",
        card="The scores are being computed.",
    )
    return weights.load_model(output)


def finish(
    work: Path, run: Path, corpora: Path, output: Path, about: About, bigrams: int = BIGRAMS, words: int = WORDS
) -> None:
    """Calibrate the model of a run, write it to the folder ``output``, score it, and write its card.

    For ``bigrams`` and ``words`` see :func:`trimmed`.
    """
    folder, calibration = calibrated(work, run, corpora)
    ner = packed(folder, output, corpora, bigrams, words)
    scores = output_of(
        [sys.executable, "benchmarks/open_text.py", "--model", output.resolve(), "--engine", "native"]
    )
    (output / CARD).write_text(card(ner, corpora, scores.strip(), calibration, about), encoding="utf-8")
    record(output)
    print(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/default"), help="working folder")
    parser.add_argument("--processes", type=int, default=2, help="number of training processes")
    parser.add_argument("--body", type=Path, default=ROOT / "pretrained", help="the teacher's pretrained body")
    parser.add_argument("--output", type=Path, default=DEFAULT, help="folder of the packaged model")
    parser.add_argument("--without", nargs="+", default=[], metavar="NAME", help="corpora to leave out")
    a = parser.parse_args()
    if a.without and a.output == DEFAULT:
        parser.error("--without needs another --output: the packaged model learns from all corpora")
    work = a.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    corpora = prepare(work, a.body.resolve(), a.processes, a.without)
    settings = settings_of("open", a.without)
    os.environ["OPEN_START"] = str(trained(settings, work / "run", a.processes))
    final = settings_of("open-final", a.without)
    finish(work, trained(final, work / "final", a.processes), corpora, a.output, DEFAULT_MODEL)


if __name__ == "__main__":
    main()
