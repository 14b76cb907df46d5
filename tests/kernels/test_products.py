"""Matrix products of the kernels: int8 sums are exact on every instruction set, the largest numbers included."""

import ctypes
from ctypes import CDLL
from typing import Any

import numpy as np
import pytest

from hanlattice.engines.folding import Affine
from hanlattice.engines.native.flat import packed_int16
from hanlattice.engines.native.layers import Int8Layout, aligned, int8_panels, linear, quantised
from hanlattice.kernels import library

LEVELS = library.levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="no C compiler, or no processor with AVX2 or NEON")


@pytest.fixture(params=LEVELS)
def kernels(request: pytest.FixtureRequest) -> CDLL:
    return library.opened(request.param)


@pytest.fixture
def int8(kernels: CDLL) -> CDLL:
    if not kernels.int8_step():
        pytest.skip("this instruction set has no int8 products")
    return kernels


def product(
    kernels: CDLL, weight: np.ndarray, bias: np.ndarray, x: np.ndarray, layout: Int8Layout | None
) -> np.ndarray:
    """x W^T + b by the kernel."""
    kept = list[Any]()

    def keep(array: np.ndarray) -> int:
        kept.append(array := aligned(array))
        return library.pointer(array)

    layer = linear(Affine(weight, bias), 2 * kernels.lanes(), layout, keep)
    rows = np.full((-(-len(x) // 12) * 12, layer.n_in), np.nan, np.float32)
    rows[: len(x)] = np.pad(x, ((0, 0), (0, layer.n_in - x.shape[1])))
    out = np.full((len(rows), layer.n_out), np.nan, np.float32)
    memory, scales = np.zeros(2 * rows.size + 64, np.uint8), np.zeros(len(rows), np.float32)
    arrays = (library.pointer(array) for array in (out, memory, scales))
    kernels.flat_linear(ctypes.byref(layer), library.pointer(rows), len(x), *arrays)
    assert np.isfinite(out[: len(x)]).all()
    return out[: len(x), : len(weight)]


@pytest.mark.parametrize("n_in", [1, 2, 3, 4, 7, 8, 9, 50, 480])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 7, 9, 12, 13])
def test_int8_sums_are_exact(int8: CDLL, n_in: int, rows: int) -> None:
    """Whole numbers up to the largest one have the scale 1, so the results are the sums themselves."""
    draw, most = np.random.default_rng(n_in), int8.int8_largest()
    weight, x = draw.integers(-most, most + 1, (37, n_in)), draw.integers(-most, most + 1, (rows, n_in))
    weight[:, 0], x[:, -1] = most, -most
    found = product(
        int8, weight.astype(np.float32), np.zeros(37, np.float32), x.astype(np.float32), Int8Layout.of(int8)
    )
    np.testing.assert_array_equal(found, x @ weight.T)


@pytest.mark.parametrize("sign_of_weight", [1, -1])
@pytest.mark.parametrize("sign_of_x", [1, -1])
def test_int8_sums_of_the_largest_numbers_do_not_saturate(int8: CDLL, sign_of_weight: int, sign_of_x: int) -> None:
    n_in = 512  # 512 * 127 * 127 is below 2^24, so it is exact in float32 too
    of_weight, of_x = sign_of_weight * int8.int8_largest(), sign_of_x * int8.int8_largest()
    weight, x = np.full((16, n_in), of_weight, np.float32), np.full((3, n_in), of_x, np.float32)
    found = product(int8, weight, np.zeros(16, np.float32), x, Int8Layout.of(int8))
    np.testing.assert_array_equal(found, np.full((3, 16), n_in * of_weight * of_x))
    weight[:, ::2] *= -1
    assert not product(int8, weight, np.zeros(16, np.float32), x, Int8Layout.of(int8)).any()


def test_int8_products_equal_those_of_numpy(int8: CDLL) -> None:
    """Real numbers: the same scales, the same rounding to even, and bias."""
    draw = np.random.default_rng(0)
    weight, bias = draw.normal(size=(40, 100)).astype(np.float32), draw.normal(size=40).astype(np.float32)
    x = draw.normal(size=(9, 100)).astype(np.float32)
    x[3], x[4] = 0, 1e-30 * x[4]
    x[5, :6] = [int8.int8_largest(), 0.5, 1.5, 2.5, -0.5, -1.5]
    most = int8.int8_largest()
    values, scale = quantised(weight, most)
    largest = np.abs(x).max(1, keepdims=True)
    x_scale = np.where(largest > 0, largest / np.float32(most), np.float32(1))
    whole = np.rint(x * (np.float32(1) / x_scale)).astype(np.int64)
    expected = (whole @ values.T.astype(np.int64)) * x_scale.astype(np.float64) * scale + bias
    np.testing.assert_allclose(product(int8, weight, bias, x, Int8Layout.of(int8)), expected, rtol=1e-5, atol=1e-5)


def test_float32_products_equal_those_of_numpy(kernels: CDLL) -> None:
    draw = np.random.default_rng(0)
    weight, bias, x = (draw.normal(size=size).astype(np.float32) for size in ((37, 51), (37,), (13, 51)))
    np.testing.assert_allclose(product(kernels, weight, bias, x, None), x @ weight.T + bias, rtol=1e-4, atol=1e-4)


def test_a_row_is_the_same_in_blocks_of_all_sizes(kernels: CDLL) -> None:
    draw = np.random.default_rng(5)
    weight, bias = (draw.standard_normal(size).astype(np.float32) for size in ((70, 50), 70))
    x = draw.standard_normal((25, 50)).astype(np.float32)
    for layout in (None, Int8Layout.of(kernels)) if kernels.int8_step() else (None,):
        alone = np.concatenate([product(kernels, weight, bias, row[None], layout) for row in x])
        for n in range(1, len(x) + 1):
            np.testing.assert_array_equal(product(kernels, weight, bias, x[:n], layout), alone[:n])


@pytest.mark.parametrize(
    ("layout", "zero"),
    [
        (Int8Layout(4, 128, 127, 4), -128 * 6),  # AVX-512
        (Int8Layout(4, 0, 127, 4), 0),  # ARM
        (Int8Layout(4, 64, 63, 8), -64 * 6),  # AVX2
    ],
)
def test_panels_have_the_inputs_of_a_step_side_by_side(layout: Int8Layout, zero: int) -> None:
    values = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 0, 6]], np.int8)
    panels, zeros = int8_panels(values, 2, layout)
    assert panels.dtype == np.int8
    assert panels.shape == (2, layout.multiple // layout.step, 2, layout.step)
    assert panels[1, 0, 0, :2].tolist() == [7, 8]
    assert panels.ravel().tolist().count(6) == 2
    assert zeros[0] == zero
    assert zeros[3] == zero


def test_int16_rows_reach_the_largest_number_and_rows_of_zeros_have_the_scale_1() -> None:
    rows = np.linspace(-2, 1, 32, dtype=np.float32).reshape(1, 32)
    packed, scale = packed_int16(rows, 8)
    low, high = packed.astype(np.int32) << 16 >> 16, packed >> 16
    found = np.stack([low.reshape(2, 8), high.reshape(2, 8)], 1).ravel()
    assert np.abs(found).max() == 4095
    np.testing.assert_allclose(found * scale, rows[0], atol=0.51 * scale)
    assert packed_int16(np.zeros((1, 32), np.float32), 8)[1] == 1
