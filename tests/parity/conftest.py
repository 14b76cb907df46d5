"""Parity with the authors' code is checked in every run: a test here that skips fails."""

from collections.abc import Generator

import pytest

from parity.fixtures import FULL

collect_ignore = [] if FULL else ["test_flat_full.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped:
        report.longrepr, report.outcome = f"a parity test must not skip: {report.longrepr}", "failed"
