"""Tests of `hanlattice tune`."""

import errno
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("optuna", reason="needs the extra tune")

import tiny
from compared import ENVIRONMENT, saved, wait_until
from hanlattice.cli import main
from hanlattice.config.files import load_config
from hanlattice.model.digests import CHECKPOINT


class Printed(NamedTuple):
    """The exit status and the output of the command."""

    code: int
    out: str
    err: str


Call = Callable[..., Printed]
SEARCH = ("--search=training.learning_rate=1e-3..1e-1:log", "--search=encoder.heads=2,3")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs ``hanlattice tune`` with these arguments."""

    def run(*arguments: object) -> Printed:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            main(["tune", *map(str, arguments)])
        return Printed(int(exit_info.value.code or 0), *capsys.readouterr())

    return run


def test_labels_of_the_corpora_are_renamed(call: Call, tmp_path: Path) -> None:
    file, folder = saved(tmp_path, "base", tiny.config()), tmp_path / "search"
    options = ("--output", folder, "--trials", 1, "--training.epochs", 1, *SEARCH[:1], "--map", "PER=人")
    assert call(file, *options).code == 0
    assert load_config(folder / "best.toml").data.labels == {"PER": "人"}


def test_settings_of_the_package_with_another_corpus_than_its_own(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The labels of its corpora are not renamed, and its test is not that of the search."""
    monkeypatch.delenv("HANLATTICE_DATA", raising=False)
    corpus, vectors = tiny.folder() / "corpus.bmes", tiny.folder() / "vectors.safetensors"
    options = ("--train", corpus, "--vectors", vectors, "--training.epochs", 1, "--encoder.d_hidden", 8)
    found = call("bilstm/msra", *options, "--trials", 1, *SEARCH[:1], "--output", tmp_path / "search")
    assert found.code == 0, found.err
    best = load_config(tmp_path / "search" / "best.toml").data
    assert (best.train, best.test, dict(best.labels)) == ((str(corpus),), "", {})


def test_table_markdown_and_json_have_the_same_values(call: Call, tmp_path: Path) -> None:
    """Of five proposals, some have three heads, which do not divide the width of 20, and fail."""
    file, folder = saved(tmp_path, "base", tiny.config()), tmp_path / "search"
    space = tmp_path / "space.toml"
    space.write_text('training.learning_rate = "1e-3..1e-1:log"\nencoder.heads = [2, 3]\n')
    common = ["--output", folder, "--trials", 5]
    first = call(file, *common, "--search", space, "--training.epochs", 2, "--test", "a.bmes")
    assert first.code == 0, first.err
    lines = first.err.splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [f"trial {number}" for number in range(1, 6)]
    assert {"failed" in line for line in lines[:-1]} == {True, False}
    assert lines[-1] == f"wrote {folder / 'best.toml'}"
    again = call(*common, "--resume", "--format", "jsonl", "--quiet")
    assert again.err == ""
    rows = [json.loads(line) for line in again.out.splitlines()]
    best = rows[0]
    settings = load_config(folder / "best.toml")
    assert settings.training.learning_rate == best["settings"]["training.learning_rate"]
    assert settings.encoder.settings["heads"] == best["settings"]["encoder.heads"] == 2
    assert (settings.training.epochs, settings.data.test) == (2, "a.bmes")
    header, _, *cells = call(*common, "--resume", "--format", "md").out.splitlines()
    assert header == "| trial | dev F1 | epochs | seconds | training.learning_rate | encoder.heads | state |"
    assert cells[0].split(" | ")[1] == f"{100 * best['f1']['mean']:.2f} (1)"
    assert [line.split(" | ")[-1] for line in cells] == [f"{row['state']} |" for row in rows]
    table = call(*common, "--resume")
    assert re.split(" {2,}", table.out.splitlines()[1].strip()) == cells[0].strip("| ").split(" | ")
    assert table.err.splitlines()[0] == "5 trials have ended already"


def test_dotted_options_and_named_options_hold_for_all_trials(call: Call, tmp_path: Path) -> None:
    file, folder = saved(tmp_path, "base", tiny.config()), tmp_path / "search"
    options = ["--search", "embedding.dropout=0..0.5", "--training.epochs=1", "--seeds", "2", "--trials", 1]
    found = call(file, "--output", folder, *options, "--dev", tiny.folder() / "corpus.bmes", "--no-pruning")
    assert found.code == 0, found.err
    used = load_config(folder / "trials" / "0001" / "2" / "config.toml")
    assert (used.training.epochs, used.training.seed, used.data.test) == (1, 2, "")
    assert used.data.dev == str(tiny.folder() / "corpus.bmes")
    assert load_config(folder / "best.toml").training.seed == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--search", "encoder.headz=2,4"],
            "--search encoder.headz: encoder 'flat' has no setting 'headz'; did you mean 'heads'?",
        ),
        (
            ["--search", "training.epochs=2..4", "--training.epochs", "3"],
            "training.epochs is set for all trials and searched too; do one of them",
        ),
        (
            ["--search", "lexicon.files=a,b", "--lexicon", "c"],
            "lexicon.files is set for all trials and searched too; do one of them",
        ),
        ([], "nothing to search; add a setting"),
        (["--hours", "-1", *SEARCH], "hours must be above 0, not -1"),
        (["--hours", "1e-9", *SEARCH], "no trial is finished; give it more time with --resume"),
    ],
)
def test_errors_are_one_line(call: Call, tmp_path: Path, arguments: list[str], message: str) -> None:
    file = saved(tmp_path, "base", tiny.config())
    found = call(file, "--output", tmp_path / "search", *arguments)
    assert found.code == 1
    [line] = found.err.splitlines()
    assert line.startswith(f"error: {message}")


def test_a_full_disk_is_one_line_that_says_how_to_continue(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("hanlattice.tuning.study.Study.propose", full)
    folder = tmp_path / "search"
    found = call(saved(tmp_path, "base", tiny.config()), "--output", folder, "--trials", 1, *SEARCH)
    assert found.code == 1
    assert found.err == (
        f"error: {folder / 'journal.log'}: cannot be written: No space left on device; free space, or permit"
        f" writing, and continue with: hanlattice tune --output {folder} --resume --trials 1\n"
    )


def test_a_pruner_without_pruning_is_wrong_usage(call: Call, tmp_path: Path) -> None:
    found = call("flat/weibo", "--output", tmp_path / "search", *SEARCH, "--pruner", "median", "--no-pruning")
    assert found.code == 2
    assert "with --pruner median, leave out --no-pruning" in " ".join(found.err.split())


def test_unknown_settings_of_the_package(call: Call, tmp_path: Path) -> None:
    found = call("flat/weibu", "--output", tmp_path / "search", *SEARCH)
    assert found.err.startswith("error: the package has no settings 'flat/weibu'; it has flat/weibo")


def test_settings_may_be_options_alone(call: Call, tmp_path: Path) -> None:
    found = call("--train", tmp_path / "missing.bmes", "--output", tmp_path / "search", *SEARCH)
    assert found.code == 1
    assert "missing.bmes" in found.err
    assert "unexpected" not in found.err


def test_settings_from_a_file_and_weights_from_a_model(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    file = tiny.trained() / "config.toml"
    options = ["--start", tiny.trained(), "--trials", 1, "--training.epochs", 1, *SEARCH[:1]]
    found = call(file, "--output", folder, *options)
    assert found.code == 0, found.err
    expected = load_config(file).with_settings({"training": {"epochs": 1, "start": str(tiny.trained())}})
    expected = expected.with_settings({"data": {"test": ""}})
    used = load_config(folder / "trials" / "0001" / "1" / "config.toml")
    rate = used.training.learning_rate
    assert used == expected.with_settings({"training": {"learning_rate": rate}})


def test_a_part_of_the_options_may_be_given_again(call: Call, tmp_path: Path) -> None:
    """What the command line leaves out is that of the search, and what it gives must be the same."""
    file, folder = saved(tmp_path, "base", tiny.config()), tmp_path / "search"
    words = tmp_path / "words.txt"
    words.write_text("人和药店\n", encoding="utf-8")
    options = ["--training.epochs", 1, "--lexicon", words]
    first = call(file, "--output", folder, "--trials", 1, *options, *SEARCH[:1])
    assert first.code == 0, first.err
    for given in ([], options[:2], options[2:], options, [file, *options, *SEARCH[:1]]):
        again = call("--output", folder, "--resume", "--trials", 1, *given)
        assert (again.code, again.out) == (0, first.out), again.err
    other = call("--output", folder, "--resume", "--training.epochs", 2)
    assert f"{folder} contains a search with training.epochs = 1, not 2" in other.err


def test_fine_tuning_is_searched(call: Call, tmp_path: Path) -> None:
    """The small corpus needs more epochs than the settings say; best.toml says where the weights start."""
    folder = tmp_path / "search"
    options = ["--start", tiny.trained(), "--train", tiny.folder() / "corpus.bmes", "--training.least_steps", 12]
    limits = ["--training.epochs", 1, "--trials", 1, "--prune-from", 1]
    found = call("--output", folder, *options, *limits, "--search", "training.learning_rate=1e-4..1e-3")
    assert found.code == 0, found.err
    assert load_config(folder / "best.toml").training.start == str(tiny.trained())
    [row] = [
        json.loads(line)
        for line in call("--output", folder, "--resume", "--trials", 1, "--format", "jsonl").out.splitlines()
    ]
    assert row["epochs"] > 1
    assert row["f1"]["mean"] > 0.9
    again = call("--output", folder, "--resume", *options, *limits)
    assert again.code == 0, again.err


def test_ctrl_c_prints_one_line(tmp_path: Path) -> None:
    file, folder = saved(tmp_path, "base", tiny.config(epochs=500)), tmp_path / "my search"
    limits = ["--trials", "7", "--hours", "2.5", "--jobs", "2"]
    command = [sys.executable, "-m", "hanlattice", "tune", str(file), "--output", str(folder), *SEARCH[:1], *limits]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: (folder / "trials" / "0001" / "1" / CHECKPOINT).exists())
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode == 130
    resuming = f"hanlattice tune --output '{folder}' --resume --trials 7 --hours 2.5 --jobs 2"
    assert err == f"error: stopped; to resume: {resuming}\n"


def test_without_optuna(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['optuna'] = None; from hanlattice.cli import main;"
        f" main(['tune', 'flat/weibo', '--output', {str(tmp_path / 'search')!r}, '--search', 'encoder.heads=2,4'])"
    )
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "error: a search needs Optuna: pip install 'hanlattice[tune]'\n")
    assert not (tmp_path / "search").exists()
