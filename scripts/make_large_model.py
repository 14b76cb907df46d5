"""Make the large model, FLAT over a pretrained body, from the training data of the packaged model.

    HANLATTICE_DATA=… python scripts/make_large_model.py [--work runs/default] [--processes 2] [--body pretrained]

Training starts from the teacher of training_data.py, which knows the convention ``open`` alone. The settings are
papers/hanlattice/large.toml. Then run::

    python scripts/make_ensemble.py runs/default/temperature.jsonl $HANLATTICE_DATA/labelled/wild/dev.jsonl
        --model large/src/hanlattice_large/model
"""

import argparse
import os
from pathlib import Path

from make_default_model import About, finish
from training_data import PAPERS, ROOT, prepare, settings_without, trained

OUTPUT = ROOT / "large" / "src" / "hanlattice_large" / "model"
LARGE = About(
    "The large model",
    "FLAT over a pretrained character Transformer, bigrams and words, with a CRF for each annotation convention and"
    " a softmax for `words`.",
    """
    HANLATTICE_DATA=… python scripts/make_body.py
    HANLATTICE_DATA=… python scripts/make_large_model.py
    python scripts/make_ensemble.py runs/default/temperature.jsonl $HANLATTICE_DATA/labelled/wild/dev.jsonl \\
      --model large/src/hanlattice_large/model --rest runs/default/rest.jsonl
""",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/default"), help="working folder")
    parser.add_argument("--processes", type=int, default=2, help="number of training processes")
    parser.add_argument("--body", type=Path, default=ROOT / "pretrained", help="folder of the pretrained body")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder of the model")
    a = parser.parse_args()
    work = a.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    corpora = prepare(work, a.body.resolve(), a.processes)
    os.environ["TEACHER"] = str(work / "teacher")
    settings = settings_without(PAPERS / "hanlattice" / "large.toml", ())
    finish(work, trained(settings, work / "large", a.processes), corpora, a.output, LARGE)


if __name__ == "__main__":
    main()
