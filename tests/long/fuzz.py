"""Fuzzing guided by coverage, with sanitizers: readers, normalisation, the matcher, edges, the kernels.

    pip install atheris
    python tests/long/fuzz.py [--minutes 3] [--targets corpus match …]

Each target of `fuzz_targets.py` runs for some CPU minutes under atheris (libFuzzer for Python), which keeps inputs
that reach new code of the package. The kernels are compiled for it with the address and undefined behaviour
sanitizers of GCC, in a copy of the package. An exception that is not a HanlatticeError, an input that takes more
than 20 s, and a report of a sanitizer are failures; the input is written beside those that are kept, and
``--input FILE`` shows its error again. Targets that the record has are not run again.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import hanlattice
from hanlattice.kernels.compiling import FLAGS, LEVELS, SOURCES, library
from hanlattice.kernels.library import levels
from long.progress import Progress, cpu_seconds

NAMES = ("corpus", "settings", "normalise", "match", "lexicon", "edges", "predict")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g1")
LONGEST, SECONDS, MEMORY = 2048, 20, 4096  # bytes of an input, seconds for it, megabytes of a process
DONE = "executed: "
LEAST = 20  # branches that a target reaches at least, if they are counted
REACHED = "branches reached: "
COVERED = re.compile(r"cov: (\d+)")


def fuzz(target: str, kept: Path, minutes: float, given: Path | None) -> None:
    """Fuzz in this process, which ends in it, for so many CPU minutes."""
    import atheris

    with atheris.instrument_imports(include=["hanlattice"]):
        from hanlattice.errors import HanlatticeError
        from long import fuzz_targets

    done = 0

    def one(data: bytes) -> None:
        nonlocal done
        with suppress(HanlatticeError):
            fuzz_targets.TARGETS[target](data)
        done += 1
        if time.process_time() > 60 * minutes:
            print(f"{DONE}{done}", flush=True)
            os._exit(0)

    if given is not None:
        one(given.read_bytes())
        return
    for i, seed in enumerate(fuzz_targets.seeds(target)):
        (kept / f"seed-{i}").write_bytes(seed)
    limits = [f"-max_len={LONGEST}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEMORY}"]
    atheris.Setup([sys.argv[0], str(kept), *limits, f"-artifact_prefix={kept.parent}/{target}-"], one)
    atheris.Fuzz()


def sanitized(folder: Path) -> dict[str, str]:
    """Copy the package, with kernels that check themselves; the environment for a process that uses it.

    Kernels that an earlier run has compiled are used again, if they are newer than their sources.
    """
    package, copy = Path(hanlattice.__file__).parent, folder / "hanlattice"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"), dirs_exist_ok=True)
    level = levels()[-1]
    made = copy / "kernels" / library(level).name
    sources = [package / "kernels" / name for name in SOURCES]
    if not made.exists() or made.stat().st_mtime < max(p.stat().st_mtime for p in sources[0].parent.glob("*.[ch]")):
        flags = [*(flag for flag in FLAGS if flag != "-shared"), *LEVELS[level], "-O1", *SANITIZERS]
        subprocess.run(["gcc", *flags, "-c", *map(str, sources)], check=True, cwd=made.parent)
        # Linked without the sanitizers of GCC: `_runtime` has their functions.
        objects = [str(made.parent / f"{source.stem}.o") for source in sources]
        subprocess.run(["gcc", "-shared", "-o", str(made), *objects], check=True)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "LD_PRELOAD": str(_runtime()),
        # Frames of functions that are kept for the check of use after return are not aligned as AVX-512 needs it.
        "ASAN_OPTIONS": "detect_stack_use_after_return=0:detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _runtime() -> Path:
    """The library of atheris with the sanitizers and libFuzzer. That of GCC would hide the coverage of Python."""
    found = find_spec("atheris")
    if found is None or found.origin is None:
        raise SystemExit("fuzzing needs atheris: pip install atheris")
    return Path(found.origin).parents[1] / "asan_with_fuzzer.so"


def run(target: str, minutes: float, kept: Path, environment: dict[str, str]) -> tuple[int, int, str]:
    """Fuzz one target in another process: executions, covered branches, and the failure, if there is one."""
    (kept / target).mkdir(parents=True, exist_ok=True)
    log = kept / f"{target}.log"
    command = [sys.executable, __file__, "--one", target, "--kept", str(kept), "--minutes", str(minutes)]
    with log.open("wb") as stream:
        status = subprocess.run(command, stdout=stream, stderr=stream, env=environment).returncode
    text = log.read_text(encoding="utf-8", errors="replace")
    executions = int(text.rpartition(DONE)[2].split()[0]) if DONE in text else 0
    covered = [int(number) for number in COVERED.findall(text)]
    if status or not executions:
        return executions, max(covered, default=0), f"{target}: status {status}: {text[-1500:]}"
    if max(covered, default=0) < LEAST:
        return executions, 0, f"{target}: nothing was measured of the code that is reached"
    return executions, max(covered), ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=3, help="CPU minutes for each target")
    parser.add_argument("--targets", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--kept", type=Path, default=Path("runs/long/fuzz"), help="folder of the inputs")
    parser.add_argument("--record", type=Path, default=Path("runs/long/fuzz.json"), help="file of the result")
    parser.add_argument("--one", choices=NAMES, help="fuzz this target in this process")
    parser.add_argument("--input", type=Path, help="with --one, run this input only")
    options = parser.parse_args()
    kept: Path = options.kept.absolute()
    if options.one:
        fuzz(options.one, kept / options.one, options.minutes, options.input)
        return 0
    result = Progress.open(options.record)
    covered = [result.measured.removeprefix(REACHED)] if result.measured else []
    environment, before = sanitized(kept / "package"), result.cpu_seconds
    for target in options.targets:
        if target in result.outcomes:
            continue
        executions, branches, failure = run(target, options.minutes, kept, environment)
        result.done += executions
        result.outcomes[target] = executions
        covered.append(f"{branches:,} of {target}")
        if failure:
            result.failures.append((result.done, failure))
        result.cpu_seconds = before + cpu_seconds()
        result.measured = REACHED + ", ".join(covered)
        result.save()
        print(result.report(), result.measured, failure, flush=True)
    return int(bool(result.failures))


if __name__ == "__main__":
    sys.exit(main())
