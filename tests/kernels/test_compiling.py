"""Compilation of the kernels: which compiler is taken, and which libraries are made; no compiler runs here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hanlattice.kernels import compiling


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that a compilation runs; those with the flag -mfails fail."""
    commands: list[list[str]] = []

    def run(command: list[str], **settings: Any) -> None:
        assert settings == {"capture_output": True, "check": True}
        commands.append(command)
        if any("fails" in part for part in command):
            raise subprocess.CalledProcessError(1, command, b"", b"")
        Path(command[command.index("-o") + 1]).write_bytes(b"library")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(compiling, "HERE", tmp_path)
    return commands


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The programs that the system has."""
    names: set[str] = set()
    monkeypatch.setattr("shutil.which", lambda name: name if name in names else None)
    monkeypatch.delenv("CC", raising=False)
    return names


def test_the_compiler_is_that_of_the_variable_or_the_first_there_is(
    found: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiling.compiler() is None
    found |= {"clang", "gcc"}
    assert compiling.compiler() == ["gcc"]
    monkeypatch.setenv("CC", "clang -m64")
    assert compiling.compiler() == ["clang", "-m64"]
    monkeypatch.setenv("CC", "icc")
    assert compiling.compiler() == ["gcc"]


def test_without_a_compiler_nothing_is_made(found: set[str], calls: list[list[str]]) -> None:
    assert compiling.compile_all() == []
    assert calls == []


def test_a_folder_that_cannot_be_written_is_one_line(
    found: set[str], calls: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found.add("gcc")

    def refuse(**options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)
    assert compiling.compile_all() == []
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(line.endswith(" cannot be written: Permission denied") for line in said)


def test_libraries_that_can_be_compiled_are_returned(
    found: set[str], calls: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found.add("cc")
    monkeypatch.setattr(compiling, "LEVELS", {"one": ("-ma",), "two": ("-mfails",), "three": ()})
    made = compiling.compile_all()
    assert made == [compiling.library("one"), compiling.library("three")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in made)
    assert [call[0] for call in calls] == ["cc"] * 3
    assert "-ma" in calls[0]
    assert [part for part in calls[0] if part.endswith(".c")] == [
        str(tmp_path / name) for name in compiling.SOURCES
    ]


@pytest.mark.parametrize(
    ("tag", "target", "ending", "flag"),
    [
        ("win_amd64", "x86_64-windows-gnu", "dll", "-march=x86_64_v3"),
        ("musllinux_1_2_aarch64", "aarch64-linux-musl", "so", "-mcpu=generic+dotprod"),
    ],
)
def test_libraries_of_a_platform_are_compiled_by_zig(
    tag: str, target: str, ending: str, flag: str, calls: list[list[str]]
) -> None:
    made = compiling.compile_for(tag)
    levels = compiling.BUILDS[compiling.TARGETS[tag].machine]
    assert [path.name for path in made] == [f"kernels_{level}.{ending}" for level in levels]
    assert all(path.is_file() for path in made)
    assert all(call[:6] == [sys.executable, "-m", "ziglang", "cc", "-target", target] for call in calls)
    assert any(flag in call for call in calls)


def test_a_failure_for_a_platform_is_an_error(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "FLAGS", ("-mfails",))
    with pytest.raises(subprocess.CalledProcessError):
        compiling.compile_for("win_amd64")


@pytest.mark.parametrize(
    ("compiler", "status", "shown", "reason"),
    [
        ("touch", 0, "kernels_", ""),
        ("exit 1; :", 1, "no C compiler that can compile the kernels was found", "by sh: exit status 1"),
        (
            "echo note >&2; echo flat.c: error: no >&2; exit 1; :",
            1,
            "no C compiler",
            "by sh: flat.c: error: no\n",
        ),
    ],
    ids=["compiles", "fails", "fails with a reason"],
)
def test_the_file_alone_compiles_or_says_why_not(
    tmp_path: Path, compiler: str, status: int, shown: str, reason: str
) -> None:
    """A build runs it without the package."""
    if not compiling.LEVELS:
        pytest.skip("no kernels for this processor")
    shutil.copy(compiling.__file__, tmp_path / "compiling.py")
    (tmp_path / compiling.SOURCES[0]).touch()
    script = tmp_path / "cc.sh"
    script.write_text(f'while [ "$1" != -o ]; do shift; done\n{compiler} "$2"\n')
    done = subprocess.run(
        [sys.executable, "compiling.py"],
        cwd=tmp_path,
        env={**os.environ, "CC": f"sh {script}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert shown in done.stdout
    assert reason in done.stderr
    made = sorted(tmp_path.glob("kernels_*"))
    assert len(made) == (0 if status else len(compiling.LEVELS))
    assert all(str(path) in done.stdout for path in made)


def test_an_installation_without_sources_says_so(tmp_path: Path) -> None:
    shutil.copy(compiling.__file__, tmp_path / "compiling.py")
    done = subprocess.run(
        [sys.executable, "compiling.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the sources of the kernels are not in this installation")
