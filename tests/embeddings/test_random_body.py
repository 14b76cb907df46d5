"""Bodies with random weights: the same shape and vocabulary as another body."""

from pathlib import Path

import pytest
import torch

import tiny
from hanlattice.embeddings.body_folder import open_body, random_body
from hanlattice.errors import ConfigError


def test_the_shape_and_the_vocabulary_are_those_of_the_other_body(tmp_path: Path) -> None:
    before, known = open_body(tiny.body())
    bodies = []
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        random_body(tiny.body(), tmp_path / "runs" / name, seed)
        body, characters = open_body(tmp_path / "runs" / name)
        assert body.shape == before.shape
        assert characters.names == known.names
        bodies.append(torch.cat([p.detach().flatten() for p in body.parameters()]))
    one, again, two = bodies
    assert torch.equal(one, again)
    assert not torch.equal(one, two)
    assert not torch.equal(one, torch.cat([p.detach().flatten() for p in before.parameters()]))


def test_without_another_body(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocabulary\.json"):
        random_body(tmp_path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
