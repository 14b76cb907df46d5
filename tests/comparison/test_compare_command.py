"""Tests of `hanlattice compare`."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import tiny
from compared import ENVIRONMENT, Finished, saved, systems, wait_until
from hanlattice.cli import main
from hanlattice.config.files import load_config
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import CONFIG


class Printed(NamedTuple):
    """The exit status and the output of the command."""

    code: int
    out: str
    err: str


class TestCommand:
    @pytest.fixture
    def call(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Printed]:
        """Runs ``hanlattice compare`` with these arguments."""

        def run(*arguments: object) -> Printed:
            capsys.readouterr()
            with pytest.raises(SystemExit) as exit_info:
                main(["compare", *map(str, arguments)])
            return Printed(int(exit_info.value.code or 0), *capsys.readouterr())

        return run

    def test_table_markdown_and_json_have_the_same_values(
        self, call: Callable[..., Printed], finished: Finished, tmp_path: Path
    ) -> None:
        folder, (slow, wide) = finished
        files = [f"{name}={saved(tmp_path, name, config)}" for name, config in systems().items()]
        common = [*files, "--output", folder, "--seeds", "1,2", "--no-speed"]
        found = call(*common, "--format", "jsonl")
        assert found.code == 0, found.err
        assert [json.loads(line) for line in found.out.splitlines()] == [slow.to_dict(), wide.to_dict()]
        assert found.err == "4 of 4 runs are finished already\n"
        assert wide.difference
        cells = ["quick/wide", f"{wide.parameters:,}", f"{wide.without_tables:,}", "", ""]
        cells += [str(wide.dev), str(wide.test), f"{100 * wide.difference.difference:+.2f}"]
        cells += [f"{wide.difference.p:.4f}", f"{wide.difference.adjusted_p:.4f}"]
        markdown = call(*common, "--format", "md", "--quiet")
        assert markdown.out.splitlines()[3] == f"| {' | '.join(cells)} |"
        assert markdown.err == ""
        assert markdown.out.splitlines()[-1] == (
            "p: hierarchical bootstrap over runs (2 and 2) and sentences. p (Holm): corrected for 1 comparison."
        )
        table = call(*common)
        assert re.split(" {2,}", table.out.splitlines()[2]) == [cell for cell in cells if cell]

    def test_dotted_options_hold_for_all_systems(self, call: Callable[..., Printed], tmp_path: Path) -> None:
        files = [f"{name}={saved(tmp_path, name, config)}" for name, config in systems().items()]
        found = call(*files, "--output", tmp_path / "runs", "--seeds", 3, "--no-speed", "--training.epochs", 1)
        assert found.code == 0, found.err
        lines = found.err.splitlines()
        assert [line.split(":")[0] for line in lines] == ["slow seed 3", "quick/wide seed 3"]
        assert all("best epoch 1 of 1" in line for line in lines)

    def test_settings_of_the_package_with_another_corpus_than_its_own(
        self, call: Callable[..., Printed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its dev and test are not read, and the labels of its corpora are not renamed."""
        monkeypatch.delenv("HANLATTICE_DATA", raising=False)
        options = ("--seeds", 1, "--no-speed", "--training.epochs", 1, "--encoder.d_hidden", 8)
        corpus, vectors = tiny.folder() / "corpus.bmes", tiny.folder() / "vectors.safetensors"
        given = ("--train", corpus, "--vectors", vectors, "--test", corpus)
        found = call("bilstm/msra", *given, *options, "--output", tmp_path)
        assert found.code == 0, found.err
        used = load_config(tmp_path / "bilstm" / "msra" / "1" / CONFIG).data
        assert (used.dev, used.test, dict(used.labels)) == ("", str(corpus), {})

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["flat/weibo", "x=flat/weibo", "flat/weibo"],
                "two systems have the name 'flat/weibo'; rename one of them",
            ),
            (["flat/weibu"], "the package has no settings 'flat/weibu'; it has flat/weibo"),
            (["../x=flat/weibo"], "'../x' cannot name a system"),
            (["flat/weibo", "--encoder.headz", "2"], "no setting 'headz'; did you mean 'heads'"),
        ],
    )
    def test_wrong_systems(
        self, call: Callable[..., Printed], tmp_path: Path, arguments: list[str], message: str
    ) -> None:
        found = call(*arguments, "--output", tmp_path / "runs")
        assert (found.code, found.out) == (1, "")
        [line] = found.err.splitlines()
        assert line.startswith("error: ")
        assert message in line

    def test_seeds_are_numbers(self, call: Callable[..., Printed], tmp_path: Path) -> None:
        found = call("flat/weibo", "--output", tmp_path, "--seeds", "1,two")
        assert found.code == 2
        assert "'1,two' is not a list of whole numbers such as 1,2,3" in " ".join(found.err.split())

    def test_ctrl_c_prints_one_line(self, tmp_path: Path) -> None:
        long = systems()["slow"].with_settings({"training": {"epochs": 500}})
        command = [sys.executable, "-m", "hanlattice", "compare", str(saved(tmp_path, "slow", long))]
        command += ["--output", str(tmp_path / "runs"), "--seeds", "1,2", "--jobs", "2", "--no-speed"]
        folders = [tmp_path / "runs" / "slow" / seed for seed in "12"]
        with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_until(lambda: all((folder / CHECKPOINT).exists() for folder in folders))
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=100)
            finally:
                process.kill()
        assert process.returncode == 130
        assert err == "error: stopped; the same command resumes the comparison\n"
        assert not list((tmp_path / "runs").rglob(".*"))
