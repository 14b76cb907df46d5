"""Choose the weight and the temperature of an ensemble, and write ensemble.toml into the folder of its FLAT.

    python scripts/make_ensemble.py HELD_OUT... [--model default] [--second lite]

``HELD_OUT`` are corpora that neither model was trained on. The weight is the one, of 0.1 to 1.5, with the largest
mean of the F1 on them. Then the temperature is fitted to all of them, as ``hanlattice calibrate`` does. For the
packaged models these are ``temperature.jsonl`` in the working folder of make_default_model.py, a part of
``corpora/aside.jsonl``, and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. Run it again when one of the two models
changes, and scripts/make_cascade.py after it. It reads the corpora some twenty times.
"""

import argparse
import os
from pathlib import Path

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.evaluation.temperature import HIGHEST, LOWEST, PRECISION, confidences, minimum
from hanlattice.files import atomic_write
from hanlattice.model.digests import record
from hanlattice.model.folder import ENSEMBLE, PACKAGED, ModelFolder
from hanlattice.pipeline import NER

WEIGHTS = [round(0.1 * n, 1) for n in range(1, 16)]


def with_settings(model: str, second: str, weight: float, temperature: float, comments: list[str]) -> NER:
    """Write the settings of an ensemble, and open it."""
    folder = ModelFolder.open(model).path
    name = second if second in PACKAGED else os.path.relpath(second, folder)
    with atomic_write(folder / ENSEMBLE) as stream:
        stream.writelines(f"# {line}\n" for line in comments)
        stream.write(f'second = "{name}"\nweight = {weight!r}\ntemperature = {temperature!r}\n')
    record(folder)
    return hanlattice.load(model, engine="ensemble", threads=1)


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
    everything = [document for documents in corpora for document in documents]

    def mean(weight: float) -> float:
        ner = with_settings(a.model, a.second, weight, 1.0, [])
        scores = [f1(ner, documents) for documents in corpora]
        print(f"weight {weight}: F1", *(f"{score:.2f}" for score in scores), flush=True)
        return sum(scores) / len(scores)

    weight = max(WEIGHTS, key=mean)

    def loss(power: float) -> float:
        return confidences(with_settings(a.model, a.second, weight, 2**power, []), everything).loss

    temperature = round(2 ** minimum(loss, LOWEST, HIGHEST, PRECISION), 3)
    models = [hanlattice.load(a.model, engine="native", threads=1), hanlattice.load(a.second)]
    models.insert(0, with_settings(a.model, a.second, weight, temperature, []))
    comments = ["Written by scripts/make_ensemble.py."]
    for path, documents in zip(a.held_out, corpora, strict=True):
        both, first, second = (f1(ner, documents) for ner in models)
        comments.append(
            f"F1 on {len(documents):,} documents of {path.name}: ensemble {both:.2f}, FLAT {first:.2f}, linear"
            f" tagger {second:.2f}."
        )
    with_settings(a.model, a.second, weight, temperature, comments)
    print((ModelFolder.open(a.model).path / ENSEMBLE).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
