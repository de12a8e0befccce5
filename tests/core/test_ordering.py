"""Fast orders against NumPy's stable sort, which compares elements pair by pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core import ordering
from weft.core.dtype import bfloat16
from weft.core.errors import MissingDependencyError

SPECIAL = (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
KINDS = ("any", "ties", "special", "close")
SHAPES = ((0,), (3, 0), (1, 1), (7,), (1500,), (5, 1300), (3, 70, 40), (700, 3), (150_000,))


def as_dtype(name):
    if name != "bfloat16":
        return np.dtype(name)
    try:
        return bfloat16()
    except MissingDependencyError:
        pytest.skip("ml_dtypes is not installed")


def drawn(rng, dtype, shape, kind):
    """Return elements of any size, of few sizes, with special ones, or that share their bits."""
    if dtype.kind in "biu":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if kind == "any":
            return rng.integers(low, high, shape, dtype, endpoint=True)
        return rng.integers(max(low, -2), min(high, 3), shape, endpoint=True).astype(dtype)
    if kind == "ties":
        return rng.integers(-3, 4, shape).astype(dtype)
    x = np.asarray(rng.standard_normal(shape)).astype(dtype)
    if kind == "special":
        x[rng.random(shape) < 0.5] = np.nan
        return np.where(np.isnan(x), rng.choice(np.array(SPECIAL, dtype), shape), x)
    if kind == "close":
        bits = bits_of(np.ones(shape, dtype))
        return (bits + rng.integers(0, 99, shape).astype(bits.dtype)).view(dtype)
    return x


def bits_of(x):
    return np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}")


def expected_places(x, axis, descending):
    if x.dtype.kind == "V":  # NumPy's own order of bfloat16 puts nans anywhere
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(backwards, axis)


def check(x, axis, descending):
    places = expected_places(x, axis, descending)
    found = ordering.sorting_places(x, axis, descending)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, places)
    values = ordering.sorted_values(x, axis, descending)
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(bits_of(values), bits_of(np.take_along_axis(x, places, axis)))
    lines, places = np.moveaxis(x, axis, -1), np.moveaxis(places, axis, -1)
    size = x.shape[axis]
    for k in {0, min(1, size), size // 40, size // 5, size * 2 // 3, size}:
        np.testing.assert_array_equal(
            ordering.first_places(lines, k, descending), places[..., :k], err_msg=f"k = {k}"
        )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_axis_is_ordered_as_by_a_stable_sort(dtype, shape):
    rng = np.random.default_rng(len(shape))
    for kind in KINDS:
        x = drawn(rng, as_dtype(dtype), shape, kind)
        for axis in range(x.ndim):
            for descending in (False, True):
                check(x, axis, descending)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "uint64"])
def test_strided_arrays_are_ordered_as_contiguous_ones(dtype, descending):
    x = drawn(np.random.default_rng(0), as_dtype(dtype), (60, 70), "special")
    for view in (x.T, x[::-1, ::2], x[::-2].T):
        check(view, 0, descending)
        check(view, 1, descending)


@given(
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([d for d in DTYPES if d != "bfloat16"]),
    kind=st.sampled_from(KINDS),
    shape=st.tuples(st.integers(1, 40), st.integers(1, 400)),
    descending=st.booleans(),
)
@settings(deadline=None)
def test_lines_of_any_length_are_ordered_as_by_a_stable_sort(seed, dtype, kind, shape, descending):
    check(drawn(np.random.default_rng(seed), np.dtype(dtype), shape, kind), 1, descending)


def test_words_that_leave_no_bits_for_places_are_ordered_by_all_their_bits():
    rng = np.random.default_rng(0)
    for low in (0, 1 << 62, -(1 << 63)):  # the high bits of many elements are the same
        x = low + rng.integers(0, 50, (4, 3000))
        x[:, 0], x[:, 1] = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        check(x, 1, False)
        check(x, 1, True)


@pytest.mark.parametrize("descending", [False, True])
def test_a_line_of_equals_among_others_gives_its_first_ones(descending):
    x = np.random.default_rng(0).standard_normal((50, 900)).astype(np.float32)
    x[7], x[8], x[9] = 0.0, np.nan, -np.inf
    check(x, 1, descending)
    check(np.sort(x, 1), 1, descending)
    check(np.maximum(x, 0.0), 1, descending)


def test_zeros_keep_their_signs_in_their_order_also_downwards():
    x = np.array([1.0, -0.0, 0.0, -1.0, -0.0], np.float32)
    for descending in (False, True):
        values = ordering.sorted_values(x, 0, descending)
        assert np.signbit(values[values == 0]).tolist() == [True, False, True]


def test_bfloat16_nans_are_the_largest():
    x = np.array([np.nan, 1.0, -np.inf, np.nan, 0.0]).astype(as_dtype("bfloat16"))
    assert ordering.sorting_places(x, 0, False).tolist() == [2, 4, 1, 0, 3]
    assert ordering.sorting_places(x, 0, True).tolist() == [0, 3, 1, 4, 2]
    assert (
        np.isnan(ordering.sorted_values(x, 0, False).astype(float)).tolist()
        == [False] * 3 + [True] * 2
    )
