"""FLAT against tensors that the authors' code wrote.

The fixtures hold a randomly initialised model of the original: weights, inputs, intermediate tensors, loss,
gradients and decoded paths. Faults that only these tests see: a word's last character off by one, the four
distances in another order, positions counted from 0, the residual that adds a sub-layer to itself.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from hanlattice.decoders.structs.decoding import viterbi
from hanlattice.decoders.structs.linear_chain import log_partition, score
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.flat import build_flat
from hanlattice.encoders.positions import Nodes
from hanlattice.inputs.batch import Batch, Words
from hanlattice.tagger import Tagger

DATA = os.environ.get("HANLATTICE_DATA")
FIXTURES = Path(DATA).parent / "fixtures" if DATA else Path("fixtures")
pytestmark = pytest.mark.skipif(
    not (FIXTURES / "flat_meta.json").exists(),
    reason="parity fixtures not found: set HANLATTICE_DATA to the data folder beside them",
)

VARIANTS = {
    "flat_v0_weibo": {},
    "flat_v0_maxlen175": {},
    "flat_v0_fusion_ff": {"distances": "four"},
    "flat_v0_scaled_kproj_attnff": {"scaled": True, "key_projection": True, "output_projection": True},
    "flat_v0_2layers": {"layers": 2},
    "flat_v2_unique": {"distances": "four"},
}
# In the fixture of four distances the parts come as ss, se, es, ee: head-head, head-tail, tail-head, tail-tail.


class Fixture:
    def __init__(self, name: str):
        arrays = np.load(FIXTURES / f"{name}.npz")
        self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files}
        self.settings = VARIANTS[name]

    def __getitem__(self, key: str) -> torch.Tensor:
        return self.arrays[key]

    def param(self, name: str) -> torch.Tensor:
        return self.arrays[f"param:{name}"]

    def batch(self) -> Batch:
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

    def tagger(self) -> Tagger:
        table = self.param("lattice_embed.embedding.weight")[self.param("lattice_embed.words_to_words")]
        bigrams = self.param("bigram_embed.embedding.weight")[self.param("bigram_embed.words_to_words")]
        embedding = Characters(Table(table.clone()), Table(bigrams.clone()))
        settings = {
            "layers": 1, "distances": "ends", "key_projection": False, "output_projection": False, "scaled": False,
            "residual": "self", **self.settings,
        }  # fmt: skip
        pe = self.param("pe" if "param:pe" in self.arrays else "pe.weight")
        encoder = build_flat(
            embedding.d_out,
            WordEmbedding(Table(table.clone())),
            d_model=128,
            heads=8,
            d_feed_forward=384,
            origin=(len(pe) - 1) // 2,
            **settings,
        )
        decoder = CRF(128, ("X",) * 0, constrained=False, boundaries=False, extra_tags=10)
        tagger = Tagger(embedding, encoder, decoder)
        copies = {
            encoder.char_projection: "char_proj",
            encoder.word_projection: "lex_proj",
            encoder.distances.fuse: "encoder.four_pos_fusion_embedding.pos_fusion_forward.0",
            decoder.emission: "output",
        }
        for i, layer in enumerate(encoder.layers):
            a, prefix = layer.attention, f"encoder.layer_{i}"
            copies |= {
                a.query: f"{prefix}.attn.w_q",
                a.value: f"{prefix}.attn.w_v",
                a.position: f"{prefix}.attn.w_r",
            }
            if settings["key_projection"]:
                copies[a.key] = f"{prefix}.attn.w_k"
            if settings["output_projection"]:
                copies[a.output] = f"{prefix}.attn.ff_final"
            copies |= {layer.feed_forward.inner: f"{prefix}.ff.w0", layer.feed_forward.outer: f"{prefix}.ff.w1"}
            copies[layer.attention_norm] = f"{prefix}.layer_postprocess.layer_norm"
            a.u.data.copy_(self.param(f"{prefix}.attn.u"))
            a.v.data.copy_(self.param(f"{prefix}.attn.v"))
        self.names = {}
        for module, name in copies.items():
            for part in ("weight", "bias"):
                getattr(module, part).data.copy_(self.param(f"{name}.{part}"))
                self.names[f"{name}.{part}"] = getattr(module, part)
        decoder.transitions.data.copy_(self.param("crf.trans_m"))
        self.names["crf.trans_m"] = decoder.transitions
        self.names |= {
            f"encoder.layer_{i}.attn.{x}": getattr(layer.attention, x)
            for i, layer in enumerate(encoder.layers)
            for x in "uv"
        }
        return tagger.eval()


@pytest.fixture(params=VARIANTS)
def fixture(request: pytest.FixtureRequest) -> Fixture:
    return Fixture(request.param)


def test_relative_position_encoding(fixture: Fixture) -> None:
    """Every row of the table that a pair of real nodes reads equals the original's encoding of that pair."""
    tagger, batch = fixture.tagger(), fixture.batch()
    n = batch.chars.shape[1]
    nodes = Nodes.of(batch.words.head, batch.words.tail, n)
    expected = fixture["out:rel_pos_embedding"]
    for b, length in enumerate(fixture["in:seq_len"].tolist()):
        count = int(fixture["in:lex_num"][b])
        ours = torch.tensor([*range(length), *range(n, n + count)])  # the original packs words after its characters
        for i, query in enumerate(ours.tolist()):
            query_length = nodes.lengths[nodes.kind[b, query]]
            table = tagger.encoder.distances(n, nodes.lengths, query_length)
            rows = table[nodes.head[b, query] - nodes.head[b, ours] + n - 1, nodes.kind[b, ours]]
            assert_close(rows, expected[b, i, : length + count], atol=2e-5, rtol=1e-5)


def test_attention_and_encoder_output(fixture: Fixture) -> None:
    tagger, batch = fixture.tagger(), fixture.batch()
    h = tagger.encoder(tagger.embedding(batch), batch)
    expected = fixture["out:encoder_output"]
    for b, length in enumerate(fixture["in:seq_len"].tolist()):
        assert_close(h[b, :length], expected[b, :length], atol=2e-5, rtol=1e-5)
    if len(tagger.encoder.layers) == 1:
        seen = []
        tagger.encoder.layers[0].attention.register_forward_hook(lambda m, i, out: seen.append(out))
        tagger(batch)
        for b, length in enumerate(fixture["in:seq_len"].tolist()):
            attention = fixture["out:attn_output"][b, :length]
            assert_close(seen[0][b, :length], attention, atol=2e-5, rtol=1e-5)


def test_emissions_loss_and_paths(fixture: Fixture) -> None:
    tagger, batch = fixture.tagger(), fixture.batch()
    scores = tagger(batch)
    mask, n = batch.mask, batch.mask.shape[1]
    assert_close(scores[mask], fixture["out:emissions"][:, :n][mask], atol=2e-5, rtol=1e-5)
    chain = tagger.decoder.chain(scores, mask)
    loss = log_partition(chain) - score(chain, fixture["in:target"][:, :n].long())
    assert_close(loss, fixture["out:crf_loss_per_sentence"].double(), atol=1e-4, rtol=1e-5)
    assert_close(loss.mean().float(), fixture["out:crf_loss_mean"], atol=1e-4, rtol=1e-5)
    tags, best = map(torch.from_numpy, viterbi(chain.potentials()))
    assert_close(tags[mask], fixture["out:viterbi_paths"][:, :n].long()[mask])
    assert_close(best, fixture["out:viterbi_scores"], atol=1e-4, rtol=1e-5)


def test_gradients(fixture: Fixture) -> None:
    """The gradient of every weight that the original trains, which sees faults that outputs hide."""
    tagger, batch = fixture.tagger(), fixture.batch()
    chain = tagger.decoder.chain(tagger(batch), batch.mask)
    target = fixture["in:target"][:, : batch.mask.shape[1]].long()
    (log_partition(chain) - score(chain, target)).mean().backward()
    compared = 0
    for name, parameter in fixture.names.items():
        key = f"grad:{name}"
        if key in fixture.arrays:
            assert_close(parameter.grad, fixture[key], atol=3e-5, rtol=2e-4, msg=lambda m, n=name: f"{n}: {m}")
            compared += 1
    assert compared >= 15


def test_fixtures_are_described() -> None:
    meta = json.loads((FIXTURES / "flat_meta.json").read_text(encoding="utf-8"))
    assert [len(chars) for chars, _ in meta["sentences"]] == [7, 8, 3]
