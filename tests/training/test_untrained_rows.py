"""Rows of names that no corpus has: kept apart while a tagger is trained, and saved below the trained ones."""

import torch
from torch import nn

from hanlattice.embeddings.initial_weights import Rows, further_rows, state_with_all_rows, with_all_rows
from hanlattice.embeddings.table import Table
from hanlattice.encoders.augmented import nearest, nearest_rows

ROWS = Rows(torch.arange(12.0).view(6, 2), 4)


def test_a_table_trains_the_first_rows_and_saves_all() -> None:
    part = nn.ModuleDict({"table": Table(ROWS)})
    assert [tuple(p.shape) for p in part.parameters()] == [(4, 2)]
    assert further_rows(part)["table.weight"].tolist() == [[8.0, 9.0], [10.0, 11.0]]
    saved = state_with_all_rows(part)["table.weight"]
    assert saved[0].tolist() == [0.0, 0.0], "padding"
    assert torch.equal(saved[1:], ROWS.values[1:])


def test_all_rows_can_be_changed_together() -> None:
    table = Table(ROWS)
    with with_all_rows(table), torch.no_grad():
        assert table.weight.shape == (6, 2)
        table.weight.add_(1)
    assert table.weight.shape == (4, 2)
    assert torch.equal(state_with_all_rows(table)["weight"][1:], ROWS.values[1:] + 1)


def test_a_tensor_is_trained_as_a_whole() -> None:
    table = Table(torch.ones(3, 2))
    assert table.weight.shape == (3, 2)
    assert not further_rows(table)


def test_trained_rows_have_trained_neighbours_only() -> None:
    torch.manual_seed(0)
    rows = Rows(torch.randn(9, 3), 5)
    found = nearest_rows(rows, 3)
    assert torch.equal(found.trained, nearest(rows.values[:5], 3))
    assert torch.equal(found.further, nearest(rows.values, 3)[5:])
