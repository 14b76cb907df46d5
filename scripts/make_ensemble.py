"""Write ensemble.toml of the packaged model, an ensemble with the packaged lite model.

    python scripts/make_ensemble.py HELD_OUT... [--model default] [--rest HELD_OUT] [--convention NAME=CORPUS]

Its settings are chosen as by ``hanlattice combine ensemble``; see hanlattice/combination/ensemble.py. ``HELD_OUT``
are corpora that neither model was trained on: ``temperature.jsonl`` in the working folder of make_default_model.py,
a part of ``corpora/aside.jsonl``, and ``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. With ``--convention`` other
conventions have a weight of their own, chosen in the same way on a corpus of one of them, the dev set of Resume.
Run it again when one of the two models changes, and scripts/make_cascade.py after it. It reads the corpora
about sixty times.

With ``--rest``, a held-out corpus that chose nothing (``rest.jsonl`` in that folder), the scores of the ensemble
replace those in the model card.
"""

import argparse
import sys
from pathlib import Path
from textwrap import fill

import hanlattice
from hanlattice import corpus
from hanlattice.atomic import atomic_write
from hanlattice.combination.ensemble import choose
from hanlattice.combination.held_out import HeldOut, f1
from hanlattice.engines.ensemble import Ensemble
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.temperature import confidences
from hanlattice.model.digests import record
from hanlattice.model.folder import CARD, ENSEMBLE, ModelFolder
from training_data import output_of


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--model", default="default", help="folder or name of the model with FLAT")
    parser.add_argument("--convention", metavar="NAME=CORPUS", help="chooses the weight of the other conventions")
    parser.add_argument("--rest", type=Path, help="held-out corpus that chose nothing; writes the model card")
    a = parser.parse_args()
    folder, corpora, convention = ModelFolder.open(a.model), [HeldOut.read(path) for path in a.held_out], None
    if a.convention is not None:
        name, _, path = a.convention.partition("=")
        convention = name, HeldOut.read(path)
    chosen = choose(folder, "lite", corpora, convention, lambda line: print(line, flush=True))
    with atomic_write(folder.path / ENSEMBLE) as stream:
        stream.write(f"# Written by scripts/make_ensemble.py.\n{chosen.toml()}")
    if a.rest is not None:
        rest, flat = list(corpus.read(a.rest)), hanlattice.load(a.model, engine="native")
        ner = Ensemble.open(folder, NativeTagger(folder))
        given = f"times {chosen.settings.weight} in convention `open`, are added to those of FLAT (`{ENSEMBLE}`)"
        n = sum(len(one.documents) for one in corpora)
        write_card(folder.path, about_ensemble(given, n, f1(flat, rest), f1(ner, rest), confidences(ner, rest)))
    record(folder.path)
    print((folder.path / ENSEMBLE).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
