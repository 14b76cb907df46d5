"""Limits of decoders, and sizes of tables that every saved model has."""

import inspect
from typing import Any

import numpy as np
import pytest

from hanlattice.decoders import candidates, word_relations
from hanlattice.decoders.base import check_size, probability
from hanlattice.decoders.mrc import MRC, JointMRC, LossWeights, build_joint_mrc, build_mrc
from hanlattice.decoders.structs.cell_losses import check_negative_weight
from hanlattice.decoders.table import base, biaffine
from hanlattice.decoders.tag_rules import TagRules
from hanlattice.decoders.word_pairs import DILATIONS, DISTANCES, HALO, REGIONS, WordPairGrid, build_word_pairs


def test_weights_that_grow_with_labels_may_take_two_gibibytes() -> None:
    check_size(2**29, "ab")
    with pytest.raises(
        ValueError, match="for 2 labels it would need 536,870,913 weights, above the limit of 536,870,912"
    ):
        check_size(2**29 + 1, "ab")
    assert base.MAX_ROW == 2**28


def test_tags_of_a_thousand_labels() -> None:
    labels = [str(i) for i in range(1001)]
    with pytest.raises(ValueError, match="1,001 labels are more than the limit of 1,000"):
        TagRules(labels, "BIO")


def test_sizes_of_tables_and_classes() -> None:
    """Other numbers would read the weights of saved models as something else."""
    assert (biaffine.WIDTHS, DISTANCES, REGIONS, DILATIONS, HALO) == (32, 19, 2, (1, 2, 3), 6)
    assert (word_relations.NONE, word_relations.NNW, word_relations.FIRST_THW) == (0, 1, 2)
    assert (word_relations.MAX_PATHS, candidates.MAX_PER_CHARACTER) == (16, 16)


@pytest.mark.parametrize("log_odds", [-1e9, -37.0, -36.0, -3.0, 0.0, 0.7, 36.0, 37.0, 1e9])
def test_probabilities_of_thresholds(log_odds: float) -> None:
    kept = min(max(log_odds, -36.0), 36.0)
    p = probability(log_odds)
    assert p == pytest.approx(1 / (1 + np.exp(-kept)), rel=1e-12)
    assert 0 < p < 1


def test_weights_of_negatives() -> None:
    assert [check_negative_weight(weight) for weight in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    for weight in (-0.01, 1.01):
        with pytest.raises(ValueError, match="must lie between 0 and 1"):
            check_negative_weight(weight)


@pytest.mark.parametrize("extra", [0, 2])
def test_extra_tags_are_read_as_none(extra: int) -> None:
    rules = TagRules(["X", "Y"], "BMES", extra=extra)
    assert len(rules.names) == extra + 9
    assert rules.names[:extra] == [f"<{i}>" for i in range(extra)]
    for i in range(extra):
        assert not rules.begins[i]
        assert not rules.of_label[:, i].any()
        np.testing.assert_array_equal(rules.pair[i], rules.pair[extra])
        np.testing.assert_array_equal(rules.joined[i], rules.joined[extra])
    tags = [rules.names.index(name) for name in ("B-X", "E-X", "O", "S-Y")]
    row = np.array([[*range(extra), *tags, tags[-1]]])
    [spans] = rules.spans(row, [extra + 4])
    assert [tuple(span[:3]) for span in spans] == [(extra, extra + 2, "X"), (extra + 3, extra + 4, "Y")]
    assert rules.begins.tolist() == [False] * extra + [name[0] in "BS" for name in rules.names[extra:]]
    of_label = [[name.endswith(f"-{label}") for name in rules.names] for label in "XY"]
    assert rules.of_label.tolist() == of_label


def defaults(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}


@pytest.mark.parametrize(
    ("builder", "kind"), [(build_mrc, MRC), (build_joint_mrc, JointMRC), (build_word_pairs, WordPairGrid)]
)
def test_a_builder_and_its_class_have_the_same_defaults(builder: Any, kind: Any) -> None:
    of_builder, of_class = defaults(builder), defaults(kind.__init__)
    weights = dict(zip(("start_weight", "end_weight", "match_weight"), LossWeights(), strict=True))
    shared = of_builder.keys() & (of_class | weights).keys()
    assert shared
    assert {name: of_builder[name] for name in shared} == {
        name: of_class[name] if name in of_class else weights[name] for name in shared
    }
