"""Encoders before training: their first weights, the limits of their settings, and where they drop out."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from annotation_checks import switched_off
from hanlattice.embeddings.initial_weights import Rows
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.augmented import (
    Augmented,
    nearest,
    nearest_rows,
    nearest_words,
    saved_words,
)
from hanlattice.encoders.bilstm import BiLSTM, StackedLSTM
from hanlattice.encoders.cgn import Fusion, GraphAttention, build_cgn
from hanlattice.encoders.flat import FlatLayer, LatticeAttention, build_flat
from hanlattice.encoders.idcnn import build_idcnn
from hanlattice.encoders.identity import Identity
from hanlattice.encoders.lattice_lstm import LatticeLSTM
from hanlattice.encoders.lgn import LGN, LONGEST, Graph
from hanlattice.encoders.lr_cnn import LRCNN
from hanlattice.encoders.positions import Distant, Nodes, Sinusoidal, TrainedDistances, sinusoid
from hanlattice.encoders.positions.absolute import Learned
from hanlattice.encoders.positions.lattice import SelfMatched
from hanlattice.encoders.positions.recursive import Flow, Recurrence
from hanlattice.encoders.positions.relative import Biases, Buckets, Disentangled, Shaw, XLNet
from hanlattice.encoders.transformer import Attention, Transformer, TransformerLayer, build_transformer
from hanlattice.encoders.word_bilstm import WordBiLSTM
from hanlattice.inputs.batch import Words
from hanlattice.layers.feed_forward import FeedForward
from hanlattice.vectors import Vectors


def words(d: int = 8) -> WordEmbedding:
    return WordEmbedding(Table(torch.ones(4, d)))


def layer() -> TransformerLayer:
    return TransformerLayer(Attention(4, 2), FeedForward(4, 4, 0.0), 4)


def spread(weight: Tensor) -> float:
    return float(weight.detach().std())


class TestFirstWeights:
    def test_random_vectors_are_uniform(self) -> None:
        torch.manual_seed(0)
        for weight, d in (
            (LRCNN(3, words(5000), d_model=4).no_word, 5000),
            (LGN(3, words(), d_model=1500, steps=1, heads=1, d_head=1).no_word, 1500),
        ):
            bound = (3 / d) ** 0.5
            assert float(weight.detach().max()) == pytest.approx(bound, rel=0.01)
            assert float(weight.detach().min()) == pytest.approx(-bound, rel=0.01)

    def test_random_vectors_are_normal(self) -> None:
        torch.manual_seed(0)
        for weight, deviation in (
            (Learned(100, 1, 1, max_length=100).table, 0.02),
            (Disentangled(100, 1, 1, span=50).table, 0.02),
            (Recurrence(5000, 1, 1).first, 0.02),
            (Flow(2000, 1, 1).first, 0.02),
            (XLNet(5000, 1, 1).segment_tables[0], 0.02),
            (LGN(3, words(), d_model=4, d_place=2000, steps=2).directions[0].places, 1.0),
        ):
            assert spread(weight) == pytest.approx(deviation, rel=0.06)  # type: ignore[arg-type]

    def test_xavier(self) -> None:
        """Uniform, with a bound of sqrt(6 / (inputs + outputs))."""
        torch.manual_seed(0)
        lattice, graph = LatticeAttention(600, 2), GraphAttention(3, 300, 2, average=False, dropout=0.0)
        biases, shaw, segments = Biases(600, 2, 1), Shaw(600, 2, 1, clip=3), XLNet(600, 2, 1)
        for weight in (
            *(lattice.u, lattice.v, graph.query, graph.key, biases.u[0], biases.v[0]),
            *(shaw.key_tables[0], shaw.value_tables[0], segments.segment_biases[0]),
        ):
            bound = (6 / sum(weight.shape)) ** 0.5
            assert float(weight.detach().abs().max()) == pytest.approx(bound, rel=0.03)

    def test_of_a_lattice_lstm(self) -> None:
        """Inputs are orthogonal, states the identity for each gate, and biases 0."""
        encoder = LatticeLSTM(9, words(), d_hidden=5)
        for direction in encoder.directions:
            for kind, gates in (("char", 4), ("word", 3), ("merge", 1)):
                of_input, of_state = getattr(direction, f"{kind}_input"), getattr(direction, f"{kind}_state")
                product = of_input.weight.T @ of_input.weight if gates > 1 else of_input.weight @ of_input.weight.T
                torch.testing.assert_close(product, torch.eye(len(product)), atol=1e-5, rtol=0)
                assert torch.equal(of_state.weight, torch.eye(5).repeat(gates, 1))
                assert not of_input.bias.any()
        assert LatticeLSTM(9, words(), d_hidden=5, coupled=True).ahead.char_input.out_features == 15

    def test_of_idcnn(self) -> None:
        torch.manual_seed(0)
        for first, bias, gain in (("relu", 0.01, 2.0), ("linear", None, 1.0)):
            encoder = build_idcnn(40, d_hidden=60, first=first, init="xavier")  # type: ignore[arg-type]
            entry = encoder.entry.inner
            assert float(entry.weight.detach().abs().max()) == pytest.approx((gain * 6 / 300) ** 0.5, rel=0.01)
            assert (entry.bias is None) == (bias is None)
            if bias is not None:
                assert bool((entry.bias == bias).all())  # type: ignore[union-attr]
            for parameter in encoder.blocks.parameters():
                if parameter.dim() == 1:
                    assert not parameter.any()
                else:
                    assert float(parameter.detach().abs().max()) == pytest.approx((6 / 360) ** 0.5, rel=0.01)
        assert encoder.keeps_initialisation
        assert not BiLSTM(3).keeps_initialisation

    def test_zeros_and_ones(self) -> None:
        assert not Buckets(8, 2, 1).table.any()
        assert not WordBiLSTM(3, words()).unmatched.any()
        vector, number = Fusion(3, 4, "vector").weights, Fusion(3, 4, "scalar").weights
        assert (vector.shape, number.shape) == ((4, 4), (4, 1))
        assert bool((vector == 1).all())
        assert bool((number == 1).all())
        assert Fusion(3, 4, "matrix").matrix.weight.shape == (4, 12)  # type: ignore[union-attr]
        trained = TrainedDistances(6, 3, origin=5)
        assert torch.equal(trained.table, sinusoid(torch.arange(2, 9), 6))
        assert torch.equal(trained(torch.tensor([-9, -3, 0, 3, 4])), trained.table[[0, 0, 3, 6, 6]])


@pytest.mark.parametrize(
    ("make", "least"),
    [
        (lambda n: StackedLSTM(3, 2, n), 1),
        (lambda n: build_cgn(3, words(), graph_layers=n, d_model=8), 1),
        (lambda n: build_idcnn(3, d_hidden=4, repeats=n), 1),
        (lambda n: build_idcnn(3, d_hidden=4, dilations=(2, n)), 1),
        (lambda n: LGN(3, words(), steps=n), 1),
        (lambda n: LRCNN(3, words(), layers=n), 2),
        (lambda n: LRCNN(3, words(), rethinking=n), 0),
        (lambda n: Transformer(4, nn.Identity(), [layer()] * n, Sinusoidal(4, 1, 1)), 1),
        (lambda n: Shaw(4, 1, 1, clip=n), 1),
        (lambda n: Disentangled(4, 1, 1, span=n), 1),
        (lambda n: Disentangled(4, 1, 1, span=n, log_distance=8), 2),
        (lambda n: Disentangled(4, 1, 1, span=6, log_distance=n), 6),
        (lambda n: Buckets(4, 1, 1, max_distance=n), 9),
        (lambda n: Buckets(4, 1, 1, buckets=4 * n), 1),
        (lambda n: Flow(4, 1, 1, solver_steps=n), 1),
        (lambda n: nearest(torch.eye(5), n), 1),
        (lambda n: nearest_words("重", 3, Vectors(("重", "庆"), np.eye(2, dtype=np.float32)), n), 1),
    ],
)
def test_the_least_value_of_a_setting(make: Callable[[int], object], least: int) -> None:
    make(least)
    with pytest.raises(ValueError, match=r"must be|at least|above"):
        make(least - 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LRCNN(3, words(), scales="max"), "scales must be 'sum' or 'mlp', not 'max'"),  # type: ignore[arg-type]
        (lambda: Sinusoidal(4, 1, 1, layout="other"), "layout must be 'interleaved' or 'halves'"),  # type: ignore[arg-type]
        (lambda: Sinusoidal(5, 1, 1), r"d_model \(5\) must be even"),
        (lambda: TransformerLayer(Attention(4, 2), FeedForward(4, 4, 0.0), 4, norm="x"), "norm must be 'post' or"),  # type: ignore[arg-type]
        (lambda: FlatLayer(LatticeAttention(4, 2), FeedForward(4, 4, 0.0), 4, residual="x"), "residual must be"),  # type: ignore[arg-type]
        (lambda: Attention(6, 4), r"d_model \(6\) must be a multiple of heads \(4\)"),
        (lambda: LatticeAttention(6, 4), r"d_model \(6\) must be a multiple of heads \(4\)"),
        (lambda: build_transformer(5, input_projection=False), r"d_model \(160\) must be the embedding's width, 5"),
        (lambda: build_cgn(3, words(), fusion="x"), "fusion must be 'matrix', 'vector' or 'scalar', not 'x'"),  # type: ignore[arg-type]
        (lambda: Buckets(4, 1, 1, buckets=6), "must be a multiple of 4"),
        (lambda: Disentangled(4, 1, 1, content_to_position=False, position_to_content=False), "one of content_to"),
        (lambda: Flow(4, 1, 1, interval=0.0), "must be above 0"),
        (lambda: build_idcnn(3, dilations=()), "there must be a dilation"),
        (lambda: build_idcnn(3, output="concat", loss="mean"), 'needs output = "last"'),
        (
            lambda: nearest_words("天", 3, Vectors(("重",), np.ones((1, 2), np.float32)), 1),
            "none of the characters",
        ),
    ],
)
def test_settings_that_do_not_fit(make: Callable[[], object], message: str) -> None:
    with switched_off(), pytest.raises(ValueError, match=message):
        make()


def test_widths() -> None:
    assert Identity(7).d_out == 7
    assert BiLSTM(3, d_hidden=5).d_out == 10
    assert build_idcnn(3, d_hidden=4, repeats=3, output="concat").d_out == 12
    assert build_idcnn(3, d_hidden=4, repeats=3, share=False).d_out == 4
    assert [len(build_idcnn(3, d_hidden=4, repeats=3, share=share).blocks) for share in (True, False)] == [1, 3]
    assert build_cgn(3, words(), d_model=8, d_graph=5).d_out == 5
    assert isinstance(build_cgn(3, words(), d_model=8).word_projection, nn.Identity)
    assert isinstance(build_cgn(3, words(), d_model=10).word_projection, nn.Linear)
    assert isinstance(LGN(3, words(), d_model=8).word_projection, nn.Identity)
    assert isinstance(LGN(3, words(), d_model=9).word_projection, nn.Linear)
    for features, width in (("none", 8), ("lstm", 14), ("sentence", 14), ("cnn", 14)):
        encoder = WordBiLSTM(3, words(), characters=features, d_characters=3)  # type: ignore[arg-type]
        assert encoder.recurrence.layers[0].forwards.input_size == width  # type: ignore[union-attr]
    attention = GraphAttention(3, 4, 2, average=False, dropout=0.0)
    assert (attention.d_out, GraphAttention(3, 4, 2, average=True, dropout=0.0).d_out) == (8, 4)
    assert LRCNN(3, words(), d_model=6).d_out == 6
    assert [len(LRCNN(3, words(), backward=b).directions) for b in (False, True)] == [1, 2]


def test_scales_of_scores() -> None:
    assert LatticeAttention(12, 3).scale == 1.0
    assert LatticeAttention(12, 3, scaled=True).scale == 0.5
    for scaled, scale in ((True, 12**-0.5), (False, 1.0)):
        assert (
            Augmented(Identity(12), torch.zeros(3, 1).long(), Table(torch.ones(3, 12)), scaled=scaled).scale
            == scale
        )


def test_long_words_share_a_vector_of_their_length() -> None:
    assert LONGEST == 5
    head, tail = torch.tensor([[0, 0, 0, 2]]), torch.tensor([[3, 4, 8, 2]])
    mask = torch.tensor([[True, True, True, False]])
    graph = Graph.of(Words(head, head, tail, head, mask), mask, torch.ones(1, 9).bool())
    assert graph.length.tolist() == [[0, 4, 5, 5, 1]]
    assert graph.edge_mask.tolist() == [[True, True, True, True, False]]
    assert graph.head.tolist() == [[0, 0, 0, 0, 2]]
    assert graph.tail.tolist() == [[0, 3, 4, 8, 2]]
    assert graph.place[0, 0].tolist() == [0, 1, 1, 2, 1, 1, 1, 1, 1]
    assert graph.place[0, 3, 2] == 3
    assert graph.inside[0].sum(-1).tolist() == [4, 5, 9, 1]


class TestNodes:
    def test_where_they_stand(self) -> None:
        nodes = Nodes.of(torch.tensor([[0, 2]]), torch.tensor([[1, 5]]), 6)
        assert nodes.head.tolist() == [[0, 1, 2, 3, 4, 5, 0, 2]]
        assert nodes.tail.tolist() == [[0, 1, 2, 3, 4, 5, 1, 5]]
        assert nodes.lengths.tolist() == [1, 2, 4]

    @pytest.mark.parametrize(("n_words", "common"), [(4, False), (5, True)])
    def test_a_length_is_common_if_it_has_enough_nodes(self, n_words: int, common: bool) -> None:
        """With 100 characters, at least 199 / 40 nodes."""
        head = torch.arange(n_words)[None]
        assert Nodes.of(head, head + 1, 100).common_kinds().tolist() == [True, common]

    def test_exactly_enough(self) -> None:
        """Twenty characters in 40 sentences: 40 times the nodes are 40 times the distances."""
        head = torch.zeros(40, 1, dtype=torch.long)
        tail = torch.ones(40, 1, dtype=torch.long)
        tail[39] = 2
        assert Nodes.of(head, tail, 20).common_kinds().tolist() == [True, True, False]
        assert Nodes.of(head[:39], tail[:39], 20).common_kinds().tolist() == [True, True]

    @pytest.mark.parametrize(
        ("limit", "hidden"), [(1, [True, True, False, True]), (2, [False, True, False, False])]
    )
    def test_what_is_distant(self, limit: int, hidden: list[bool]) -> None:
        """The distance of two nodes is that of their nearest ends."""
        nodes = Nodes.of(torch.tensor([[4, 0, 2, 6]]), torch.tensor([[4, 1, 5, 7]]), 8)
        found = Distant(limit)(nodes, slice(8, 9))[0, 0, 8:]
        assert found.tolist() == [False, True, False, limit < 2]
        assert Distant(limit)(nodes, slice(4, 5))[0, 0, [2, 1, 4, 6]].tolist() == hidden
        assert Distant().limit == 10

    def test_words_that_contain_a_character_are_hidden_from_it_alone(self) -> None:
        nodes = Nodes.of(torch.tensor([[0, 1]]), torch.tensor([[1, 2]]), 4)
        found = SelfMatched()(nodes, slice(0, 6))[0]
        expected = torch.zeros(6, 6, dtype=torch.bool)
        expected[[0, 1, 1, 2], [4, 4, 5, 5]] = True
        assert torch.equal(found, expected)


class TestNeighbours:
    def test_words_are_written_and_read(self, tmp_path: Path) -> None:
        neighbours = torch.tensor([[0, 0], [0, 0], [2, 3]])
        encoder = Augmented(Identity(4), neighbours, Table(torch.ones(4, 6)), ("天", "地"), of="words")
        encoder.save_files(tmp_path / "new" / "folder")
        encoder.save_files(tmp_path / "new" / "folder")
        assert saved_words(tmp_path / "new" / "folder") == (("天", "地"), 6)
        Augmented(Identity(4), neighbours, Table(torch.ones(4, 6))).save_files(tmp_path / "other")
        assert not (tmp_path / "other").exists()
        for content in ("", "[]", '{"words": []}', '{"words": 3, "width": 3}'):
            (tmp_path / "neighbours.json").write_text(content)
            with pytest.raises(ValueError, match="is missing or broken"):
                saved_words(tmp_path)
        with pytest.raises(ValueError, match="is missing or broken"):
            saved_words(tmp_path / "other")

    def test_rows_that_are_not_trained_have_neighbours_among_all_rows(self) -> None:
        angles = torch.tensor([0, 0, 0.0, 1.0, 0.1, 0.9])
        values = torch.stack([angles.cos(), angles.sin()], 1)
        values[:2] = 0
        rows = nearest_rows(Rows(values, 4), 2)
        assert (rows.n_trained, rows.values.tolist()) == (4, [[0, 0], [0, 0], [3, 0], [2, 0], [2, 5], [3, 4]])
        whole = nearest_rows(Rows.of(values), 1)
        assert whole.values.tolist() == [[0], [0], [4], [5], [2], [3]]

    def test_only_neighbours_of_trained_rows_are_trained(self) -> None:
        angles = np.array([0.0, 0.1, 1.0, 1.2])
        table = Vectors(("重", "山", "庆", "天"), np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32))
        found = nearest_words(("重", "人", "庆"), 4, table, 1)
        assert found.words == ("山", "天")
        assert found.rows.values.tolist() == [[0], [0], [2], [0], [3]]
        assert (found.rows.n_trained, found.values.n_trained) == (4, 3)
        np.testing.assert_allclose(found.values.values, [[0, 0], [0, 0], *table.matrix[[1, 3]]], atol=1e-6)
        top = nearest_words(("庆",), 3, table, 3, 2)
        assert (top.words, top.rows.values[2].tolist()) == (("山",), [2, 0, 0])


@pytest.mark.parametrize("fusion", ["gate-concat", "gate-sum", "concat", "sum"])
def test_the_fusion_of_a_character_and_its_neighbours(fusion: Any) -> None:
    encoder = Augmented(Identity(4), torch.zeros(3, 1).long(), Table(torch.ones(3, 4)), fusion=fusion)
    assert encoder.d_out == (8 if fusion.endswith("concat") else 4)
    assert (encoder.gate is None) == (not fusion.startswith("gate"))
    assert encoder.project is None
    assert Augmented(Identity(4), torch.zeros(3, 1).long(), Table(torch.ones(3, 5))).project is not None


def test_a_layer_of_flat_by_itself_adds_to_its_input_or_to_itself() -> None:
    shared = FlatLayer(LatticeAttention(4, 2), FeedForward(4, 4, 0.0), 4, residual="self")
    assert shared.feed_forward_norm is shared.attention_norm
    apart = FlatLayer(LatticeAttention(4, 2), FeedForward(4, 4, 0.0), 4)
    assert apart.feed_forward_norm is not apart.attention_norm
    assert math.isclose(build_flat(3, words(), d_model=8, heads=2).layers[0].attention.scale, 1.0)  # type: ignore[union-attr, arg-type]
