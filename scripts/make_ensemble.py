"""Choose the weight and the temperature of an ensemble, and write ensemble.toml into the folder of its FLAT.

    python scripts/make_ensemble.py HELD_OUT... [--model default] [--second lite]

``HELD_OUT`` are corpora that neither model was trained on. The weight is the one, of 0.1 to 1.5, with the largest
F1 on all their documents together. Then the temperature is fitted to them, as ``hanlattice calibrate`` does. For
the packaged models these are ``temperature.jsonl`` in the working folder of make_default_model.py, a part of
``corpora/aside.jsonl``, and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. Run it again when one of the two models
changes, and scripts/make_cascade.py after it. It reads the corpora some twenty times.
"""

import argparse
import os
from itertools import chain
from pathlib import Path
from typing import cast

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.engines.ensemble import Ensemble, EnsembleSettings
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, confidences, minimum
from hanlattice.files import atomic_write
from hanlattice.model.digests import record
from hanlattice.model.folder import ENSEMBLE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER

WEIGHTS = [round(0.1 * n, 1) for n in range(1, 16)]


def f1(ner: NER, documents: list[Document]) -> float:
    """F1 in percent."""
    return 100 * hanlattice.evaluate(ner, documents).micro.f1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--model", default="default", help="folder or name of the model with FLAT")
    parser.add_argument("--second", default="lite", help="name of a packaged linear tagger, or its folder")
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
        score = f1(ner, everything)
        print(f"weight {weight}: F1 {score:.2f}", flush=True)
        return score

    weight = max(WEIGHTS, key=score)

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
    record(folder.path)
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
