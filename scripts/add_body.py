"""Add a pretrained body to a trained FLAT, so that fine-tuning can start from both.

python scripts/add_body.py runs/with-body [--flat default] [--body pretrained]
hanlattice train --start runs/with-body --train FILE --dev FILE --output runs/mine
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from hanlattice.build import build
from hanlattice.config.parts import Part
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.model import weights
from hanlattice.model.folder import CARD, located_model

ROOT = Path(__file__).resolve().parents[1]


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
    parser.add_argument("output", type=Path, help="folder of the new model")
    parser.add_argument("--flat", default="default", help="folder of a FLAT, or default for the packaged one")
    parser.add_argument("--body", type=Path, default=ROOT / "pretrained", help="folder of the pretrained body")
    a = parser.parse_args()
    with_body(located_model(a.flat), a.body.resolve(), a.output)


if __name__ == "__main__":
    main()
