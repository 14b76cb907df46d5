"""The mutation tests themselves: faults that can be put in, and operators that change what they say."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mutation.chosen import FAULTS
from mutation.equivalent import EQUIVALENT
from mutation.operators import mutants
from mutation.run import (
    FURTHER,
    PACKAGE,
    TESTS,
    Outcome,
    State,
    check_sound,
    chosen,
    generated,
    passed,
    stages_for,
    summary,
    table,
    tried,
)
from mutation.run import pytest as run_pytest

SOURCE = '''
def share(part: int, whole: int = 2) -> float:
    """Docstrings hold no mutants: 1 < 2."""
    if not part or whole <= 0:
        raise ValueError("1 + 1")
    return divided(part, whole) / max(whole, 1)
'''


@pytest.mark.parametrize("name", ["a word ends one character late", "transitions transposed in Viterbi"])
def test_a_fault_is_noticed(name: str) -> None:
    (fault,) = (fault for fault in chosen() if fault.name == name)
    assert tried(fault).noticed


def test_a_fault_is_undecided_if_the_time_is_over() -> None:
    (fault,) = (fault for fault in chosen() if fault.name == "a word ends one character late")
    undecided = tried(fault, deadline=time.monotonic())
    assert summary([undecided]) == "not decided in time: 1"
    assert fault.name not in table([undecided])
    outcome = tried(fault, timeout=0.01)
    assert outcome.decided
    assert (outcome.noticed or "").endswith(": no end")


@pytest.mark.parametrize(
    ("of_chosen", "missed", "spare", "passes"),
    [(False, 0, 0, True), (False, 1, 0, False), (False, 1, 1, True), (False, 2, 1, False), (True, 1, 1, False)],
)
def test_one_generated_fault_may_be_spared(of_chosen: bool, missed: int, spare: int, passes: bool) -> None:
    fault = replace(chosen()[0], chosen=of_chosen)
    outcomes = [Outcome(fault, "test_a", 1.0), *[Outcome(fault, None, 1.0)] * missed]
    assert passed([*outcomes, Outcome(fault, None, 1.0, decided=False)], spare) is passes


def test_what_tests_started_ends_with_them(tmp_path: Path) -> None:
    """A process that a test leaves behind holds the pipes of the tests open."""
    (tmp_path / "test_slow.py").write_text(
        "import subprocess, sys, time\n"
        "def test_slow():\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "    time.sleep(600)\n"
    )
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired):
        run_pytest(f"-s {tmp_path / 'test_slow.py'}", None, 5)
    assert time.monotonic() - began < 300


def test_every_chosen_fault_can_be_put_in() -> None:
    counts = {
        name: (PACKAGE / fault.file).read_text(encoding="utf-8").count(fault.right)
        for name, fault in FAULTS.items()
    }
    assert {name: n for name, n in counts.items() if n != 1} == {}


def test_names_of_tests_have_no_spaces_in_them() -> None:
    """A command separates them by spaces, so that names of parameters with spaces would be files."""
    words = {word for fault in FAULTS.values() for word in fault.test.split()}
    assert [word for word in sorted(words) if not word.startswith("tests/")] == []


def test_operators() -> None:
    found = {(m.before, m.after) for m in mutants("share.py", SOURCE)}
    assert found == {
        ("2", "3"),
        ("not part or whole <= 0", "False"),
        ("not part or whole <= 0", "(not part and whole <= 0)"),
        ("not part", "part"),
        ("whole <= 0", "(whole < 0)"),
        ("0", "1"),
        ("return divided(part, whole) / max(whole, 1)", "return None"),
        ("max(whole, 1)", "min(whole, 1)"),
        ("divided(part, whole)", "divided(whole, part)"),
        ("1", "2"),
    }


def test_a_strict_zip_is_an_assertion() -> None:
    found = {(m.before, m.after) for m in mutants("f.py", "x = zip(a, b, strict=True), read(a, strict=True)")}
    assert found == {("zip(a, b, strict=True)", "zip(b, a, strict=True)"), ("True", "False")}
    assert [m.after for m in mutants("f.py", "x = zip(a, strict=False)")] == ["True"]


def test_a_mutant_changes_its_place_only() -> None:
    source = "# 中文\ndef f(a, b):\n    return g('文', a < b)\n"
    one = next(m for m in mutants("f.py", source) if m.operator == "comparison")
    assert one.line == 3
    assert one.apply(source.encode()).decode() == source.replace("a < b", "(a <= b)")


def test_generation_follows_the_seed() -> None:
    first, again, other = ([f.name for f in generated(60, seed)] for seed in ("a", "a", "b"))
    assert first == again != other
    assert len({name.split("/")[0] for name in first}) > 15


def test_at_least_half_of_250_faults_are_generated() -> None:
    from mutation.run import GENERATED, SEED

    n = len(generated(GENERATED, SEED))
    assert n >= len(FAULTS)
    assert n + len(FAULTS) >= 250


def test_equivalent_mutants_exist_and_have_a_reason() -> None:
    files = {key.split(":")[0] for key in EQUIVALENT}
    known = {m.key for f in files for m in mutants(f, (PACKAGE / f).read_text(encoding="utf-8"))}
    assert set(EQUIVALENT) <= known
    assert all(len(reason.split()) > 3 for reason in EQUIVALENT.values())


def test_tests_of_a_module() -> None:
    stages = stages_for("decoders/tagging.py")
    assert any("oracles" in stage for stage in stages)
    assert stages_for("spans.py") == ("tests/test_spans.py",)
    assert "tests/evaluation" in stages_for("cli/evaluate.py")
    assert all((TESTS / name).exists() for names in FURTHER.values() for name in names)
    assert all((PACKAGE / name).exists() for name in FURTHER)


def test_a_run_continues_with_what_was_not_noticed(tmp_path: Path) -> None:
    first, second, third = chosen()[:3]
    state = State(tmp_path / "state.jsonl")
    state.add(Outcome(first, "test_a", 1.0))
    state.add(Outcome(second, None, 1.0))
    state = State(tmp_path / "state.jsonl")
    assert state.outcome(first) == Outcome(first, "test_a", 1.0)
    assert state.outcome(second) is None
    assert state.outcome(third) is None
    assert state.outcome(replace(first, change=lambda source: source + b"#")) is None


def test_a_test_that_fails_without_a_fault_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    with pytest.raises(RuntimeError, match="fails on the sound package"):
        check_sound(str(tmp_path / "test_wrong.py"), "")
