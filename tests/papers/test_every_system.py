"""Every row of docs/systems.md trains for one epoch on a sample."""

from pathlib import Path

import pytest

from papers.sampled import KINDS, rows, trained


@pytest.mark.parametrize("name", [name for name in rows() if name not in KINDS])
def test_every_system_trains_on_a_sample(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = trained(rows()[name], tmp_path, monkeypatch)
    assert run.progress.epoch == 1
    assert (run.folder / "model.safetensors").is_file()
