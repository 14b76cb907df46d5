"""Models by name: in this package, in a package of their own, and folders."""

import shutil
from pathlib import Path

import pytest

import hanlattice
import tiny
from hanlattice.errors import ModelError
from hanlattice.model import folder
from hanlattice.model.folder import DEFAULT, LITE, located_model


def test_packaged_models_and_paths() -> None:
    found = {name: located_model(name) for name in ("default", "lite", "cascade", "./lite", "runs/mine")}
    assert found == {
        "default": DEFAULT,
        "lite": LITE,
        "cascade": DEFAULT,
        "./lite": Path("lite"),
        "runs/mine": Path("runs/mine"),
    }


def test_a_path_is_always_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels = hanlattice.load("lite").labels
    for name in ("default", "lite", "cascade", "large"):
        shutil.copytree(tiny.two_conventions(), tmp_path / name)
        assert located_model(Path(name)) == Path(name)
        for path in (Path(name), f"./{name}"):
            for engine in ("native", "torch"):
                ner = hanlattice.load(path, engine=engine, convention="names")
                assert (ner.folder, ner.labels) == (Path(name), ("name", "place"))
    assert hanlattice.load("lite").labels == labels


def test_a_model_in_a_package_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hanlattice_of_a_test"
    package.mkdir()
    (package / "__init__.py").touch()
    shutil.copytree(tiny.two_conventions(), package / "model")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(folder.FURTHER, "large", package.name)
    ner = hanlattice.load("large", convention="names")
    assert ner.folder == package / "model"
    assert ner.labels == ("name", "place")


def test_a_package_that_is_not_installed_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(folder.FURTHER, "large", "hanlattice_of_nobody")
    with pytest.raises(ModelError, match=r"install hanlattice-large \(in the repository: pip install ./large\)"):
        hanlattice.load("large")
