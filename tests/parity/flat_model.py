"""FLAT with the weights of a randomly initialised model of the authors' code."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.flat import build_flat
from hanlattice.encoders.positions import FourDistances
from hanlattice.inputs.batch import Batch, Words
from hanlattice.tagger import Tagger

VARIANTS: dict[str, dict[str, object]] = {
    "flat_v0_weibo": {},
    "flat_v0_maxlen175": {},
    "flat_v0_fusion_ff": {"distances": "four"},
    "flat_v0_scaled_kproj_attnff": {"scaled": True, "key_projection": True, "output_projection": True},
    "flat_v0_2layers": {"layers": 2},
    "flat_v2_unique": {"distances": "four"},
}
D = 128
PROJECTIONS = {"key_projection": False, "output_projection": False, "scaled": False}
# The authors' four parts, ss, se, es and ee, are head-head, head-tail, tail-head and tail-tail.
FUSE = "encoder.four_pos_fusion_embedding.pos_fusion_forward.0"


class FlatModel:
    """The authors' tensors of one model, and ours with their weights.

    ``parameters`` has ours by the authors' names. A file cut to a few features of the relative positions has no
    other weights; then only :meth:`distances` and :meth:`batch` can be used.
    """

    def __init__(self, folder: Path, name: str):
        arrays = np.load(folder / f"{name}.npz")
        self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files}
        self.settings: dict[str, Any] = {
            "layers": 1,
            "distances": "ends",
            "residual": "self",
            **PROJECTIONS,
            **VARIANTS[name],
        }
        self.parameters: dict[str, nn.Parameter] = {}

    def __getitem__(self, key: str) -> Tensor:
        return self.arrays[key]

    def param(self, name: str) -> Tensor:
        return self.arrays[f"param:{name}"]

    @property
    def origin(self) -> int:
        """The length of the longest sentence that the authors' table of distances was made for."""
        for key in ("param:pe", "param:pe.weight"):
            if key in self.arrays:
                return (len(self[key]) - 1) // 2
        return (int(self["rows_of_pe"]) - 1) // 2

    def batch(self) -> Batch:
        """The authors put the words of a sentence directly after its characters; we put them after the padding."""
        lengths, n_words = self["in:seq_len"], self["in:lex_num"]
        n, m = int(lengths.max()), int(n_words.max())
        chars, words = torch.zeros(3, n, dtype=torch.long), torch.zeros(4, 3, m, dtype=torch.long)
        for b, (length, count) in enumerate(zip(lengths.tolist(), n_words.tolist(), strict=True)):
            chars[b, :length] = self["in:lattice"][b, :length]
            for row, key in enumerate(("in:lattice", "in:pos_s", "in:pos_e")):
                words[row, b, :count] = self[key][b, length : length + count]
        char_mask = torch.arange(n) < lengths[:, None]
        return Batch(
            chars,
            self["in:bigrams"][:, :n].long() * char_mask,
            char_mask,
            Words(words[0], words[1], words[2], words[3], torch.arange(m) < n_words[:, None]),
        )

    def nodes(self, sentence: int) -> Tensor:
        """Our rows of the authors' rows of a sentence."""
        n, length = int(self["in:seq_len"].max()), int(self["in:seq_len"][sentence])
        return torch.tensor([*range(length), *range(n, n + int(self["in:lex_num"][sentence]))])

    def distances(self) -> tuple[FourDistances, int]:
        """The relative positions, and how many of their features have the authors' weights."""
        distances = FourDistances(D, self.settings["distances"], self.origin)
        bias = self.param(f"{FUSE}.bias")
        distances.fuse.weight.data[: len(bias)] = self.param(f"{FUSE}.weight")
        distances.fuse.bias.data[: len(bias)] = bias
        return distances.eval(), len(bias)

    def table(self, name: str) -> Table:
        return Table(self.param(f"{name}.embedding.weight")[self.param(f"{name}.words_to_words")])

    def tagger(self) -> Tagger:
        embedding = Characters(self.table("lattice_embed"), self.table("bigram_embed"))
        encoder = build_flat(
            embedding.d_out,
            WordEmbedding(self.table("lattice_embed")),
            d_model=D,
            heads=8,
            d_feed_forward=384,
            origin=self.origin,
            **self.settings,
        )
        decoder = CRF(D, (), constrained=False, boundaries=False, extra_tags=10)
        self._copy(encoder.char_projection, "char_proj")
        self._copy(encoder.word_projection, "lex_proj")
        self._copy(encoder.distances.fuse, FUSE)
        self._copy(decoder.emission, "output")
        for i, layer in enumerate(encoder.layers):
            self._copy_layer(layer, f"encoder.layer_{i}")
        decoder.transitions.data.copy_(self.param("crf.trans_m"))
        self.parameters["crf.trans_m"] = decoder.transitions
        return Tagger(embedding, encoder, decoder).eval()

    def _copy(self, module: nn.Module, name: str) -> None:
        for part in ("weight", "bias"):
            getattr(module, part).data.copy_(self.param(f"{name}.{part}"))
            self.parameters[f"{name}.{part}"] = getattr(module, part)

    def _copy_layer(self, layer: Any, name: str) -> None:
        attention = layer.attention
        self._copy(attention.query, f"{name}.attn.w_q")
        self._copy(attention.value, f"{name}.attn.w_v")
        self._copy(attention.position, f"{name}.attn.w_r")
        if self.settings["key_projection"]:
            self._copy(attention.key, f"{name}.attn.w_k")
        if self.settings["output_projection"]:
            self._copy(attention.output, f"{name}.attn.ff_final")
        for part in "uv":
            getattr(attention, part).data.copy_(self.param(f"{name}.attn.{part}"))
            self.parameters[f"{name}.attn.{part}"] = getattr(attention, part)
        if f"param:{name}.ff.w0.weight" in self.arrays:
            self._copy(layer.feed_forward.inner, f"{name}.ff.w0")
            self._copy(layer.feed_forward.outer, f"{name}.ff.w1")
        self._copy(layer.attention_norm, f"{name}.layer_postprocess.layer_norm")
