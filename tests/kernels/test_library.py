"""Opening the compiled kernels: a library of another version is refused before anything is read from it."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from hanlattice.errors import EngineError, HanlatticeError
from hanlattice.kernels import library
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
