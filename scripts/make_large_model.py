"""Make the large model, FLAT over a pretrained body, from the packaged model and its training data.

    HANLATTICE_DATA=… python scripts/make_large_model.py [--work runs/default] [--processes 2] [--body pretrained]

scripts/make_default_model.py has to run before it with the same working folder. Training starts from the FLAT of
its second stage, to which the body is added; the settings are papers/hanlattice/large.toml. Then run::

    python scripts/make_ensemble.py runs/default/temperature.jsonl $HANLATTICE_DATA/labelled/wild/dev.jsonl
        --model large/src/hanlattice_large/model --rest runs/default/rest.jsonl
"""

import argparse
import os
from pathlib import Path

from add_body import with_body
from make_default_model import About, finish, settings_of
from training_data import ROOT, corpora_in, trained

OUTPUT = ROOT / "large" / "src" / "hanlattice_large" / "model"
BIGRAMS, WORDS = 150_000, 190_000  # rows of the embedding tables
LARGE = About(
    "The large model",
    "FLAT over a pretrained character Transformer, bigrams and words, with a CRF for each annotation convention and"
    " a softmax for `words`.",
    """
    HANLATTICE_DATA=… python scripts/make_body.py
    HANLATTICE_DATA=… python scripts/make_default_model.py
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
    work, body = a.work.resolve(), a.body.resolve()
    corpora = corpora_in(work)
    os.environ["OPEN_BODY"] = str(body)
    os.environ["OPEN_START"] = str(with_body(work / "final", body, work / "with-body"))
    run = trained(settings_of("large", ()), work / "large", a.processes)
    finish(work, run, corpora, a.output, LARGE, BIGRAMS, WORDS)


if __name__ == "__main__":
    main()
