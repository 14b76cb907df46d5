"""The checks of a release refuse files that would not work where their names promise it."""

import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import check_wheels
from hanlattice.kernels.compiling import HERE, TARGETS, compiler

VERSION, PLATFORM = "1.2.3", "manylinux_2_17_x86_64"
WHEEL = f"hanlattice-{VERSION}-py3-none-{PLATFORM}.whl"
KERNELS = [f"hanlattice/kernels/kernels_{level}.so" for level in ("avx2", "avxvnni", "avx512", "avx512bf16")]
X86, ARM = b"\x3e\x00", b"\xb7\x00"


def elf(processor: bytes = X86, more: bytes = b"GLIBC_2.2.5 GLIBC_2.14") -> bytes:
    """What the checks read of a shared library."""
    return b"\x7fELF" + bytes(14) + processor + b" ".join(check_wheels.FUNCTIONS) + more


LEVEL = Path(__file__).parents[1] / "src" / "hanlattice" / "kernels" / "level.c"  # an installation may not have it


def wheel(folder: Path, **changed: bytes | None) -> Path:
    """A wheel of a few bytes; ``changed`` replaces its files by name, or leaves them out."""
    info = f"hanlattice-{VERSION}.dist-info"
    files: dict[str, bytes] = {
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: py3-none-{PLATFORM}\n".encode(),
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: hanlattice\nVersion: {VERSION}\n".encode(),
        **{f"hanlattice/{name}": b"" for name in check_wheels.FILES},
        **{name: elf() for name in KERNELS},
    }
    with zipfile.ZipFile(folder / WHEEL, "w") as packed:
        for name, data in {**files, **{k.replace("INFO", info): v for k, v in changed.items()}}.items():
            if data is not None:
                packed.writestr(name, data)
    return folder / WHEEL


def problems(folder: Path) -> list[str]:
    return list(check_wheels.problems(folder, VERSION, every=False))


def test_the_package_is_small_enough_for_its_installation() -> None:
    """``scripts/try_wheel`` allows 60 MB: 1.6 for libraries, 0.8 for kernels and metadata, and the files here.

    A wheel with kernels does not have their sources.
    """
    left_out = (".pyc", ".so", ".c", ".h")
    files = [path for path in HERE.parent.rglob("*") if path.is_file() and path.suffix not in left_out]
    assert sum(path.stat().st_size for path in files) < 57_600_000


def test_a_good_wheel(tmp_path: Path) -> None:
    wheel(tmp_path)
    assert problems(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        (KERNELS[0], elf(ARM), "is for linux aarch64, not linux x86_64"),
        (KERNELS[0], b"#!/bin/sh " + elf()[20:], "is for an unknown platform"),
        (KERNELS[0], elf(more=b"GLIBC_2.18"), "needs glibc 2.18, which manylinux_2_17_x86_64 does not promise"),
        (KERNELS[0], elf().replace(b"chain_find", b""), "does not export chain_find"),
        (KERNELS[1], None, f"{KERNELS[1]}: missing"),
        ("hanlattice/kernels/kernels_neon.so", elf(ARM), "kernels_neon.so: does not belong to it"),
        ("hanlattice/data/vectors.safetensors", None, "vectors.safetensors: missing"),
        ("hanlattice/data/default_model/model.onnx", b"", "model.onnx: does not belong to it"),
        ("INFO/WHEEL", b"Tag: py3-none-linux_x86_64\n", "has the tags ['py3-none-linux_x86_64']"),
        ("INFO/METADATA", b"Version: 1.2.4\n", "has the version 1.2.4 in its metadata"),
        ("INFO/METADATA", None, "broken ("),
    ],
)
def test_a_bad_wheel_is_one_line(name: str, data: bytes | None, problem: str, tmp_path: Path) -> None:
    wheel(tmp_path, **{name: data})
    (line,) = problems(tmp_path)
    assert line.startswith(f"{WHEEL}: ")
    assert problem in line


def test_a_wheel_of_this_machine_only_is_refused(tmp_path: Path) -> None:
    wheel(tmp_path).rename(tmp_path / WHEEL.replace(PLATFORM, "linux_x86_64"))
    (line,) = problems(tmp_path)
    assert "is not a wheel of version 1.2.3 for one of manylinux_2_17_x86_64," in line


def test_an_sdist_holds_no_compiled_file(tmp_path: Path) -> None:
    root = f"hanlattice-{VERSION}"
    (tmp_path / "empty").touch()
    with tarfile.open(tmp_path / f"{root}.tar.gz", "w:gz") as packed:
        names = [
            "PKG-INFO",
            "pyproject.toml",
            "LICENSE",
            *(f"src/hanlattice/{name}" for name in (*check_wheels.FILES, check_wheels.SOURCE)),
        ]
        for name in [*names, "src/hanlattice/kernels/kernels_avx2.so"]:
            packed.add(tmp_path / "empty", f"{root}/{name}")
    (tmp_path / "empty").unlink()
    assert [line.partition(": ")[2] for line in problems(tmp_path)] == [
        "NOTICE: missing",
        "src/hanlattice/kernels/kernels_avx2.so: compiled files do not belong to it",
    ]


def test_every_platform_has_to_be_there(tmp_path: Path) -> None:
    wheel(tmp_path)
    lines = list(check_wheels.problems(tmp_path, VERSION, every=True))
    assert len(lines) == len(TARGETS)  # all wheels but one, and the sdist
    assert f"hanlattice-{VERSION}.tar.gz: missing" in lines
    assert f"hanlattice-{VERSION}-py3-none-win_amd64.whl: missing" in lines


def test_files_larger_than_an_index_takes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path)
    monkeypatch.setattr(check_wheels, "MOST_BYTES", 10)
    (line,) = problems(tmp_path)
    assert line.endswith("MB are more than a package index takes")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (elf(), ("linux", "x86_64")),
        (elf(ARM), ("linux", "aarch64")),
        (b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01", ("darwin", "aarch64")),
        (b"\xcf\xfa\xed\xfe\x07\x00\x00\x01", ("darwin", "x86_64")),
        (b"MZ" + bytes(58) + b"\x40\x00\x00\x00PE\x00\x00\x64\x86", ("win32", "x86_64")),
        (b"\x7fELF", ("", "")),
        (b"#!/bin/sh", ("", "")),
    ],
)
def test_the_header_of_a_library(data: bytes, expected: tuple[str, str]) -> None:
    assert check_wheels.built_for(data) == expected


@pytest.fixture
def compiled(tmp_path: Path) -> Iterator[Path]:
    command = compiler()
    if command is None:
        pytest.skip("no C compiler")
    path = tmp_path / "level.so"
    subprocess.run([*command, "-shared", "-fPIC", "-o", str(path), str(LEVEL)], check=True)
    yield path
    shutil.rmtree(tmp_path)


def test_a_library_of_the_compiler_at_hand(compiled: Path) -> None:
    import platform

    system, processor = check_wheels.built_for(compiled.read_bytes())
    assert (system, processor) == ("linux", platform.machine())
    assert b"processor_levels" in compiled.read_bytes()
