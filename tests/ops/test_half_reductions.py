"""Reductions of 16-bit floats: those of float32 rounded once, computed by either engine."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import weft as wf
from weft.core.dtype import as_dtype, is_float
from weft.core.op import F, registry

ULPS = 1  # float32's own rounding may turn the last bit of a half that lies near a tie

SHAPES = ((5_000, 3), (3, 5_000))
AXES = (0, -1, None)


def over(name, **options):
    """Return a reduction over an axis, or over all."""
    return lambda x, axis: getattr(F, name)(x, axis=axis, **options)


def along(name, **options):
    """Return a function along an axis; without one, along the flattened tensor."""

    def call(x, axis):
        if axis is None:
            x, axis = x.reshape(-1), 0
        return getattr(F, name)(x, axis=axis, **options)

    return call


def _sum_to(x, axis):
    shape = {0: (1, x.shape[1]), -1: (x.shape[0], 1), None: ()}[axis]
    return F.sum_to(x, shape)


def _recurrence(x, axis):
    if axis is None:
        x, axis = x.reshape(-1)[:300], 0
    return F.linear_recurrence(_one_of(x, 0.25, 0.5), x, axis)


def _one_of(x, small, large):
    """Return one of two numbers, exact in every dtype, for each element."""
    return F.where(x < 150, F.full_like(x, small), F.full_like(x, large))


REDUCTIONS = {
    **{name: over(name) for name in ("max", "min", "any", "all", "logsumexp", "var", "std")},
    **{name: over(name) for name in ("sum", "mean", "count_nonzero", "argmax", "argmin")},
    **{name: along(name) for name in ("cumsum", "cummax", "cummin", "cumargmax", "cumargmin")},
    "logcumsumexp": along("logcumsumexp"),
    "prod": lambda x, axis: F.prod(_one_of(x, 1 - 2**-7, 1 + 2**-7), axis),
    "cumprod": lambda x, axis: along("cumprod")(_one_of(x, 1 - 2**-7, 1 + 2**-7), axis),
    "linear_recurrence": _recurrence,
    "sum_to": _sum_to,
    "vector_norm": over("vector_norm"),
}
VARIANTS = {
    **{f"vector_norm {ord}": over("vector_norm", ord=ord) for ord in (0, 1, 3, float("inf"))},
    "unbiased var": over("var", correction=1),
    "var that keeps axes": over("var", keepdims=True),
    "logsumexp that keeps axes": over("logsumexp", keepdims=True),
    "cumsum backwards": along("cumsum", reverse=True, exclusive=True),
}
ALL = REDUCTIONS | VARIANTS
HALVES = ("float16", "bfloat16")


def test_every_reduction_is_here():
    assert set(REDUCTIONS) == {name for name, op in registry.items() if op.kind == "reduction"}


@cache
def values(shape, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    drawn = np.random.default_rng(len(shape)).random(shape) * 300
    return wf.tensor(drawn.astype(as_dtype(dtype)))


def ulps_between(x, y):
    """Return by how many units in the last place 16-bit floats of one sign differ, at most."""
    ordered = [np.abs(v).view(np.int16).astype(np.int64) for v in (x, y)]
    return np.max(np.abs(ordered[0] - ordered[1]), initial=0)


def assert_rounded_once(found, exact, dtype):
    """Assert that halves are those nearest to exact results."""
    with np.errstate(over="ignore"):
        expected = exact.astype(dtype) if is_float(exact.dtype) else exact
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if is_float(expected.dtype):
        assert ulps_between(found, expected) <= ULPS
    else:
        np.testing.assert_array_equal(found, expected)


# Reductions of bfloat16 run as the reference kernels, which take shapes as they come.
WHERE = [("float16", SHAPES[0]), ("float16", SHAPES[1]), ("bfloat16", SHAPES[0])]


@pytest.mark.parametrize(("dtype", "shape"), WHERE)
@pytest.mark.parametrize("name", ALL)
def test_eager_and_compiled(name, dtype, shape):
    x, reduce = values(shape, dtype), ALL[name]
    found = wf.compile(lambda x: [reduce(x, axis) for axis in AXES], x)(x)
    for axis, compiled in zip(AXES, found, strict=True):
        exact = reduce(x.to(wf.float64), axis).numpy()
        assert_rounded_once(reduce(x, axis).numpy(), exact, as_dtype(dtype))
        assert_rounded_once(compiled.numpy(), exact, as_dtype(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_compiled_over_several_axes(dtype):
    x = values((40, 5, 10, 100), dtype)
    axes = ((0, 2, 3), (1, 2), (0, 3), (0, 1, 2, 3))
    names = ("sum", "mean", "var", "std", "logsumexp", "max")
    cases = [(ALL[name], axis) for name in names for axis in axes]
    found = wf.compile(lambda x: [reduce(x, axis) for reduce, axis in cases], x)(x)
    for (reduce, axis), result in zip(cases, found, strict=True):
        exact = reduce(x.to(wf.float64), axis).numpy()
        assert_rounded_once(result.numpy(), exact, as_dtype(dtype))
