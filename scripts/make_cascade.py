"""Write cascade.toml of the packaged model, a cascade with the packaged lite model.

    python scripts/make_cascade.py HELD_OUT... [--model default] [--lost 0.5]

The threshold is chosen as by ``hanlattice combine cascade``; see hanlattice/combination/cascade.py. ``HELD_OUT``
are corpora that neither model was trained on: ``corpora/aside.jsonl`` in the folder of make_default_model.py, and
``$HANLATTICE_DATA/labelled/wild/dev.jsonl``. Run it again when one of the two models changes. It takes as long as
the accurate model needs for the corpora.
"""

import argparse
from pathlib import Path

import hanlattice
from hanlattice.atomic import atomic_write
from hanlattice.combination.cascade import choose
from hanlattice.combination.held_out import HeldOut
from hanlattice.model.digests import record
from hanlattice.model.folder import CASCADE, ModelFolder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("held_out", type=Path, nargs="+", help="corpus that neither model was trained on")
    parser.add_argument("--model", default="default", help="folder or name of the accurate model")
    parser.add_argument("--lost", type=float, default=0.5, help="largest loss of F1, in points")
    a = parser.parse_args()
    corpora, folder = [HeldOut.read(path) for path in a.held_out], ModelFolder.open(a.model).path
    chosen = choose(hanlattice.load("lite"), hanlattice.load(a.model), "lite", corpora, a.lost)
    with atomic_write(folder / CASCADE) as stream:
        stream.write(f"# Written by scripts/make_cascade.py --lost {a.lost:g}.\n{chosen.toml()}")
    record(folder)
    print((folder / CASCADE).read_text(encoding="utf-8"), end="")


if __name__ == "__main__":
    main()
