"""Code for products of any sizes: made for every machine, and divided in every way."""

import numpy as np
import pytest

from tests.threads import num_threads
from weft.backends.cpu.codegen.gemm.any_size import product_text
from weft.backends.cpu.codegen.gemm.any_size_shape import shape_for
from weft.backends.cpu.codegen.target import avx2, avx512, neon, sse2
from weft.backends.cpu.runtime.linking import assembly
from weft.backends.cpu.runtime.products import (
    _division,
    _is_better_turned,
    _parts_wanted,
    multiply,
)

TARGETS = {"sse2": sse2(), "avx2": avx2(), "avx512": avx512(), "neon": neon()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TARGETS)
def test_code_is_made_for_every_machine(name, dtype):
    target = TARGETS[name]
    shape = shape_for(target, np.dtype(dtype))
    listing = assembly(product_text(target, shape), target)
    used = {"sse2": "mulp", "neon": "fmla"}.get(name, "vfmadd231p")
    assert used in listing
    assert shape.panel_bytes <= target.l1_bytes


def test_the_text_is_the_same_in_every_process():
    shape = shape_for(avx2(), np.dtype("float32"))
    assert product_text(avx2(), shape) == product_text(avx2(), shape)


@pytest.mark.parametrize("m", [1, 5, 8, 130, 1000])
@pytest.mark.parametrize("n", [1, 33, 1000])
def test_parts_cover_the_result(m, n):
    shape = shape_for(avx2(), np.dtype("float32"))
    for threads in (1, 2, 7):
        down, across = _division(m, n, _parts_wanted(1, m * n * 4000, threads), shape)
        assert down >= 1
        assert across >= 1
        assert -(-m // down) * -(-n // across) <= 2 * threads


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(1, 1, 1), (9, 7, 40), (70, 1100, 65), (257, 33, 90)], ids=str)
def test_bits_do_not_depend_on_the_division(size, dtype):
    m, k, n = size
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((3, m, k), (3, k, n)))
    results = []
    for threads in (1, 2, 3, 5):
        with num_threads(threads):
            results.append(np.full((3, m, n), np.nan, dtype))
            multiply(x, y, results[-1])
    np.testing.assert_allclose(results[0], x @ y, rtol=0, atol=1e-3)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_nothing_is_written_beside_the_result():
    x, y = np.ones((1, 37, 41), np.float32), np.ones((1, 41, 53), np.float32)
    whole = np.full((1, 39, 57), -1, np.float32)
    multiply(x, y, whole[:, 1:38, 2:55])
    assert (whole[:, 1:38, 2:55] == 41).all()
    assert np.count_nonzero(whole == -1) == whole.size - 37 * 53


def _layouts(x):
    """Return an array as it is, as transposes lie, and with gaps between its elements."""
    gaps = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    gaps[..., ::2] = x
    return x, x.swapaxes(-1, -2).copy().swapaxes(-1, -2), gaps[..., ::2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", [3, 201, 1100])
@pytest.mark.parametrize("n", [48, 263])
@pytest.mark.parametrize("m", [16, 29, 48, 130])
def test_bits_do_not_depend_on_how_operands_lie(m, n, k, dtype):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((2, m, k), (2, k, n)))
    expected = np.full((2, m, n), np.nan, dtype)
    multiply(x, y, expected)
    np.testing.assert_allclose(expected, x @ y, rtol=0, atol=1e-3)
    for left in _layouts(x):
        for right in _layouts(y):
            whole = np.full((2, m + 2, n + 3), -1, dtype)
            multiply(left, right, whole[:, 1:-1, 2:-1])
            np.testing.assert_array_equal(whole[:, 1:-1, 2:-1], expected)
            assert np.count_nonzero(whole == -1) == whole.size - expected.size


@pytest.mark.parametrize("m", [16, 32, 45])
def test_a_turned_product_is_the_same_at_any_number_of_threads(m):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, m, 300)).astype("float32")
    w = rng.standard_normal((1, 1000, 300)).astype("float32")
    results = []
    for threads in (1, 2, 3):
        with num_threads(threads):
            results.append(np.empty((1, m, 1000), "float32"))
            multiply(x, w.swapaxes(-1, -2), results[-1])
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_products_are_turned_where_that_saves_packing():
    shape = shape_for(avx512(), np.dtype("float32"))
    along, across = (4096, 4, 1024), (4096, 1024, 4)
    assert _is_better_turned(32, 1024, along, shape)
    assert not _is_better_turned(32, 1024, across, shape)  # its panels are packed on the way
    assert not _is_better_turned(128, 1024, along, shape)  # packing is a small part of it
    assert not _is_better_turned(24, 1024, along, shape)  # a third of the lanes would be idle
    assert not _is_better_turned(32, 16, along, shape)  # y is the smaller one
