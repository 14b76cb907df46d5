"""Reduce the tensors of the authors' code to a size that fits into the repository: tests/parity/data.

    python scripts/cut_parity_fixtures.py FIXTURES

FIXTURES is a folder of tensors written by the authors' implementations: randomly initialised weights, synthetic
ids, intermediate results and gradients. The script keeps:

- Lattice LSTM: everything, because the model is small.
- TENER: the model with two layers. The table of sinusoids is left out, because it can be computed.
- FLAT: embeddings, attention, emissions and CRF of the model with four distances; from every other model only the
  weights and outputs of the first ``FEATURES`` features of the relative positions.

The script writes only numbers. It does not read the texts and vocabularies in FIXTURES.
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[1] / "tests" / "parity" / "data"
LIMIT = 1_000_000  # bytes, for all files together
FEATURES = 8

FLAT_MODELS = (
    "flat_v0_weibo",
    "flat_v0_maxlen175",
    "flat_v0_fusion_ff",
    "flat_v0_scaled_kproj_attnff",
    "flat_v0_2layers",
    "flat_v2_unique",
)
FLAT_WHOLE = "flat_v0_fusion_ff"
FUSE = "param:encoder.four_pos_fusion_embedding.pos_fusion_forward.0"
POSITIONS = ("in:lattice", "in:bigrams", "in:seq_len", "in:lex_num", "in:pos_s", "in:pos_e")
WHOLE = (
    *(
        f"param:{table}_embed.{part}"
        for table in ("lattice", "bigram")
        for part in ("embedding.weight", "words_to_words")
    ),
    *(f"param:{linear}.{part}" for linear in ("char_proj", "lex_proj", "output") for part in ("weight", "bias")),
    *(f"param:encoder.layer_0.attn.w_{x}.{part}" for x in "qvr" for part in ("weight", "bias")),
    *(f"param:encoder.layer_0.attn.{x}" for x in "uv"),
    *(f"param:encoder.layer_0.layer_postprocess.layer_norm.{part}" for part in ("weight", "bias")),
    "param:crf.trans_m",
    *("in:target", "out:encoder_input", "out:attn_output", "out:ffn_output", "out:encoder_output", "out:emissions"),
    *("out:crf_loss_per_sentence", "out:crf_loss_mean", "out:viterbi_paths", "out:viterbi_scores"),
    *("grad:output.weight", "grad:output.bias", "grad:crf.trans_m"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fixtures", type=Path, help="folder of the authors' tensors")
    fixtures = parser.parse_args().fixtures
    DATA.mkdir(exist_ok=True)
    for name in ("lattice_lstm.npz", "lattice_lstm_meta.json", "tener_meta.json"):
        shutil.copyfile(fixtures / name, DATA / name)
    tener: dict[str, Any] = {key: a for key, a in np.load(fixtures / "tener.npz").items() if _is_kept(key)}
    np.savez_compressed(DATA / "tener.npz", **tener)
    for name in FLAT_MODELS:
        np.savez_compressed(DATA / f"{name}.npz", **flat(dict(np.load(fixtures / f"{name}.npz")), name))
    total = sum(path.stat().st_size for path in DATA.iterdir())
    print(f"{total:,} bytes in {DATA}")
    if total > LIMIT:
        raise SystemExit(f"more than {LIMIT:,} bytes")


def _is_kept(key: str) -> bool:
    """Whether a tensor of TENER is kept."""
    return key.startswith("scaled_prenorm:") and "pos_embed.weights" not in key


def flat(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    """The arrays of one FLAT model that are kept, by name."""
    pe = arrays["param:pe" if "param:pe" in arrays else "param:pe.weight"]
    kept = {key: arrays[key] for key in POSITIONS} | {"rows_of_pe": np.array(len(pe))}
    whole = name == FLAT_WHOLE
    features = slice(None) if whole else slice(FEATURES)
    kept |= {f"{FUSE}.{part}": arrays[f"{FUSE}.{part}"][features] for part in ("weight", "bias")}
    kept["out:rel_pos_embedding"] = arrays["out:rel_pos_embedding"][..., :FEATURES]
    return kept | ({key: arrays[key] for key in WHOLE} if whole else {})


if __name__ == "__main__":
    main()
