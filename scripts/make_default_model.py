"""Remake the packaged model: train, score, store in 8 bits, score again, write the card.

    python scripts/label_words.py TEXT… --lexicon WORDS --corpus NESTED --exclude TEST --output labels.txt
    python scripts/tag_words.py 199801.txt --output words.jsonl
    HANLATTICE_DATA=… WORD_LABELS=labels.txt WORD_TAGS=words.jsonl python scripts/make_default_model.py

``HANLATTICE_DATA`` is a folder with ``labelled/msra`` as docs/results.md describes. TEXT is raw text, WORDS a large
lexicon, NESTED the entities of the People's Daily, 199801.txt its words and TEST the test file of MSRA. A run that
was stopped goes on where it was. The traditional variant of the test needs the extra ``dev`` (opencc).
"""

import argparse
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path

import torch

from hanlattice import corpus, model
from hanlattice.cli.progress import Lines
from hanlattice.config import load_config
from hanlattice.digests import record
from hanlattice.document import Document, Entity
from hanlattice.evaluation import Report
from hanlattice.export import export
from hanlattice.lexicon import Lexicon
from hanlattice.model_folder import CARD, DEFAULT, GRAPH
from hanlattice.pipeline import NER
from hanlattice.text import Normaliser
from hanlattice.training import evaluate, train
from hanlattice.vectors import default_vectors
from hanlattice.vocab import Vocabulary

TYPES = {"NR": "PER", "NS": "LOC", "NT": "ORG"}  # the test file's names of the types
BIGRAMS, WORDS = 160_000, 130_000  # rows of the packaged tables
WIDE = str.maketrans({code: code + 0xFEE0 for code in range(0x21, 0x7F)})


def msra_test() -> list[Document]:
    path = Path(os.environ["HANLATTICE_DATA"]) / "labelled/msra/test4365.char.bmes"
    return [
        Document(d.text, tuple(Entity(e.text, TYPES[e.label], e.start, e.end) for e in d.entities))
        for d in corpus.read(path)
    ]


def rewritten(documents: Iterable[Document], rewrite: Callable[[str], str]) -> list[Document]:
    """The documents with another text of the same length."""
    changed = []
    for d in documents:
        text = rewrite(d.text)
        if len(text) == len(d.text):
            entities = tuple(Entity(text[e.start : e.end], e.label, e.start, e.end) for e in d.entities)
            changed.append(Document(text, entities))
    return changed


def variants(documents: Sequence[Document]) -> dict[str, list[Document]]:
    """The test as it is, and written in the other ways that users write."""
    narrow = Normaliser()
    found = {
        "as published (full-width digits)": list(documents),
        "half width": rewritten(documents, lambda text: narrow(text).text),
        "full width": rewritten(documents, lambda text: text.translate(WIDE)),
    }
    try:
        from opencc import OpenCC
    except ImportError:
        print("traditional script not scored: pip install opencc")
        return found
    return found | {"traditional script": rewritten(documents, OpenCC("s2t").convert)}


def trimmed(ner: NER, bigrams: int, words: int) -> Vocabulary:
    """Drop the rarest rows of the two large tables, in place, to keep the package small."""
    embedding, encoder = ner.tagger.embedding, ner.tagger.encoder
    with torch.no_grad():
        embedding.bigrams.weight.data = embedding.bigrams.weight[: bigrams + 2].clone()
        encoder.words.table.weight.data = encoder.words.table.weight[: words + 1].clone()
    return ner.vocabulary.first(len(ner.vocabulary.chars), bigrams, words)


def packed_lexicon(ner: NER) -> Lexicon:
    """The words with a vector or a label: the others are somebody else's list, and are worth next to nothing."""
    known = set(default_vectors().words.names)
    return Lexicon(entry for entry in ner.lexicon.entries() if entry.label or entry.text in known)


def card(ner: NER, whole: Report, packed: dict[str, tuple[Report, int]], run_card: str) -> str:
    rows = [
        f"| {name} | {n:,} | {r.micro.gold:,} | {100 * r.micro.precision:.2f} | {100 * r.micro.recall:.2f} |"
        f" {100 * r.micro.f1:.2f} |"
        for name, (r, n) in packed.items()
    ]
    as_published = next(iter(packed.values()))[0]
    labels = [entry.label for entry in ner.lexicon.entries() if entry.label]
    kinds = ", ".join(f"{n:,} {label}" for label, n in sorted(Counter(labels).items()))
    return f"""# The packaged model: people, places, organisations in modern Chinese

FLAT over characters, bigrams and words, with a CRF: `PER`, `LOC`, `ORG`. Simplified and traditional script, full
and half width. Weights in 8 bits (tables, one scale a row) and float16.

## Data

- Labelled: MSRA NER (SIGHAN 2006 bakeoff 3, Microsoft Research Asia), its training file, a twentieth of it dev,
  chosen by seed. Beside it, embedding and encoder learnt the words, parts of speech and outermost names of the
  People's Daily of January 1998 (PFR corpus, Peking University and Fujitsu) by a decoder of their own, so that its
  conventions are not those of this model. Texts that share 20 characters with the MSRA test file are left out, and
  so are those of the People's Daily that share them with dev. No licence covers these data; they were released for
  research, so check whether your use is covered before you rely on this model commercially.
- Vectors: `data/VECTORS.md` in the package.
- Lexicon: {len(ner.lexicon):,} words, those of the vectors and others with a label. {len(labels):,} have a label
  ({kinds}): what they are in the People's Daily, or what the packaged model before this
  one, with F1 91.63, found them to be in raw text, news above all. It was trained with more words, with neither
  vector nor label, which were met in the text that the vectors were trained on or in the People's Daily.

## Scores

MSRA test, micro F1 over exact spans and types, nothing left out. Made by `scripts/make_default_model.py`.

| text | sentences | gold | P | R | F1 |
|---|---|---|---|---|---|
{chr(10).join(rows)}

The same weights in float32 and with the lexicon of the training, as published: F1 {100 * whole.micro.f1:.2f}.

{as_published.to_markdown()}

The conventions are those of the corpora, which are newspaper text: of nested names the outermost is annotated,
titles are no part of a name, pronouns and common nouns are no entities. Microblogs, speech and other domains score
lower.

## How it was made

    python scripts/label_words.py TEXT… --lexicon WORDS --corpus NESTED --exclude TEST --output labels.txt
    python scripts/tag_words.py 199801.txt --output words.jsonl
    HANLATTICE_DATA=… WORD_LABELS=labels.txt WORD_TAGS=words.jsonl python scripts/make_default_model.py

The settings are `config.toml` beside this file. From the training run's own card, with its lexicon:

{run_card.split(chr(10), 2)[2].strip()}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=Path("runs/default"), help="folder of the training run")
    parser.add_argument("--output", type=Path, default=DEFAULT, help="folder of the packaged model")
    arguments = parser.parse_args()
    config = load_config(Path(str(files("hanlattice").joinpath("papers/hanlattice/msra.toml"))))
    if not (arguments.run / CARD).exists():
        train(config, arguments.run, resume=True, watcher=Lines(config.training.epochs))
    ner = model.load_model(arguments.run)
    documents = msra_test()
    whole = evaluate(ner, documents)
    print(whole)
    vocabulary = trimmed(ner, BIGRAMS, WORDS)
    model.save_model(
        arguments.output, ner.tagger, vocabulary, packed_lexicon(ner), config, precision="int8", card="being scored"
    )
    with tempfile.TemporaryDirectory() as place:
        graph = export(arguments.output, Path(place) / "exported").folder / GRAPH
        shutil.copy(graph, arguments.output / GRAPH)
    packed = model.load_model(arguments.output)
    scored = {name: (evaluate(packed, docs), len(docs)) for name, docs in variants(documents).items()}
    run_card = (arguments.run / CARD).read_text(encoding="utf-8")
    (arguments.output / CARD).write_text(card(packed, whole, scored, run_card), encoding="utf-8")
    record(arguments.output)
    for name, (report, n) in scored.items():
        print(name, n, report.micro)


if __name__ == "__main__":
    main()
