"""A parity test that skips fails, so that a run without the fixtures cannot pass."""

import pytest

from parity.conftest import _fail_if_skipped
from parity.fixtures import DATA


@pytest.mark.parametrize(
    ("outcome", "expected"), [("skipped", "failed"), ("passed", "passed"), ("failed", "failed")]
)
def test_a_skipped_report_becomes_a_failed_one(outcome: str, expected: str) -> None:
    report = pytest.TestReport("tests/parity/x.py::y", ("x.py", 1, "y"), {}, outcome, None, "call")  # type: ignore[arg-type]
    _fail_if_skipped(report)
    assert report.outcome == expected


def test_fixtures_are_in_the_repository() -> None:
    assert sum(path.suffix == ".npz" for path in DATA.iterdir()) > 5
