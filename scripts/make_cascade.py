"""Choose the threshold of a cascade on held-out documents, and write cascade.toml into the accurate model's folder.

    python scripts/make_cascade.py HELD_OUT... [--accurate default] [--fast lite] [--lost 0.5]

``HELD_OUT`` are corpora that neither model was trained on. The threshold is the lowest one with which the cascade
loses at most ``--lost`` points of F1 against the accurate model on each of them; no higher threshold loses more
than that either. For the packaged models these are ``corpora/aside.jsonl`` in the working folder of
make_default_model.py, and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. Run it again when one of the two models
changes. It takes as long as the accurate model needs for the corpora.
"""

import argparse
import os
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.engines.cascade import certainties
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.files import atomic_write
from hanlattice.model.digests import record
from hanlattice.model.folder import CASCADE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER
from hanlattice.text.windows import windows


def certainties_of(ner: NER, texts: list[str]) -> np.ndarray:
    """For each text, the certainty of the fast model in the window in which it is lowest."""
    settings, engine = ner.config.text, cast(LinearTagger, ner.engine)
    found = []
    for plain in ner.normaliser.all(texts):
        cut = windows(plain.text, settings.window, settings.overlap)
        sentences = ner.reader.read([plain.text[w.start : w.end] for w in cut], ner.lexicon, ner.labels)
        found.append(min(certainties(engine, sentences)[1], default=1.0))
    return np.array(found)


def counts(gold: list[Document], found: list[Document]) -> np.ndarray:
    """``[D, 3]``: of each document, the numbers of correct, found and gold entities."""
    rows = [(set(g.spans), set(f.spans)) for g, f in zip(gold, found, strict=True)]
    return np.array([(len(g & f), len(f), len(g)) for g, f in rows])


def f1(correct: np.ndarray, found: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """F1 in percent."""
    return 200 * correct / np.maximum(found + gold, 1)


class Answers(NamedTuple):
    """The answers of both models for the documents of a corpus, of which :func:`counts` describes the arrays."""

    name: str
    certainty: np.ndarray
    fast: np.ndarray
    accurate: np.ndarray

    def threshold(self, lost: float) -> float:
        """The lowest threshold with which, as with all higher ones, at most ``lost`` points of F1 are lost."""
        order = np.argsort(-self.certainty)
        gains = np.cumsum((self.fast - self.accurate)[order], 0)  # row k: the fast model answers k + 1 documents
        scores = f1(*(self.accurate.sum(0) + gains).T)
        n = int(np.argmax(np.append(scores < f1(*self.accurate.sum(0)) - lost, True)))
        return float(np.ceil(self.certainty[order[n]] * 1e6) / 1e6) if n < len(order) else 0.0

    def described(self, threshold: float) -> str:
        """The share that the fast model answers with a threshold, and the scores."""
        is_fast = self.certainty >= threshold
        mixed = np.where(is_fast[:, None], self.fast, self.accurate)
        scores = [f1(*x.sum(0)) for x in (mixed, self.accurate, self.fast)]
        return (
            f"On {len(mixed):,} documents of {self.name} the fast model answers {np.mean(is_fast):.1%}."
            f" F1: cascade {scores[0]:.2f}, accurate model {scores[1]:.2f}, fast model {scores[2]:.2f}."
        )


def answers(path: Path, fast: NER, accurate: NER) -> Answers:
    """The answers of both models for a corpus."""
    documents = list(corpus.read(path))
    texts = [document.text for document in documents]
    both = (counts(documents, list(ner.pipe(texts))) for ner in (fast, accurate))
    return Answers(path.name, certainties_of(fast, texts), *both)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--accurate", default="default", help="folder or name of the accurate model")
    parser.add_argument("--fast", default="lite", help="name of a packaged linear tagger, or its folder")
    parser.add_argument("--lost", type=float, default=0.5, help="largest loss of F1, in points")
    a = parser.parse_args()
    fast, accurate = hanlattice.load(a.fast), hanlattice.load(a.accurate)
    corpora = [answers(path, fast, accurate) for path in a.held_out]
    threshold = max(one.threshold(a.lost) for one in corpora)
    folder = ModelFolder.open(a.accurate).path
    name = a.fast if a.fast in PACKAGED else os.path.relpath(a.fast, folder)
    with atomic_write(folder / CASCADE) as stream:
        stream.write(f"# Written by scripts/make_cascade.py --lost {a.lost:g}.\n")
        stream.writelines(f"# {one.described(threshold)}\n" for one in corpora)
        stream.write(f'fast = "{name}"\nthreshold = {threshold!r}\n')
    record(folder)
    print((folder / CASCADE).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
