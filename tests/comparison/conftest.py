"""A finished comparison, which several tests read."""

import pytest

from compared import Finished, systems
from hanlattice.comparison import compare


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A comparison of two systems with two seeds, which ran without interruption."""
    folder = tmp_path_factory.mktemp("finished")
    rows, failures = compare(systems(), folder, seeds=(1, 2), speed=False)
    assert failures == {}
    return Finished(folder, rows)
