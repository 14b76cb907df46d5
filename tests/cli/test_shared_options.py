"""Options that commands share: the model, what runs it, rules for its entities; what a command says it wrote."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.cli import COMMANDS, main, options
from hanlattice.errors import HanlatticeError

TEXT = "雷军在北京发布小米14"
SHARED = ("--model", "--convention", "--engine", "--int8", "--device", "--threads", "--lexicon")
RULES = ("--force", "--block", "--threshold", "--patterns")
Result = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return call


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "gold.jsonl"
    entities = [{"start": 0, "end": 2, "label": "PER"}, {"start": 3, "end": 5, "label": "LOC"}]
    path.write_text(json.dumps({"text": TEXT, "entities": entities}), encoding="utf-8")
    return path


@pytest.mark.parametrize("command", ["predict", "annotate", "serve", "evaluate", "benchmark"])
def test_commands_that_run_a_model_share_their_options(command: str, run: Callable[..., Result]) -> None:
    help_ = run(command, "--help")[1].split()
    assert [option for option in (*SHARED, *RULES) if option not in help_] == []


@pytest.mark.parametrize(
    "command",
    [(name,) for name in COMMANDS if name not in ("lexicon", "vectors", "combine")]
    + [
        ("lexicon", "build"),
        ("lexicon", "match"),
        ("vectors", "train"),
        ("combine", "ensemble"),
        ("combine", "cascade"),
    ],
    ids=" ".join,
)
def test_help_shows_no_types_of_python(command: tuple[str, ...], run: Callable[..., Result]) -> None:
    shown = run(*command, "--help")[1]
    assert re.findall(r"<(?:list|tuple|int,)|Path\]|[{}]|\[\[|…\.\.\.", shown) == []
    usage = shown.partition("\n\n")[0].split()[len(command) + 3 :]  # without "Usage: hanlattice COMMAND [OPTIONS]"
    assert all(argument.strip("[]").isupper() for argument in usage)
    for argument in usage:  # each is explained below the usage line
        assert shown.count(argument) > 1


@pytest.mark.parametrize("command", ["calibrate", "export", "info", "explain", "select"])
def test_every_command_with_a_model_takes_it_as_an_option(command: str, run: Callable[..., Result]) -> None:
    assert "--model" in run(command, "--help")[1].split()


def entities(result: Result) -> list[tuple[str, str]]:
    code, out, _ = result
    assert code == 0
    return [(TEXT[e["start"] : e["end"]], e["label"]) for e in json.loads(out)["entities"]]


def test_rules_of_the_command_line(run: Callable[..., Result]) -> None:
    predict = ("predict", TEXT, "--format", "jsonl")
    assert entities(run(*predict))[:2] == [("雷军", "PER"), ("北京", "LOC")]
    assert ("北京", "ORG") in entities(run(*predict, "--force", "北京=ORG"))
    blocked = entities(run(*predict, "--block", "北京", "--block", "雷军=ORG", "--engine", "numpy"))
    assert ("北京", "LOC") not in blocked
    assert ("雷军", "PER") in blocked
    assert entities(run(*predict, "--threshold", "1")) == []


@pytest.mark.parametrize(
    "arguments", [("--force", "北京"), ("--force", "=LOC"), ("--block", "北京="), ("--block", "")], ids=" ".join
)
def test_rules_that_cannot_be_read_are_wrong_usage(arguments: tuple[str, str], run: Callable[..., Result]) -> None:
    code, out, err = run("predict", TEXT, *arguments)
    assert (code, out) == (2, "")
    assert f"{arguments[0]}: write TEXT" in err


@pytest.mark.parametrize("rule", ["force", "block"])
def test_a_label_that_the_model_lacks_is_wrong_usage(rule: str, run: Callable[..., Result]) -> None:
    code, out, err = run("predict", TEXT, f"--{rule}", "北京=CITY")
    assert (code, out) == (2, "")
    assert f"{rule}: '北京' has the label 'CITY'" in err


def test_a_warning_is_one_line(run: Callable[..., Result]) -> None:
    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, _, err = run("predict", TEXT, "--engine", "numpy", "--int8")
    assert (code, err) == (0, "warning: the numpy engine has no int8 products: the model runs in float32\n")
    assert warnings.showwarning is shown


def test_evaluate_takes_the_model_by_option_and_by_position(gold: Path, run: Callable[..., Result]) -> None:
    as_option = run("evaluate", gold, "--model", "default", "--format", "json")
    assert as_option[0] == 0
    assert run("evaluate", "default", gold, "--format", "json") == as_option
    assert run("evaluate", gold, "--format", "json") == as_option
    code, out, _ = run("evaluate", gold, "--format", "json", "--block", "北京", "--engine", "numpy")
    assert code == 0
    assert out != as_option[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "default"),
        ("evaluate", "a", "b", "c"),
        ("export", "x", "--model", "y", "z"),
        ("calibrate", "x"),
    ],
    ids=" ".join,
)
def test_missing_or_further_arguments_are_wrong_usage(
    arguments: tuple[str, ...], run: Callable[..., Result]
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "name " in err


def test_a_model_named_twice_is_wrong_usage(run: Callable[..., Result]) -> None:
    code, _, err = run("info", "default", "--model", "default")
    assert code == 2
    assert "name the model once" in err


def test_what_was_written_is_on_stderr(gold: Path, tmp_path: Path, run: Callable[..., Result]) -> None:
    page, rows = tmp_path / "page.html", tmp_path / "rows.jsonl"
    assert f"wrote {page}\n" in run("evaluate", gold, "--errors", page)[2]
    assert run("predict", TEXT, "--format", "jsonl", "--output", rows) == (0, "", f"wrote {rows}\n")
    assert run("predict", TEXT, "--format", "jsonl", "--output", rows, "--quiet") == (0, "", "")
    picture = tmp_path / "picture.svg"
    assert run("explain", TEXT, "--by", "none", "--output", picture) == (0, "", f"wrote {picture}\n")
    converted = tmp_path / "gold.bmes"
    assert run("convert", gold, converted)[2].startswith(f"wrote {converted}\n")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".json", ".csv.gz"])
def test_annotate_refuses_a_file_that_it_cannot_write(
    ending: str, gold: Path, tmp_path: Path, run: Callable[..., Result]
) -> None:
    code, out, err = run("annotate", gold, tmp_path / f"out{ending}")
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert "files of rows are written as .jsonl, .jsonl.gz, .parquet" in line
    assert sorted(tmp_path.iterdir()) == [gold]


@pytest.mark.parametrize(("typed", "near"), [("predictt", "predict"), ("evalute", "evaluate"), ("tran", "train")])
def test_a_mistyped_command_gets_a_suggestion(typed: str, near: str, run: Callable[..., Result]) -> None:
    code, _, err = run(typed)
    assert code == 2
    assert f"No such command '{typed}'. Did you mean '{near}'?" in err
    assert "Did you mean" not in run("xyz")[2]


def test_shell_completion_lists_commands() -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "_HANLATTICE_COMPLETE": "complete_bash",
        "COMP_WORDS": "hanlattice e",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "hanlattice"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == [name for name in COMMANDS if name.startswith("e")], done.stderr


def test_block_joins_labels() -> None:
    assert options.blocked(["a=X", "a=Y", "b", "c=X", "c"]) == {"a": ("X", "Y"), "b": None, "c": None}


class TestTexts:
    """What a model takes as texts, and what it returns."""

    ner = staticmethod(lambda: hanlattice.load(engine="numpy"))

    def test_lists_give_lists(self) -> None:
        ner = self.ner()
        found = ner([TEXT, ""])
        assert isinstance(found, list)
        assert found[0].spans == ner(TEXT).spans
        assert not isinstance(ner(text for text in [TEXT]), list)

    @pytest.mark.parametrize("given", [None, 3, float("nan")])
    def test_what_is_no_text_is_refused_at_once(self, given: Any) -> None:
        with pytest.raises(HanlatticeError, match="texts must be an iterable of str"):
            self.ner()(given)

    @pytest.mark.parametrize("cell", [None, float("nan"), b"x"])
    def test_a_cell_that_is_no_text_is_named(self, cell: Any) -> None:
        with pytest.raises(HanlatticeError, match=r"a text must be a str, not \w+ \(.*\); replace missing texts"):
            self.ner()([TEXT, cell])
