"""Opening the compiled kernels: a library of another version is refused before anything is read from it."""

import ctypes
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from hanlattice.errors import EngineError, HanlatticeError
from hanlattice.kernels import compiling, library
from hanlattice.kernels.compiling import LEVELS, SOURCES
from hanlattice.kernels.structs import STRUCTS

pytestmark = pytest.mark.skipif(not library.levels(), reason="no C compiler, or no processor with AVX2 or NEON")


@pytest.mark.parametrize("level", library.levels())
@pytest.mark.parametrize("struct", STRUCTS, ids=[struct.__name__ for struct in STRUCTS])
def test_structures_have_the_same_size_in_c(struct: type[ctypes.Structure], level: str) -> None:
    size = ctypes.c_int64.in_dll(library.opened(level), f"sizeof_{struct.__name__}").value
    assert size == ctypes.sizeof(struct)


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("Flat", [("d_model", ctypes.c_int64)], r"its structure Flat has \d+ bytes, not 8"),
        ("Later", [("d_model", ctypes.c_int64)], "it has no structure Later"),
    ],
)
def test_a_library_with_another_structure_is_refused_in_one_line(
    name: str, fields: list[tuple[str, type]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = type(name, (ctypes.Structure,), {"_fields_": fields})
    monkeypatch.setattr(library, "STRUCTS", (*STRUCTS, other))
    library.opened.cache_clear()
    library.kernels.cache_clear()
    try:
        with pytest.raises(HanlatticeError, match=rf"[.]so is from another version \({reason}\); run: ") as error:
            library.require_kernels()
        assert "\n" not in str(error.value)
        assert not isinstance(error.value, EngineError)  # another engine would not help: the lexicon needs it too
    finally:
        library.opened.cache_clear()
        library.kernels.cache_clear()


def test_without_a_library_the_error_says_how_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "library", lambda level: Path(f"missing_{level}.so"))
    library.kernels.cache_clear()
    try:
        assert library.levels() == []
        assert library.kernels() is None
        with pytest.raises(EngineError, match=r"python -m hanlattice[.]kernels[.]compiling"):
            library.require_kernels()
    finally:
        library.kernels.cache_clear()


SOURCE_FOLDER = Path(__file__).parents[2] / "src" / "hanlattice" / "kernels"  # an installation may have none
C_TYPES = {"int64_t": ctypes.c_int64, "int": ctypes.c_int, "double": ctypes.c_double, "void": None}


def in_c() -> dict[str, tuple[object, tuple[object, ...]]]:
    """The type of the result and of each parameter of every function of the sources that is not static."""
    found: dict[str, tuple[object, tuple[object, ...]]] = {}
    for name in SOURCES:
        source = (SOURCE_FOLDER / name).read_text(encoding="utf-8")
        for result, function, given in re.findall(r"^(\w+) (\w+)\(([^)]*)\) \{", source, re.MULTILINE):
            parameters = [] if given == "void" else given.split(",")
            types = [ctypes.c_void_p if "*" in one else C_TYPES[one.split()[-2]] for one in parameters]
            found[function] = C_TYPES[result], tuple(types)
    return found


def test_functions_are_declared_as_in_c() -> None:
    sources, opened = in_c(), library.require_kernels()
    assert len(sources) > 20
    for name, (result, parameters) in sources.items():
        declared = getattr(opened, name)
        assert declared.restype is result, name
        assert tuple(declared.argtypes or ()) == parameters, name


def test_the_best_library_for_the_processor_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = library.levels()
    assert library.kernels() is library.opened(levels[-1])
    compiled = [level for level in LEVELS if compiling.library(level).is_file()]
    for bits in range(2 ** len(LEVELS)):
        processor = SimpleNamespace(processor_levels=lambda bits=bits: bits)
        monkeypatch.setattr(library, "CDLL", lambda path, processor=processor: processor)
        supported = [level for i, level in enumerate(LEVELS) if bits & 2**i]
        assert library.levels() == [level for level in supported if level in compiled]


FLAGS = {  # of /proc/cpuinfo
    "avx2": {"avx2", "fma", "bmi2"},
    "avxvnni": {"avx2", "avx_vnni"},
    "avx512": {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx512_vnni"},
    "avx512bf16": {"avx512_vnni", "avx512_bf16"},
}


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists() or "avx2" not in LEVELS, reason="needs Linux on x86")
def test_instruction_sets_are_those_that_the_system_reports() -> None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    reported = set(next(line for line in lines if line.startswith("flags")).split())
    supported = library.require_kernels().processor_levels()
    assert [bool(supported & 2**i) for i in range(len(LEVELS))] == [FLAGS[level] <= reported for level in LEVELS]


@pytest.mark.parametrize(("step", "supported"), [(0, False), (4, True), (None, True)])
def test_int8_products_are_supported_unless_the_processor_has_none(
    step: int | None, supported: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = None if step is None else SimpleNamespace(int8_step=lambda: step)
    monkeypatch.setattr(library, "kernels", lambda: found)
    assert library.supports_int8() is supported


def test_addresses_of_arrays() -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    assert library.pointer(array) == array.ctypes.data
    array.flags.writeable = False
    assert library.pointer(array) == array.ctypes.data
    assert library.pointer(None) is None
    with pytest.raises(AssertionError):
        library.pointer(array.T)


def test_addresses_of_rows() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert list(library.pointers(rows)) == [library.pointer(row) for row in rows]
    for refused in (rows.T, rows[:0]):
        with pytest.raises(AssertionError):
            library.pointers(refused)


def test_addresses_of_memory() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    read_only = rows.copy()
    read_only.flags.writeable = False
    for array in (rows, rows[1:], read_only, rows[:0]):
        assert library.pointer(array) == array.ctypes.data
    assert library.pointer(None) is None
    memory = bytearray(b"abc")
    address = library.pointer(memory)
    assert address is not None
    assert ctypes.string_at(address, 3) == b"abc"
    with pytest.raises(AssertionError):
        library.pointer(rows.T)
