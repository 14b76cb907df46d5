"""Tests of stored proposals: the journal of a search may end at any byte."""

from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="needs the extra tune")

from hanlattice.tuning.folder import Pruner
from hanlattice.tuning.results import State
from hanlattice.tuning.space import Choices, Interval, Space
from hanlattice.tuning.study import Study

SPACE = Space(
    {"rate": Interval(1e-4, 1e-1, log=True), "width": Choices((8, 16)), "layers": Interval(1, 3, whole=True)}
)
N, EPOCHS = 14, 4  # more than the ten random trials


def study(journal: Path) -> Study:
    return Study(journal, SPACE, seed=1, pruner=Pruner.median, prune_from=1)


def run(journal: Path) -> list[tuple[dict[str, object], State, float | None]]:
    """A search up to trial ``N`` whose F1 grows with the epoch and with the distance of the rate from 1."""
    opened = study(journal)
    while len(proposals := opened.proposals()) < N or proposals[-1].state is State.stopped:
        last = proposals[-1] if proposals and proposals[-1].state is State.stopped else opened.propose()
        assert last is not None
        best = 1 - float(last.values["rate"])
        for epoch in range(1, EPOCHS + 1):
            if opened.report(last, epoch, best * epoch / EPOCHS) and epoch < EPOCHS:
                opened.prune(last)
                break
        else:
            opened.finish(last, best)
    return [(dict(p.values), p.state, p.f1) for p in opened.proposals()]


def test_search_that_is_cut_anywhere_continues_with_the_same_proposals(tmp_path: Path) -> None:
    whole = tmp_path / "whole.log"
    expected = run(whole)
    assert {state for _, state, _ in expected} == {State.finished, State.pruned}
    content = whole.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    cuts = [*ends[-14:-1], *ends[1:-14:20]]  # every line of the last trial, and some lines before
    for number, cut in enumerate([*cuts, 40, len(content) - 5]):
        journal = tmp_path / f"{number}.log"
        journal.write_bytes(content[: cut + 20 * (number % 2)])  # every second one within a line
        assert run(journal) == expected


def test_proposals_are_not_repeated_and_end(tmp_path: Path) -> None:
    small = Space({"width": Choices((8, 16)), "layers": Interval(1, 6, whole=True)})
    opened = Study(tmp_path / "journal.log", small, seed=3, pruner=Pruner.none, prune_from=1)
    found = []
    while (proposal := opened.propose()) is not None:
        found.append(tuple(proposal.values.values()))
        opened.finish(proposal, 0.5)
    assert sorted(found) == [(width, layers) for width in (8, 16) for layers in range(1, 7)]
    assert opened.importance() == {}  # of equal scores
