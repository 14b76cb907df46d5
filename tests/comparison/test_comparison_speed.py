"""Tests of relative speeds."""

from compared import Finished, RecordingWatcher, systems
from hanlattice.comparison import compare
from hanlattice.comparison.speed import Speed, speed_ratios


def test_speeds_are_multiples_of_the_reference(finished: Finished) -> None:
    folder, _ = finished
    watcher = RecordingWatcher()
    (slow, wide), _ = compare(systems(), folder, seeds=(1, 2), reference="quick/wide", watcher=watcher)
    assert watcher.started == []
    assert (wide.train_speed, wide.predict_speed) == (1.0, 1.0)
    assert slow.train_speed
    assert slow.predict_speed
    assert 0.2 < slow.train_speed < 5
    assert 0.2 < slow.predict_speed < 5


def test_ratios_compare_speeds_of_the_same_round() -> None:
    # Twice as fast in each round, but the machine is ten times slower in the second round.
    reference = Speed((100.0, 10.0, 100.0), (7.0, 70.0, 7.0))
    assert speed_ratios(Speed((200.0, 20.0, 200.0), (14.0, 140.0, 14.0)), reference) == (2.0, 2.0)
    assert speed_ratios(Speed((300.0, 20.0, 100.0), (7.0, 7.0, 7.0)), reference) == (2.0, 1.0)
