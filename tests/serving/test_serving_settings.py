"""Settings of a service: their defaults, and each limit on both sides."""

import math
from pathlib import Path
from typing import Any

import pytest

import tiny
from hanlattice.errors import ConfigError
from hanlattice.serving import supervisor
from hanlattice.serving.app import load_model
from hanlattice.serving.settings import Settings, lexicon_folder

DEFAULTS: dict[str, Any] = {
    "model": None,
    "convention": "",
    "patterns": "",
    "engine": "auto",
    "int8": None,
    "device": "cpu",
    "words": (),
    "force": (),
    "block": (),
    "threshold": 0.0,
    "trust": False,
    "host": "127.0.0.1",
    "port": 8000,
    "root_path": "",
    "workers": 1,
    "threads": 0,
    "token": None,
    "max_batch": 64,
    "max_batch_chars": 8192,
    "max_wait_ms": 5.0,
    "max_queue": 512,
    "max_texts": 64,
    "max_chars": 10_000,
    "max_body": 4_194_304,
    "max_lexicon_body": 33_554_432,
    "max_lexicons": 256,
    "answer_timeout": 30.0,
    "client_timeout": 10.0,
    "drain_timeout": 30.0,
}


def test_a_user_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    with pytest.raises(ConfigError, match="no home folder; name a folder for stored lexicons with --lexicons"):
        lexicon_folder()
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert lexicon_folder() == Path("/data/hanlattice/lexicons")


def test_cores_are_those_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {1, 2, 5, 7, 8, 9})
    assert Settings(workers=4).threads_of_a_worker == 1
    assert Settings(workers=2).threads_of_a_worker == 3
    assert Settings(workers=2, threads=8).threads_of_a_worker == 8
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert [Settings(workers=n).threads_of_a_worker for n in (1, 3, 8, 9)] == [8, 2, 1, 1]
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert Settings(workers=2).threads_of_a_worker == 1


def test_there_is_no_service_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.serving.supervisor.WINDOWS", True)
    with pytest.raises(ConfigError, match="does not run on Windows; run it in a container or in WSL"):
        supervisor.serve(Settings())


def test_defaults() -> None:
    settings = Settings()
    assert {name: getattr(settings, name) for name in DEFAULTS} == DEFAULTS
    assert settings.lexicons == lexicon_folder()
    assert set(Settings.__slots__) == {*DEFAULTS, "lexicons"}


def with_(**settings: Any) -> Settings:
    return Settings(**settings)


def test_the_folder_of_lexicons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert lexicon_folder() == tmp_path / "hanlattice" / "lexicons"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert lexicon_folder() == tmp_path / ".local" / "share" / "hanlattice" / "lexicons"


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name.startswith("max_") and name != "max_wait_ms"])
def test_sizes_are_at_least_1(name: str) -> None:
    assert getattr(with_(**{"max_texts": 1, name: 1}), name) == 1
    with pytest.raises(ConfigError, match=f"^{name} must be at least 1, not 0$"):
        with_(**{name: 0})


def test_there_is_a_worker() -> None:
    with pytest.raises(ConfigError, match=r"^workers must be at least 1, not 0$"):
        Settings(workers=0)


@pytest.mark.parametrize("name", ["answer_timeout", "client_timeout", "drain_timeout"])
def test_times_are_above_0(name: str) -> None:
    assert getattr(with_(**{name: 0.001}), name) == 0.001
    for wrong in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ConfigError, match=f"^{name} must be a number of seconds above 0, not {wrong}$"):
            with_(**{name: wrong})


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("threshold", 0, 1), ("port", 0, 65_535), ("threads", 0, 1024), ("max_wait_ms", 0, 60_000)],
)
def test_other_numbers_have_a_range(name: str, least: int, most: int) -> None:
    for right in (least, most):
        assert getattr(with_(**{name: right}), name) == right
    for wrong in (least - 1, most + 1, math.nan, math.inf):
        with pytest.raises(ConfigError, match=f"^{name} must be from {least} to {most}, not {wrong}$"):
            with_(**{name: wrong})


def test_torch_has_the_threads_of_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", given.append)
    words = tmp_path / "words.txt"
    words.write_text("长江\n", encoding="utf-8")
    ner = load_model(Settings(model=str(tiny.trained()), engine="torch", threads=3, words=(words,)))
    assert given == [3]
    assert "长江" in ner.lexicon
    load_model(Settings(model="lite", threads=3))
    assert given == [3]


def test_a_request_fits_into_the_queue() -> None:
    assert Settings(max_texts=8, max_queue=8).max_queue == 8
    with pytest.raises(ConfigError, match="a request of 9 texts never fits into a queue of 8"):
        Settings(max_texts=9, max_queue=8)


@pytest.mark.parametrize("path", ["", "/a", "/a/b-c.d_e~1"])
def test_root_paths(path: str) -> None:
    assert Settings(root_path=path).root_path == path


@pytest.mark.parametrize("path", ["a", "/", "/a/", "//a", "/a b", "/a\n"])
def test_other_root_paths_are_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="a root path begins with / and does not end with it"):
        Settings(root_path=path)


@pytest.mark.parametrize("token", ["12345678", "!~345678"])
def test_tokens(token: str) -> None:
    assert Settings(token=token).token == token


@pytest.mark.parametrize("token", ["", "1234567", "1234 5678", "1234567é", "12345678\n"])
def test_other_tokens_are_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="a token has at least 8 characters"):
        Settings(token=token)
