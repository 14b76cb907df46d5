"""Check the files of a release: python scripts/check_wheels.py FOLDER [--all]

Prints one line per file, then one line per problem; the exit status is 1 if there is one. Checked are: tags and
metadata; the data files of the package; for each kernel its processor, its system, the functions that it exports
and the version of glibc that it needs; sizes. With --all, a wheel for every platform and an sdist have to be there.
"""

import argparse
import re
import struct
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from hanlattice.kernels.compiling import BUILDS, TARGETS, library  # noqa: E402

MOST_BYTES = 100_000_000  # package indexes refuse larger files
FILES = (
    "data/t2s.txt",
    "data/vectors.safetensors",
    "data/default_model/model.safetensors",
    "data/default_model/vocabulary.json",
    "papers/hanlattice/weibo.toml",
    "py.typed",
)
SOURCE = "kernels/flat.c"  # of an sdist; a wheel with kernels does not need it
FUNCTIONS = (b"reader_read", b"trie_search", b"flat_emissions", b"chain_find", b"processor_levels", b"sizeof_Flat")
NAME = re.compile(r"hanlattice-(?P<version>[^-]+)-py3-none-(?P<platform>[^-]+)[.]whl")
ELF, MACH_O, PE = b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ"
PROCESSORS = {
    ("linux", 62): "x86_64",
    ("linux", 183): "aarch64",
    ("darwin", 0x01000007): "x86_64",
    ("darwin", 0x0100000C): "aarch64",
    ("win32", 0x8664): "x86_64",
}


def built_for(data: bytes) -> tuple[str, str]:
    """The system and the processor of a shared library, by its header; empty if they are unknown."""
    try:
        if data.startswith(ELF):
            key = ("linux", struct.unpack_from("<H", data, 18)[0])
        elif data.startswith(MACH_O):
            key = ("darwin", struct.unpack_from("<I", data, 4)[0])
        elif data.startswith(PE):
            key = ("win32", struct.unpack_from("<H", data, struct.unpack_from("<I", data, 60)[0] + 4)[0])
        else:
            return "", ""
    except struct.error:
        return "", ""
    return key[0], PROCESSORS.get(key, "")


def needed_glibc(data: bytes) -> tuple[int, int]:
    """The newest version of glibc among the symbol versions of a library; (0, 0) if it names none."""
    versions = re.findall(rb"GLIBC_(\d+)[.](\d+)", data)
    return max(((int(a), int(b)) for a, b in versions), default=(0, 0))


def kernel_problems(data: bytes, platform: str) -> Iterator[str]:
    """What is wrong with a compiled library for the platform of a wheel."""
    target = TARGETS[platform]
    if built_for(data) != (target.system, target.machine):
        there = " ".join(built_for(data)).strip() or "an unknown platform"
        yield f"is for {there}, not {target.system} {target.machine}"
    missing = [name.decode() for name in FUNCTIONS if name not in data]
    if missing:
        yield f"does not export {', '.join(missing)}"
    allowed = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    most = (int(allowed[1]), int(allowed[2])) if allowed else (0, 0)
    if target.system == "linux" and needed_glibc(data) > most:
        yield f"needs glibc {'.'.join(map(str, needed_glibc(data)))}, which {platform} does not promise"


def wheel_problems(path: Path, version: str) -> Iterator[str]:
    """What is wrong with a wheel."""
    name = NAME.fullmatch(path.name)
    if name is None or name["version"] != version or name["platform"] not in TARGETS:
        yield f"is not a wheel of version {version} for one of {', '.join(TARGETS)}"
        return
    platform = name["platform"]
    target = TARGETS[platform]
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        info = f"hanlattice-{version}.dist-info"
        tags = HeaderParser().parsestr(wheel.read(f"{info}/WHEEL").decode()).get_all("Tag")
        if tags != [f"py3-none-{platform}"]:
            yield f"has the tags {tags}"
        found = HeaderParser().parsestr(wheel.read(f"{info}/METADATA").decode())["Version"]
        if found != version:
            yield f"has the version {found} in its metadata"
        kernels = {f"hanlattice/kernels/{library(level, target.system).name}" for level in BUILDS[target.machine]}
        there = {name for name in names if name.endswith((".so", ".dll", ".dylib"))}
        for kernel in sorted(kernels ^ there):
            yield f"{kernel}: {'missing' if kernel in kernels else 'does not belong to it'}"
        for kernel in sorted(kernels & there):
            yield from (f"{kernel}: {problem}" for problem in kernel_problems(wheel.read(kernel), platform))
        for file in FILES:
            if f"hanlattice/{file}" not in names:
                yield f"hanlattice/{file}: missing"
        for file in sorted(names):
            if file.endswith((".onnx", ".pyc", ".pdb", ".lib")):
                yield f"{file}: does not belong to it"


def sdist_problems(path: Path, version: str) -> Iterator[str]:
    """What is wrong with an sdist."""
    root = f"hanlattice-{version}"
    with tarfile.open(path) as sdist:
        names = set(sdist.getnames())
    for file in (
        "PKG-INFO",
        "pyproject.toml",
        "LICENSE",
        "NOTICE",
        *(f"src/hanlattice/{file}" for file in (*FILES, SOURCE)),
    ):
        if f"{root}/{file}" not in names:
            yield f"{file}: missing"
    for name in sorted(names):
        if name.endswith((".so", ".dll", ".whl")):
            yield f"{name.removeprefix(f'{root}/')}: compiled files do not belong to it"


def problems(folder: Path, version: str, *, every: bool) -> Iterator[str]:
    """What is wrong with the files of a release."""
    for path in sorted(folder.iterdir()):
        check = wheel_problems if path.suffix == ".whl" else sdist_problems
        try:
            yield from (f"{path.name}: {problem}" for problem in check(path, version))
        except (OSError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
            yield f"{path.name}: broken ({error})"
        if path.stat().st_size > MOST_BYTES:
            yield f"{path.name}: {path.stat().st_size / 1e6:.0f} MB are more than a package index takes"
    if every:
        expected = {f"hanlattice-{version}-py3-none-{platform}.whl" for platform in TARGETS}
        expected.add(f"hanlattice-{version}.tar.gz")
        yield from (f"{name}: missing" for name in sorted(expected - {path.name for path in folder.iterdir()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--all", action="store_true", help="a wheel for every platform and an sdist have to be there"
    )
    options = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    for path in sorted(options.folder.iterdir()):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.name}")
    found = list(problems(options.folder, version, every=options.all))
    print("\n".join(found) or "all files are as they should be")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
