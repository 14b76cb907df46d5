"""Make the large model, FLAT over a pretrained body, from the packaged model and its training data.

    HANLATTICE_DATA=… python scripts/make_large_model.py [--work runs/default] [--processes 2] [--body pretrained]

scripts/make_default_model.py has to run before it with the same working folder. Training starts from the FLAT of
its second stage, to which the body is added; the settings are papers/hanlattice/large.toml. Then run::

    python scripts/make_ensemble.py runs/default/temperature.jsonl $HANLATTICE_DATA/labelled/wild/dev.jsonl
        --model large/src/hanlattice_large/model --rest runs/default/rest.jsonl
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import torch

from hanlattice.build import build
from hanlattice.config.parts import Part
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.model import weights
from hanlattice.model.folder import CARD
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


def with_body(flat: Path, body: Path, output: Path) -> Path:
    """Add a pretrained body to a FLAT, and return the folder of the new model.

    FLAT reads the body's output beside its own vectors. The weights of this output are zero at first,
    so the new model finds what the old one finds.

    Args:
        flat: the folder of a FLAT over characters and bigrams
        body: the folder of the body
        output: the folder of the new model; if it exists, nothing is done
    """
    if (output / CARD).exists():
        return output
    ner = weights.load_model(flat)
    settings = {"path": str(body), "mode": "tuned", "bigrams": True}
    config = replace(ner.config, embedding=Part("own", settings))
    old, names = ner.tagger.state_dict(), ner.vocabulary
    widths = {
        "chars": old["embedding.chars.weight"].shape[1],
        "bigrams": old["embedding.bigrams.weight"].shape[1],
        "words": old["encoder.words.table.weight"].shape[1],
    }
    tagger = build(config, Tables.empty(names, widths), names.labels, names.conventions)
    new = tagger.state_dict()
    wide, narrow = new["encoder.char_projection.weight"].shape[1], old["encoder.char_projection.weight"].shape[1]
    with torch.no_grad():
        for name, weight in old.items():
            if name.startswith("embedding."):
                new[name.replace("embedding.", "embedding.beside.", 1)].copy_(weight)
            elif weight.shape == new[name].shape:
                new[name].copy_(weight)
            else:  # it reads one or several vectors of characters, each of them behind the output of the body
                new[name].zero_()
                new[name].unflatten(-1, (-1, wide))[..., wide - narrow :] = weight.unflatten(-1, (-1, narrow))
    weights.save_model(output, tagger, names, ner.lexicon, config, card="A FLAT and a pretrained body.")
    return output


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
