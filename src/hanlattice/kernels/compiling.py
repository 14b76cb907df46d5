"""Compile the C kernels, once for each instruction set. This runs when the package is built, or by hand::

    python -m hanlattice.kernels.compiling

It imports nothing of the package, so that a build can run this file alone. What only the compilation needs is
imported in its functions, because every process that runs a kernel imports this module.
"""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SOURCES = ("trie.c", "wordlist.c", "characters.c", "reader.c", "body.c", "flat.c", "chain.c", "linear.c", "level.c")
FLAGS = ("-O3", "-std=gnu11", "-fno-math-errno", "-g0", "-shared", "-fPIC")

# Compiler flags of each instruction set, the best last, in the order of the bits of processor_levels() in level.c.
_AVX512 = ("-march=x86-64-v4", "-mprefer-vector-width=512", "-mavx512vnni")
X86 = {
    "avx2": ("-march=x86-64-v3",),
    "avxvnni": ("-march=x86-64-v3", "-mavxvnni"),
    "avx512": _AVX512,
    "avx512bf16": (*_AVX512, "-mavx512bf16"),
}
ARM = {"neon": (), "neon_dotprod": ("-mcpu=generic+dotprod",)}
BUILDS: Mapping[str, Mapping[str, Sequence[str]]] = {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}
LEVELS = BUILDS.get(platform.machine().lower(), {})


class Target(NamedTuple):
    """A platform that zig compiles for: its name in zig, and the processor and the system."""

    zig: str
    machine: str
    system: str


# By the platform tag of the wheel. Older versions of glibc, musl or the system do not open the kernels.
TARGETS = {
    "manylinux_2_17_x86_64": Target("x86_64-linux-gnu.2.17", "x86_64", "linux"),
    "manylinux_2_17_aarch64": Target("aarch64-linux-gnu.2.17", "aarch64", "linux"),
    "musllinux_1_2_x86_64": Target("x86_64-linux-musl", "x86_64", "linux"),
    "musllinux_1_2_aarch64": Target("aarch64-linux-musl", "aarch64", "linux"),
    "macosx_11_0_arm64": Target("aarch64-macos.11.0", "aarch64", "darwin"),
    "macosx_11_0_x86_64": Target("x86_64-macos.11.0", "x86_64", "darwin"),
    "win_amd64": Target("x86_64-windows-gnu", "x86_64", "win32"),
}


def library(level: str, system: str = sys.platform) -> Path:
    """The path of the library for an instruction set; the file exists if it was compiled."""
    return HERE / f"kernels_{level}.{'dll' if system == 'win32' else 'so'}"


def compiler() -> list[str] | None:
    """The command of the C compiler: that of the variable ``CC``, else the system's."""
    import shlex
    import shutil

    named = shlex.split(os.environ.get("CC", ""))
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return None


def compile_all() -> list[Path]:
    """Compile all libraries for this machine and return those that succeeded.

    There are none without a compiler, or on a processor other than x86-64 and 64-bit ARM. Each is written to a
    temporary folder first, so that a library is complete when it appears.
    """
    command = compiler()
    if command is None:
        return []
    return [made for level, flags in LEVELS.items() if (made := _compiled(command, library(level), flags))]


def compile_for(tag: str) -> list[Path]:
    """Compile all libraries for the platform of a wheel with zig (package ``ziglang``), and return them.

    Raises:
        subprocess.CalledProcessError: a library cannot be compiled.
    """
    target = TARGETS[tag]
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    made = []
    for level, flags in BUILDS[target.machine].items():
        path = library(level, target.system)
        _compile(command, path, [_of_zig(flag) for flag in flags])
        made.append(path)
    return made


def _of_zig(flag: str) -> str:
    """The flag in the spelling of zig, whose names of processors have underscores."""
    return flag.replace("x86-64-", "x86_64_")


def _compiled(command: Sequence[str], target: Path, flags: Sequence[str]) -> Path | None:
    import subprocess

    try:
        _compile(command, target, flags)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").splitlines() or [f"exit status {error.returncode}"]
        reason = next((line for line in lines if "error" in line), lines[0])
        print(f"{target.name} was not compiled by {command[0]}: {reason}", file=sys.stderr)
        return None
    except OSError as error:  # of a folder that only others may write to, or of a library in use on Windows
        print(f"{target} cannot be written: {error.strerror or error}", file=sys.stderr)
        return None
    return target


def _compile(command: Sequence[str], target: Path, flags: Sequence[str]) -> None:
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        draft = Path(folder) / target.name
        sources = [str(HERE / source) for source in SOURCES]
        subprocess.run([*command, *FLAGS, *flags, "-o", str(draft), *sources], capture_output=True, check=True)
        draft.replace(target)


if __name__ == "__main__":
    if not (HERE / SOURCES[0]).is_file():
        sys.exit(
            "the sources of the kernels are not in this installation, which has compiled ones: install it again"
        )
    made = compile_all()
    print("\n".join(map(str, made)) or "no C compiler that can compile the kernels was found: install gcc or clang")
    sys.exit(not made)
