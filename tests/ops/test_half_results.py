"""Results of 16-bit floats: those of wider floats, rounded once, not in between."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.ops import conformance as c
from weft.core.dtype import as_dtype, float_limits, is_float, is_half
from weft.core.errors import LinalgError
from weft.core.op import F, composites, registry

HALVES = ("float16", "bfloat16")


def halved(dtype):
    return lambda array: array.astype(dtype) if array.dtype.kind == "f" else array


def doubled(array):
    return array.astype(np.float64) if is_float(array.dtype) else array


def assert_rounded_once(found, exact, dtype, what):
    """Assert that halves are within a unit in the last place of exact results.

    Those that cancel may be off by what float32, in which they are computed, rounds too.
    """
    limits = float_limits(dtype)
    assert found.shape == exact.shape, what
    if not is_float(exact.dtype):
        return
    assert found.dtype == dtype, what
    with np.errstate(over="ignore"):
        expected = exact.astype(dtype).astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    slack = float(limits.smallest_normal) + 2e-6 * max(1.0, finite.max(initial=0.0))
    found = found.astype(np.float64)
    np.testing.assert_allclose(found, expected, rtol=float(limits.eps), atol=slack, err_msg=what)


def check(case, dtype):
    """Call a function with a sample in halves, and in the same numbers as float64."""
    with np.errstate(all="ignore"):
        arguments = c.Arguments.of(case.drawn()).map(halved(dtype))
    wanted = case.sample.kwargs.get("dtype")
    if wanted is not None or not any(is_half(array.dtype) for array in arguments.arrays()):
        return
    try:
        exact = arguments.map(doubled).map(wf.tensor).call(case.function)
        found = arguments.map(wf.tensor).call(case.function)
    except LinalgError:  # singular when rounded
        return
    pairs = zip(c.outputs_of(found), c.outputs_of(exact), strict=True)
    for found, exact in pairs:
        assert_rounded_once(c.as_array(found), c.as_array(exact), dtype, case.id)


# Random numbers are drawn for a dtype; what converts dtypes is asked for others, as float_power is.
DETERMINISTIC = [name for name, op in registry.items() if op.kind != "random" and name != "cast"]


@pytest.mark.parametrize("name", sorted({*DETERMINISTIC, *composites} - {"float_power"}))
@pytest.mark.parametrize("dtype", HALVES)
def test_samples(name, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    for i, sample in enumerate(c._draw(c.sample_rule(name))):
        check(c.Case(name, sample, i), as_dtype(dtype))


def _cross_entropy(x):
    return F.cross_entropy(x, wf.arange(x.shape[0]) % x.shape[1])


def _batch_norm(x):
    mean, var = (wf.full(x.shape[1], n, dtype=x.dtype) for n in (100.0, 9000.0))
    return F.batch_norm(x, training=True), F.batch_norm(x, mean, var)


# Functions of a matrix whose squares and sums are beyond float16.
LARGE = {
    "softmax": lambda x: (F.softmax(x, 0), F.softmax(x, 1), F.softmax(x.reshape(-1))),
    "log_softmax": lambda x: (F.log_softmax(x, 0), F.log_softmax(x, 1)),
    "softmin": F.softmin,
    "layer_norm": lambda x: (F.layer_norm(x, x.shape[1]), F.layer_norm(x, x.shape)),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[1], eps=1e-3),
    "group_norm": lambda x: F.group_norm(x[None], 1),
    "instance_norm": lambda x: F.instance_norm(x[None]),
    "batch_norm": _batch_norm,
    "normalize": lambda x: (F.normalize(x), F.normalize(x, 3, axis=0)),
    "local_response_norm": lambda x: F.local_response_norm(x[None], 3, alpha=1.0),
    "mse_loss": lambda x: F.mse_loss(x, x * 0),
    "l1_loss": lambda x: F.l1_loss(x, x * 0),
    "huber_loss": lambda x: F.huber_loss(x, x * 0, delta=16.0),
    "gaussian_nll_loss": lambda x: F.gaussian_nll_loss(x, x * 0, x * 0 + 4),
    "cross_entropy": _cross_entropy,
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * 0 + 1),
    "pairwise_distance": lambda x: F.pairwise_distance(x, x * 0),
    "quantile": lambda x: (F.quantile(x, 0.3, 1), F.median(x, 0)),
    "nanmean": lambda x: (F.nanmean(x), F.nanmean(x, 0), F.nanmean(x, 1)),
    "matrix_norm": lambda x: (F.norm(x), F.matrix_norm(x, 1), F.matrix_norm(x, "nuc")),
    "trapezoid": lambda x: F.trapezoid(x, dx=0.125),
    "avg_pool1d": lambda x: F.avg_pool1d(x[None], 500),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[None], 2),
    "lp_pool1d": lambda x: F.lp_pool1d(x[None], 2.0, 500),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, scale=2.0**-12),
    "einsum": lambda x: F.einsum("ij,ij,kj->ik", x, x * 0 + 2**-6, x * 0 + 2**-6),
    "addmm": lambda x: F.addmm(x[:, :2], x, x.T[:, :2], alpha=2.0**-12),
    "addcmul": lambda x: F.addcmul(x, x, x, value=2.0**-4),
    "scatter mean": lambda x: F.scatter_reduce(
        x * 0, 1, wf.zeros(x.shape, dtype=wf.int64), x, "mean", include_self=False
    ),
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", HALVES)
def test_large_values_eager_and_compiled(name, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    drawn = np.random.default_rng(7).random((6, 2_000)) * 300
    x, fn = wf.tensor(drawn.astype(as_dtype(dtype))), LARGE[name]
    exact = c.outputs_of(fn(x.to(wf.float64)))
    compiled = c.outputs_of(wf.compile(fn, x)(x))
    for way, results in (("eager", c.outputs_of(fn(x))), ("compiled", compiled)):
        for found, wanted in zip(results, exact, strict=True):
            what = f"{way} {name}"
            assert_rounded_once(found.numpy(), wanted.numpy(), x.dtype, what)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_computed_in_float32_too(compiled):
    drawn = np.random.default_rng(7).random((4, 500)) * 300
    x = wf.tensor(drawn.astype(np.float16))

    def slope(x):
        return wf.grad(lambda x: (F.layer_norm(x, 500) * (x.detach() / 256)).sum())(x)

    found = (wf.compile(slope, x) if compiled else slope)(x)
    exact = slope(x.to(wf.float64)).numpy()
    assert found.dtype == wf.float16
    np.testing.assert_allclose(found.numpy(), exact, rtol=2e-3, atol=2e-5)


def test_operands_of_several_dtypes_meet_as_ever():
    half, single = wf.ones(3, 4, dtype=wf.float16), wf.ones(4)
    assert F.layer_norm(half, 4, single).dtype == wf.float32
    assert F.layer_norm(half, 4, single.half()).dtype == wf.float16
    assert F.mse_loss(half, half.to(wf.float64)).dtype == wf.float64
    assert F.softmax(half, dtype=wf.float32).dtype == wf.float32
    assert F.softmax(single, dtype=wf.float16).dtype == wf.float16


def test_running_statistics_of_halves_are_moved_in_place():
    x = wf.tensor((np.random.default_rng(0).random((2_000, 3)) * 300).astype(np.float16))
    mean, var = wf.zeros(3, dtype=wf.float16), wf.ones(3, dtype=wf.float16)
    F.batch_norm(x, mean, var, training=True, momentum=1.0)
    wide = x.numpy().astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), wide.mean(0), rtol=1e-3)
    np.testing.assert_allclose(var.numpy(), wide.var(0, ddof=1), rtol=1e-3)


UNARY = ("sigmoid", "log_sigmoid", "silu", "mish", "softplus", "softsign", "tanhshrink", "gelu")
UNARY += ("elu", "selu", "celu", "hardswish", "hardsigmoid", "sinc", "erf", "erfc", "normal_cdf")
UNARY += ("tanh", "rsqrt", "log1p", "expm1", "square", "reciprocal", "softshrink")


TINY = {"float16": 2.0**-23, "bfloat16": 1e-36}  # where float32, which computes them, ends


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", [*UNARY, "tanh gelu"])
def test_every_half_eager_and_compiled(name, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    every = np.arange(2**16, dtype=np.uint16).view(as_dtype(dtype))
    with np.errstate(invalid="ignore"):  # signalling NaNs are among them
        x = wf.tensor(every[np.isfinite(every)])

    def fn(x):
        return F.gelu(x, approximate="tanh") if name == "tanh gelu" else getattr(F, name)(x)

    exact, limits = fn(x.to(wf.float64)).numpy(), float_limits(x.dtype)
    ways = (fn, wf.compile(fn, x)) if dtype == "float16" else (fn,)
    for way in ways:
        found = way(x).numpy().astype(np.float64)
        with np.errstate(over="ignore"):
            expected = exact.astype(x.dtype).astype(np.float64)
        np.testing.assert_allclose(found, expected, rtol=float(limits.eps), atol=TINY[dtype])
