"""The command ``hanlattice`` where the extra of the command line is not installed."""

import pytest

from hanlattice import __main__ as entry


def test_without_the_extra_one_line_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "find_spec", lambda name: None if name == "rich" else object())
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == "error: the command line needs rich: pip install 'hanlattice[cli]'"


def test_with_the_extra_the_command_line_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["hanlattice", "--version"])
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("hanlattice ")
