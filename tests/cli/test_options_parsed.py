"""What the values of options become, and which values are refused."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from hanlattice.cli.config_options import SIMILAR, _split_dotted, preset, without_unset
from hanlattice.cli.options import blocked, chosen_patterns, forced, one_model, renamed_labels, with_model
from hanlattice.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", {}),
        ("NS=LOC", {"NS": "LOC"}),
        ("NS=LOC, NR = PER ,", {"NS": "LOC", "NR": "PER"}),
        ("A=X,B=X,A=X", {"A": "X", "B": "X"}),
        ("A=B=C", {"A": "B=C"}),
    ],
)
def test_renamed_labels(text: str, names: dict[str, str]) -> None:
    assert renamed_labels(text) == names


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("NS", "'NS' is not a pair; write OLD=NEW,OLD=NEW"),
        ("=LOC", "'=LOC' is not a pair"),
        ("NS=", "'NS=' is not a pair"),
        ("NS=LOC, ", "' ' is not a pair"),
        ("A=X,A=Y", "A is renamed to X and to Y"),
    ],
)
def test_pairs_that_rename_nothing(text: str, problem: str) -> None:
    with pytest.raises(typer.BadParameter, match=problem):
        renamed_labels(text)


def test_force() -> None:
    assert forced(None) == forced([]) == {}
    assert forced(["小米=ORG", "a=b=PER", "小米=PRODUCT"]) == {"小米": "PRODUCT", "a=b": "PER"}
    for wrong in ("小米", "=ORG", "小米="):
        with pytest.raises(typer.BadParameter, match="write TEXT=LABEL, such as 小米=ORG"):
            forced(["李明=PER", wrong])


def test_block() -> None:
    assert blocked(None) == blocked([]) == {}
    assert blocked(["小米"]) == {"小米": None}
    assert blocked(["小米=ORG", "小米=PER", "a=b=PER"]) == {"小米": ("ORG", "PER"), "a=b": ("PER",)}
    assert blocked(["小米=ORG", "小米"]) == blocked(["小米", "小米=ORG"]) == {"小米": None}
    for wrong in ("", "=ORG", "小米="):
        with pytest.raises(typer.BadParameter, match="write TEXT or TEXT=LABEL, such as 小米=ORG"):
            blocked([wrong])


def test_patterns_and_their_day() -> None:
    assert chosen_patterns(None, None) is None
    chosen = chosen_patterns("DATE", "2024-03-15")
    assert chosen is not None
    assert chosen.find("明天")[0].value == "2024-03-16"
    for given, message in (
        ((None, "2024-03-15"), "--today needs --patterns, such as --patterns all"),
        (("DATES", None), "there is no kind 'DATES'"),
        (("DATE", "15 March"), "'15 March' is not a day"),
    ):
        with pytest.raises(typer.BadParameter, match=message):
            chosen_patterns(*given)


class TestModel:
    def test_as_an_option_or_in_the_older_form(self) -> None:
        assert with_model(["gold"], None, "GOLD") == (None, ["gold"])
        assert with_model(["gold"], "model", "GOLD") == ("model", ["gold"])
        assert with_model(["model", "gold"], None, "GOLD") == ("model", ["gold"])
        assert with_model([], None) == (None, [])
        assert with_model(["model"], None) == ("model", [])

    @pytest.mark.parametrize(
        ("arguments", "model"), [([], None), (["a", "b", "c"], None), ([], "model"), (["a", "b"], "model")]
    )
    def test_too_few_or_too_many(self, arguments: list[str], model: Any) -> None:
        with pytest.raises(typer.BadParameter, match="name GOLD, and the model with --model, not '"):
            with_model(arguments, model, "GOLD")

    def test_a_model_in_place_of_the_argument(self, tmp_path: Path) -> None:
        (tmp_path / "config.toml").touch()
        for name in ("default", str(tmp_path)):
            with pytest.raises(typer.BadParameter, match=f"{name} is a model; name GOLD too"):
                with_model([name], None, "GOLD")
            assert with_model([name], "model", "GOLD") == ("model", [name])

    def test_one(self) -> None:
        assert one_model(None, None) == "default"
        assert one_model("a", None) == one_model(None, "a") == "a"
        with pytest.raises(typer.BadParameter):
            one_model("a", "b")


class TestSettings:
    def test_dotted_options_have_values(self) -> None:
        given = ["--training.epochs", "2", "a", "--encoder.layers=3", "--x", "--", "--training.seed", "4"]
        found = _split_dotted(None, given)
        assert found == (
            {"training.epochs": "2", "encoder.layers": "3"},
            ["a", "--x", "--", "--training.seed", "4"],
        )
        assert _split_dotted(None, ["--a.b="]) == ({"a.b": ""}, [])
        with pytest.raises(typer.BadParameter, match=r"--a\.b needs a value, such as --a\.b 2"):
            _split_dotted(None, ["a", "--a.b"])

    def test_options_that_the_user_left_out(self) -> None:
        given: dict[str, dict[str, Any]] = {
            "data": {"dev": None, "train": [], "test": "", "drop": False},
            "lexicon": {"files": None},
        }
        assert without_unset(given) == {"data": {"test": "", "drop": False}}

    def test_settings_of_the_package_by_name(self) -> None:
        path = preset("flat/msra")
        assert path.is_file()
        assert preset("flat/msra.toml") == path
        with pytest.raises(ConfigError, match=r"the package has no settings 'flat/msr'; it has flat/msra, "):
            preset("flat/msr")

    def test_an_error_shows_the_most_similar_names_only(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as error:
            preset("nothing")
        assert str(error.value).count("/") == SIMILAR + 1  # and that of docs/systems.md
        assert re.search(r" and \d+ others, which docs/systems\.md lists$", str(error.value))
        (tmp_path / "mine.toml").touch()
        with pytest.raises(ConfigError, match=r"mine\.toml is a file .*; give it without --paper$"):
            preset(str(tmp_path / "mine.toml"))
