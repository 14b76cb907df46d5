"""Compile the C kernels, once for each instruction set. This runs when the package is built, or by hand::

    python -m hanlattice.kernels.compiling

It imports nothing of the package, so that a build can run this file alone.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from platform import machine

HERE = Path(__file__).parent
SOURCES = ("trie.c", "flat.c", "chain.c", "level.c")
# Compiler flags of each instruction set, in the order of processor_level() in level.c.
AVX512 = ("-march=x86-64-v4", "-mprefer-vector-width=512", "-mavx512vnni")
LEVELS = {"avx2": ("-march=x86-64-v3",), "avx512": AVX512, "avx512bf16": (*AVX512, "-mavx512bf16")}
FLAGS = ("-O3", "-std=gnu11", "-fno-math-errno", "-shared", "-fPIC")


def library(level: str) -> Path:
    """The path of the library for an instruction set; the file exists if it was compiled."""
    return HERE / f"kernels_{level}.so"


def compiler() -> list[str] | None:
    """The command of the C compiler: that of the variable ``CC``, else the system's."""
    named = shlex.split(os.environ.get("CC", ""))
    for command in (named, ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return None


def compile_all() -> list[Path]:
    """Compile all libraries and return those that succeeded; none without a compiler, or if this is not x86.

    Each is written to a temporary folder first, so that a library is complete when it appears.
    """
    command = compiler()
    if command is None or sys.platform == "win32" or machine().lower() not in ("x86_64", "amd64"):
        return []
    return [made for level, flags in LEVELS.items() if (made := _compiled(command, library(level), flags))]


def _compiled(command: Sequence[str], target: Path, flags: Sequence[str]) -> Path | None:
    with tempfile.TemporaryDirectory(dir=HERE) as folder:
        draft = Path(folder) / target.name
        sources = [str(HERE / source) for source in SOURCES]
        done = subprocess.run(
            [*command, *FLAGS, *flags, "-o", str(draft), *sources], capture_output=True, check=False
        )
        if done.returncode:
            return None
        draft.replace(target)
    return target


if __name__ == "__main__":
    made = compile_all()
    print("\n".join(map(str, made)) or "no C compiler that can compile the kernels was found: install gcc or clang")
    sys.exit(not made)
