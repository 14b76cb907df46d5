"""Choose the weight and the temperature of an ensemble, and write ensemble.toml into the folder of its FLAT.

    python scripts/make_ensemble.py HELD_OUT... [--model default] [--second lite] [--rest HELD_OUT]

``HELD_OUT`` are corpora that neither model was trained on. The weight is the smallest one, of 0.1 to 1.5, whose
mean F1 over these corpora is at most 0.1 below the largest: FLAT learned from more corpora, so it is better on text
of other kinds. Then the temperature is fitted to them, as ``hanlattice calibrate`` does. For the packaged models
these are ``temperature.jsonl`` in the working folder of make_default_model.py, a part of ``corpora/aside.jsonl``,
and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. Run it again when one of the two models changes, and
scripts/make_cascade.py after it. It reads the corpora some twenty times.

With ``--rest``, a held-out corpus that chose nothing (``rest.jsonl`` in that folder), the scores of the ensemble
replace those in the model card.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from textwrap import fill
from typing import cast

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, confidences, minimum
from hanlattice.files import atomic_write
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, ENSEMBLE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER
from training_data import output_of

WEIGHTS = [round(0.1 * n, 1) for n in range(1, 16)]
TOLERANCE = 0.1  # points of F1


def chosen(scores: Mapping[float, float]) -> float:
    """The smallest weight whose F1 is at most `TOLERANCE` below the largest."""
    return min(weight for weight, score in scores.items() if score >= max(scores.values()) - TOLERANCE)


def f1(ner: NER, documents: list[Document]) -> float:
    """F1 in percent."""
    return 100 * hanlattice.evaluate(ner, documents).micro.f1


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
        f"With convention `open` the model is an ensemble: the scores of the packaged lite model, {given}. The sums"
        f" are divided by a temperature. {chosen:,} held-out documents, wild dev among them, chose the weight and"
        f" the temperature. On the other held-out sentences F1 with six labels is {together:.2f} (FLAT alone"
        f" {alone:.2f}), and the expected calibration error over {len(found.p):,} predicted entities is"
        f" {found.error:.4f}.",
        116,
    )


def write_card(folder: Path, about: str) -> None:
    """Replace the scores in the card of a model by those that benchmarks/open_text.py prints."""
    before, scores, after = (folder / CARD).read_text(encoding="utf-8").partition("## Scores\n")
    intro = after.strip().split("\n\n")[0]
    table = output_of([sys.executable, "benchmarks/open_text.py", "--model", folder]).strip()
    end = after[after.index("## How it was made") :]
    with atomic_write(folder / CARD) as stream:
        stream.write(f"{before}{scores}\n{intro}\n\n{table}\n\n{about}\n\n{end}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--model", default="default", help="folder or name of the model with FLAT")
    parser.add_argument("--second", default="lite", help="name of a packaged linear tagger, or its folder")
    parser.add_argument("--rest", type=Path, help="held-out corpus that chose nothing; writes the model card")
    a = parser.parse_args()
    corpora = [list(corpus.read(path)) for path in a.held_out]
    folder = ModelFolder.open(a.model)
    first, second = hanlattice.load(a.model, engine="native", threads=1), hanlattice.load(a.second)
    name = a.second if a.second in PACKAGED else os.path.relpath(a.second, folder.path)
    ner = Ensemble.open(folder, first.engine, settings=EnsembleSettings(name, 1.0, 1.0))
    flat, linear = cast(NativeTagger, first.engine), cast(Ensemble, ner.engine).second

    everything = list(chain.from_iterable(corpora))

    def score(weight: float) -> float:
        ner.engine = Ensemble(flat, linear, weight, 1.0)
        score = sum(f1(ner, documents) for documents in corpora) / len(corpora)
        print(f"weight {weight}: mean F1 {score:.2f}", flush=True)
        return score

    weight = chosen({weight: score(weight) for weight in WEIGHTS})

    def loss(power: float) -> float:
        ner.engine = Ensemble(flat, linear, weight, 2**power)
        return confidences(ner, everything).loss

    temperature = round(2 ** minimum(loss, LOWEST, HIGHEST, PRECISION), 3)
    lines = ["# Written by scripts/make_ensemble.py."]
    for path, documents in zip(a.held_out, corpora, strict=True):
        scores = ", ".join(
            f"{title} {f1(model, documents):.2f}"
            for title, model in (("ensemble", ner), ("FLAT", first), ("linear tagger", second))
        )
        lines.append(f"# F1 on {len(documents):,} documents of {path.name}: {scores}.")
    lines += [f'second = "{name}"', f"weight = {weight!r}", f"temperature = {temperature!r}"]
    with atomic_write(folder.path / ENSEMBLE) as stream:
        stream.writelines(f"{line}\n" for line in lines)
    if a.rest is not None:
        ner.engine = Ensemble(flat, linear, weight, temperature)
        rest = list(corpus.read(a.rest))
        given = f"times {weight}, are added to those of FLAT (`{ENSEMBLE}`)"
        n_chosen = sum(map(len, corpora))
        write_card(
            folder.path, about_ensemble(given, n_chosen, f1(first, rest), f1(ner, rest), confidences(ner, rest))
        )
    record(folder.path)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
