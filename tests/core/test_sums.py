"""Sums of arrays: exact where NumPy's running sums are not, whatever the axes and the layout."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.dtype import as_dtype
from weft.core.op import F
from weft.core.sums import sum_array, sum_array_to

RNG = np.random.default_rng(15)
ULP = float(np.finfo(np.float32).eps)


def uniform(*shape: int) -> np.ndarray:
    return RNG.random(shape, np.float32)


LAYOUTS = {
    "leading axis": (uniform(40_001, 3), (0,)),
    "leading axis with gaps": (uniform(40_000, 6)[:, ::2], (0,)),
    "reversed": (uniform(40_000, 3)[::-1, ::-1], (0,)),
    "all, with gaps": (uniform(30_000, 4)[:, :2], (0, 1)),
    "all, few rows with gaps": (uniform(3, 40_000)[:, ::2], (0, 1)),
    "columns in Fortran's order": (np.asfortranarray(uniform(5, 20_000)), (1,)),
    "a middle axis": (uniform(3, 9_999, 4), (1,)),
    "the first and the last": (uniform(500, 4, 70), (0, 2)),
    "turned": (uniform(8, 3, 5_000).transpose(2, 0, 1), (0, 2)),
    "repeated": (np.broadcast_to(uniform(1, 3), (50_000, 3)), (0,)),
    "repeated in rows": (np.broadcast_to(uniform(9_000, 1), (9_000, 7)), (0, 1)),
    "windows that overlap": (np.lib.stride_tricks.sliding_window_view(uniform(9_000), 50), (0, 1)),
    "axes of size one": (uniform(1, 20_000, 1, 2), (0, 1, 2)),
}


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_right_to_a_few_units_in_the_last_place(layout, keepdims):
    x, axis = LAYOUTS[layout]
    found = sum_array(x, axis, keepdims)
    expected = np.sum(x, axis=axis, dtype=np.float64, keepdims=keepdims)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=16 * ULP)


def test_equal_numbers_add_up():
    many = np.broadcast_to(np.float32(1), (20_000_000, 2))
    np.testing.assert_array_equal(sum_array(many, (0,)), [20_000_000] * 2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3,), (5_000, 3), (1, 3), ()])
def test_halves_add_up_in_float32(shape, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = np.ones((2, 5_000, 3), as_dtype(dtype))
    total = sum_array_to(x, shape)
    assert total.dtype == x.dtype
    expected = np.full(shape, 30_000 // max(1, int(np.prod(shape))), np.float64).astype(x.dtype)
    np.testing.assert_array_equal(total.astype(np.float64), expected.astype(np.float64))


@pytest.fixture(params=[False, True], ids=["reference", "machine code"])
def eager_kernels(request, monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", request.param)


REDUCTIONS = {
    "sum": (lambda x: wf.sum(x, 0), lambda x: x.sum(0)),
    "mean": (lambda x: wf.mean(x, 0), lambda x: x.mean(0)),
    "var": (lambda x: wf.var(x, 0), lambda x: x.var(0)),
    "std": (lambda x: wf.std(x, 0), lambda x: x.std(0)),
    "logsumexp": (lambda x: wf.logsumexp(x, 0), lambda x: np.log(np.exp(x).sum(0))),
    "norm": (lambda x: wf.linalg.vector_norm(x, 2, 0), lambda x: np.sqrt((x * x).sum(0))),
    "norm 1": (lambda x: wf.linalg.vector_norm(x, 1, 0), lambda x: x.sum(0)),
    "norm 3": (lambda x: wf.linalg.vector_norm(x, 3, 0), lambda x: np.cbrt((x**3).sum(0))),
    "sum_to": (lambda x: F.sum_to(x, (1, x.shape[1])), lambda x: x.sum(0, keepdims=True)),
    "nansum": (lambda x: wf.nansum(x, 0), lambda x: x.sum(0)),
}


@pytest.mark.usefixtures("eager_kernels")
@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_over_a_leading_axis(name, contiguous):
    x = wf.tensor(uniform(200_000, 6))
    x = x if contiguous else x[:, ::2]
    reduce, reference = REDUCTIONS[name]
    expected = reference(x.numpy().astype(np.float64))
    np.testing.assert_allclose(reduce(x).numpy(), expected, rtol=1e-6)


@pytest.mark.usefixtures("eager_kernels")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_gradient_of_a_bias_is_a_sum_too(dtype):
    bias = wf.zeros(3, dtype=dtype, requires_grad=True)
    g = wf.tensor(uniform(100_000, 6).astype(dtype) / 256)[:, ::2]
    (wf.zeros(100_000, 3, dtype=dtype) + bias).backward(g)
    expected = g.numpy().astype(np.float64).sum(0)
    np.testing.assert_allclose(
        bias.grad.numpy(), expected, rtol=1e-6 if dtype == "float32" else 1e-3
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums_do_not_drift(axis, compiled):
    x = wf.tensor(np.full((2, 200_000) if axis else (200_000, 2), 0.1, np.float32))

    def running(x):
        return wf.cumsum(x, axis), wf.logcumsumexp(x, axis)

    sums, logs = (wf.compile(running, x) if compiled else running)(x)
    count = np.arange(1, 200_001.0)
    exact = count * float(np.float32(0.1))
    for found, expected in ((sums, exact), (logs, np.log(count) + 0.1)):
        rows = found.numpy() if axis else found.numpy().T
        np.testing.assert_allclose(rows, np.stack([expected] * 2), rtol=2e-7, atol=1e-7)


def test_averages_of_large_windows():
    x = wf.tensor(uniform(1, 1, 100_000, 2))
    found = wf.nn.functional.avg_pool2d(x, (50_000, 1))
    expected = x.numpy().astype(np.float64).reshape(2, 50_000, 2).mean(1)
    np.testing.assert_allclose(found.numpy()[0, 0], expected, rtol=1e-6)
