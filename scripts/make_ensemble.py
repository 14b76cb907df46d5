"""Choose the settings of an ensemble, and write ensemble.toml into the folder of its FLAT.

    python scripts/make_ensemble.py HELD_OUT... [--model default] [--second lite] [--rest HELD_OUT]
        [--convention NAME=CORPUS]

``HELD_OUT`` are corpora that neither model was trained on. The weight is the smallest one, of 0.1 to 1.5, whose
mean F1 over these corpora is at most 0.1 below the largest: FLAT learned from more corpora, so it is better on text
of other kinds. The score of user words is the one, of 0 to 10, with the largest mean F1 when the user has added
words without a label: the names of each corpus, and as many compounds of ordinary words. Then the temperature is
fitted, as ``hanlattice calibrate`` does. With ``--convention`` other conventions have a weight of their own, chosen
in the same way on a corpus of one of them. Otherwise all conventions have the same weight. For the packaged models
the corpora are ``temperature.jsonl`` in the working folder of make_default_model.py, a part of
``corpora/aside.jsonl``, and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``; the other weight is chosen on the dev set
of Resume. Run it again when one of the two models changes, and scripts/make_cascade.py after it. It reads the
corpora some thirty times.

With ``--rest``, a held-out corpus that chose nothing (``rest.jsonl`` in that folder), the scores of the ensemble
replace those in the model card.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from random import Random
from textwrap import fill
from typing import cast

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, confidences, minimum
from hanlattice.files import atomic_write
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, ENSEMBLE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER
from training_data import output_of

WEIGHTS = [round(0.1 * n, 1) for n in range(1, 16)]
OF_USER_WORDS = [float(n) for n in range(11)]
LONGEST_COMPOUND = 5  # characters
TOLERANCE = 0.1  # points of F1


def chosen(scores: Mapping[float, float]) -> float:
    """The smallest weight whose F1 is at most `TOLERANCE` below the largest."""
    return min(weight for weight, score in scores.items() if score >= max(scores.values()) - TOLERANCE)


def f1(ner: NER, documents: list[Document]) -> float:
    """F1 in percent."""
    return 100 * hanlattice.evaluate(ner, documents).micro.f1


def with_user_words(ner: NER, documents: Sequence[Document]) -> Lexicon:
    """A copy of the lexicon, to which names of documents and as many compounds were added, all without labels.

    Compounds are two successive words, of at most `LONGEST_COMPOUND` characters, that share no character with a
    name. Each occurs in the documents too.
    """
    copy = ner.lexicon.copy()
    names = {entity.text for document in documents for entity in document.entities}
    names = {name for name in names if name not in copy and 1 < len(name) <= (copy.longest or 0)}
    compounds = set()
    for document, read in zip(documents, ner.pipe(d.text for d in documents), strict=True):
        free = [True] * len(document.text)
        for entity in document.entities:
            free[entity.start : entity.end] = [False] * (entity.end - entity.start)
        for one, other in pairwise(read.words or ()):
            text = document.text[one.start : other.end]
            is_compound = len(text) <= LONGEST_COMPOUND and text.isalpha() and all(free[one.start : other.end])
            if one.end == other.start and is_compound and text not in copy:
                compounds.add(text)
    few = Random(0).sample(sorted(compounds - names), min(len(names), len(compounds - names)))
    copy.update([*sorted(names), *few])
    return copy


def about_ensemble(given: str, chosen: int, alone: float, together: float, found: Confidences) -> str:
    """Sentences for a model card.

    Args:
        given: how the scores are added
        chosen: number of documents that chose the weight and the temperature
        alone: F1 of FLAT on the other held-out documents
        together: F1 of the ensemble on them
        found: confidences of the ensemble on them
    """
    return fill(
        "The model is an ensemble in the conventions that the packaged lite model has: the scores of that model,"
        f" {given}. The sums are divided by a temperature. {chosen:,} held-out documents chose the settings of"
        f" `open`, wild dev among them. On the other held-out sentences F1 with six labels is {together:.2f} (FLAT"
        f" alone {alone:.2f}), and the expected calibration error over {len(found.p):,} predicted entities is"
        f" {found.error:.4f}.",
        116,
        break_on_hyphens=False,
    )


def write_card(folder: Path, about: str) -> None:
    """Replace the scores in the card of a model by those that benchmarks/open_text.py prints."""
    before, scores, after = (folder / CARD).read_text(encoding="utf-8").partition("## Scores\n")
    intro = after.strip().split("\n\n")[0]
    table = output_of([sys.executable, "benchmarks/open_text.py", "--model", folder]).strip()
    end = after[after.index("## How it was made") :]
    with atomic_write(folder / CARD) as stream:
        stream.write(f"{before}{scores}\n{intro}\n\n{table}\n\n{about}\n\n{end}")


@dataclass(frozen=True)
class Trials:
    """An ensemble of two models, which is scored with different settings.

    Attributes:
        ner: the ensemble.
        flat, linear: its models.
        user_kind: the kind of user words without a label.
    """

    ner: NER
    flat: NativeTagger
    linear: LinearTagger
    user_kind: int

    def set(self, weight: float, temperature: float = 1.0, user_word: float = 0.0) -> None:
        """Give the ensemble other settings."""
        self.ner.engine = Ensemble(
            self.flat, self.linear, weight, temperature, user_word=user_word, user_kind=self.user_kind
        )

    def f1(self, corpora: Sequence[list[Document]]) -> float:
        """The mean F1 over corpora, in percent."""
        return sum(f1(self.ner, documents) for documents in corpora) / len(corpora)

    def weight(self, corpora: Sequence[list[Document]]) -> float:
        """The weight for corpora in the active convention."""
        scores = {}
        for weight in WEIGHTS:
            self.set(weight)
            scores[weight] = self.f1(corpora)
            print(f"weight {weight}: mean F1 {scores[weight]:.2f}", flush=True)
        return chosen(scores)

    def user_word(self, corpora: Sequence[list[Document]], weight: float) -> float:
        """The score of user words with the largest F1 when each corpus has words of the user."""
        self.set(weight)
        lexicons = [with_user_words(self.ner, documents) for documents in corpora]
        scores = {}
        for user_word in OF_USER_WORDS:
            self.set(weight, user_word=user_word)
            found = []
            for documents, lexicon in zip(corpora, lexicons, strict=True):
                with self.ner.using(lexicon=lexicon):
                    found.append(f1(self.ner, documents))
            scores[user_word] = sum(found) / len(found)
            print(f"user words {user_word}: mean F1 {scores[user_word]:.2f}", flush=True)
        return max(scores, key=lambda one: scores[one])

    def temperature(self, documents: list[Document], weight: float) -> float:
        """The temperature with the smallest loss."""

        def loss(power: float) -> float:
            self.set(weight, 2**power)
            return confidences(self.ner, documents).loss

        return round(2 ** minimum(loss, LOWEST, HIGHEST, PRECISION), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--model", default="default", help="folder or name of the model with FLAT")
    parser.add_argument("--second", default="lite", help="name of a packaged linear tagger, or its folder")
    parser.add_argument("--convention", metavar="NAME=CORPUS", help="chooses the weight of the other conventions")
    parser.add_argument("--rest", type=Path, help="held-out corpus that chose nothing; writes the model card")
    a = parser.parse_args()
    corpora = [list(corpus.read(path)) for path in a.held_out]
    folder = ModelFolder.open(a.model)
    first, second = hanlattice.load(a.model, engine="native", threads=1), hanlattice.load(a.second)
    name = a.second if a.second in PACKAGED else os.path.relpath(a.second, folder.path)
    ner = Ensemble.open(folder, first.engine, settings=EnsembleSettings(name, 1.0, 1.0))
    flat, linear = cast(NativeTagger, first.engine), cast(Ensemble, ner.engine).second
    trials = Trials(ner, flat, linear, folder.vocabulary.user_kind)
    weight = trials.weight(corpora)
    user_word = trials.user_word(corpora, weight)
    temperature = trials.temperature(list(chain.from_iterable(corpora)), weight)
    lines = ["# Written by scripts/make_ensemble.py."]
    for path, documents in zip(a.held_out, corpora, strict=True):
        scores = ", ".join(
            f"{title} {f1(model, documents):.2f}"
            for title, model in (("ensemble", ner), ("FLAT", first), ("linear tagger", second))
        )
        lines.append(f"# F1 on {len(documents):,} documents of {path.name}: {scores}.")
    lines += [f'second = "{name}"', f"weight = {weight!r}", f"temperature = {temperature!r}"]
    lines.append(f"user_word = {user_word!r}")
    if a.convention is not None:
        convention, _, path = a.convention.partition("=")
        documents = list(corpus.read(path))
        with ner.using(convention=convention):
            own = trials.weight([documents])
        lines.append(f"convention_weight = {own!r}  # chosen on {len(documents):,} documents of {Path(path).name}")
    with atomic_write(folder.path / ENSEMBLE) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    if a.rest is not None:
        trials.set(weight, temperature)
        rest = list(corpus.read(a.rest))
        given = f"times {weight} in convention `open`, are added to those of FLAT (`{ENSEMBLE}`)"
        scores_of_rest = f1(first, rest), f1(ner, rest), confidences(ner, rest)
        write_card(folder.path, about_ensemble(given, sum(map(len, corpora)), *scores_of_rest))
    record(folder.path)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
