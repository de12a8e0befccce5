"""NaN, infinities, signed zeros, subnormals and integer limits; gradients at kinks and poles."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft.autodiff.reverse import gradients
from weft.core.errors import DTypeError
from weft.core.op import F
from weft.ops.creation import tensor

INF, NAN = math.inf, math.nan
TINY = {np.float32: 1e-45, np.float64: 5e-324}
UNARY = {
    "abs": np.abs, "neg": np.negative, "sign": np.sign, "positive": np.positive,
    "square": np.square, "sqrt": np.sqrt, "reciprocal": np.reciprocal,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "logical_not": np.logical_not, "nan_to_num": np.nan_to_num,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "floor_divide": np.floor_divide, "mod": np.mod, "fmod": np.fmod,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "logaddexp": np.logaddexp,
    "heaviside": np.heaviside,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


def special_values(dtype):
    limits = np.finfo(dtype)
    values = [NAN, INF, -INF, 0.0, -0.0, TINY[dtype], -TINY[dtype], 1.0, -1.0, 2.5, -2.5]
    return np.array([*values, limits.max, limits.min, limits.tiny], dtype)


def assert_same_bits(found, expected):
    """Assert equality in which -0.0 is not 0.0 and NaN is NaN."""
    np.testing.assert_array_equal(found, expected, strict=True)
    if expected.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_unary_special_values_are_numpys(name, dtype):
    x = special_values(dtype)
    with np.errstate(all="ignore"):
        found, expected = getattr(F, name)(tensor(x)).numpy(), UNARY[name](x)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_binary_special_values_are_numpys(name, dtype):
    x = special_values(dtype)
    with np.errstate(all="ignore"):
        found = getattr(F, name)(tensor(x[:, None]), tensor(x)).numpy()
        expected = BINARY[name](x[:, None], x)
    assert_same_bits(found, expected)


LIMITS = {  # activation -> its values at -inf, inf
    "sigmoid": (0.0, 1.0),
    "log_sigmoid": (-INF, 0.0),
    "softplus": (0.0, INF),
    "relu": (0.0, INF),
    "relu6": (0.0, 6.0),
    "leaky_relu": (-INF, INF),
    "elu": (-1.0, INF),
    "celu": (-1.0, INF),
    "hardtanh": (-1.0, 1.0),
    "hardsigmoid": (0.0, 1.0),
    "softshrink": (-INF, INF),
    "hardshrink": (-INF, INF),
    "tanhshrink": (-INF, INF),
    "erf": (-1.0, 1.0),
    "erfc": (2.0, 0.0),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LIMITS)
def test_activations_at_infinity_and_nan(name, dtype):
    with np.errstate(all="ignore"):
        found = getattr(F, name)(tensor(np.array([-INF, INF, NAN], dtype))).numpy()
    np.testing.assert_array_equal(found, np.array([*LIMITS[name], NAN], dtype), strict=True)


@pytest.mark.parametrize("name", ["sigmoid", "silu", "mish", "gelu", "softplus", "log_sigmoid"])
def test_saturated_activations_and_their_gradients_are_finite(name):
    x = tensor([-1e4, -200.0, 200.0, 1e4], requires_grad=True)
    y = getattr(F, name)(x)
    assert np.isfinite(y.numpy()).all()
    assert np.isfinite(gradients(y, x).numpy()).all()


def test_gelu_keeps_its_tail():
    x = np.array([-5.0, -4.0])
    exact = -5.0 * 2.866515718791939e-07, -4.0 * 3.167124183311992e-05
    np.testing.assert_allclose(F.gelu(tensor(x)).numpy(), exact, rtol=1e-13)
    np.testing.assert_allclose(F.gelu(tensor(x, dtype="float32")).numpy(), exact, rtol=2e-7)


KINKS = [  # function, point, gradient there as documented
    ("abs", 0.0, 0.0),
    ("relu", 0.0, 0.0),
    ("relu6", 0.0, 0.0),
    ("relu6", 6.0, 0.0),
    ("hardtanh", 1.0, 0.0),
    ("hardsigmoid", 3.0, 0.0),
    ("hardswish", -3.0, 0.0),
    ("hardswish", 3.0, 1.0),
    ("leaky_relu", 0.0, 0.01),
    ("softshrink", 0.5, 0.0),
    ("hardshrink", -0.5, 0.0),
    ("elu", 0.0, 1.0),
    ("sign", 0.0, 0.0),
    ("floor", 1.0, 0.0),
    ("round", 0.5, 0.0),
    ("sqrt", 0.0, INF),
    ("log", 0.0, INF),
    ("sinc", 0.0, 0.0),
    ("nan_to_num", NAN, 0.0),
]


@pytest.mark.parametrize(("name", "point", "expected"), KINKS)
def test_gradient_at_kink(name, point, expected):
    x = tensor(point, requires_grad=True)
    assert gradients(getattr(F, name)(x), x).item() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_ties_share_the_gradient(name):
    x, y = (tensor([2.0], requires_grad=True) for _ in range(2))
    for g in gradients(getattr(F, name)(x, y), [x, y]):
        assert g.tolist() == [0.5]


def test_fmax_sends_the_gradient_past_nan():
    x, y = tensor([NAN, 1.0], requires_grad=True), tensor([3.0, NAN], requires_grad=True)
    gx, gy = gradients(F.fmax(x, y), [x, y])
    assert (gx.tolist(), gy.tolist()) == ([0.0, 1.0], [1.0, 0.0])


def test_clip_passes_the_gradient_at_its_bounds():
    x = tensor([-2.0, -1.0, 0.0, 1.0, 2.0], requires_grad=True)
    inside = [0.0, 1.0, 1.0, 1.0, 0.0]
    assert gradients(F.clip(x, -1, 1), x).tolist() == inside
    bound = tensor(1.0, requires_grad=True)
    gx, g_bound = gradients(F.clip(x, -bound, bound), [x, bound])
    assert gx.tolist() == inside
    assert g_bound.item() == 0.0  # -1 from below, +1 from above


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0])
def test_power_of_zero_has_finite_derivatives(exponent):
    x, y = tensor(0.0, requires_grad=True), tensor(exponent, requires_grad=True)
    first = gradients(F.pow(x, y), [x, y], create_graph=True)
    assert first[0].item() == (1.0 if exponent == 1.0 else 0.0)
    assert first[1].item() == 0.0
    third = x**exponent
    for _ in range(3):
        third = gradients(third.sum(), x, create_graph=True)
        if not third.requires_grad:
            break
    assert np.isfinite(third.numpy())


def test_negative_base_has_a_real_power_but_no_slope_in_the_exponent():
    x, y = tensor(-2.0, requires_grad=True), tensor(3.0, requires_grad=True)
    gx, gy = gradients(F.pow(x, y), [x, y])
    assert gx.item() == 12.0
    assert math.isnan(gy.item())


def test_where_masks_the_gradient_of_the_side_not_chosen():
    x = tensor([-1.0, 4.0], requires_grad=True)
    safe = F.where(x > 0, x, 1.0)
    assert gradients(F.where(x > 0, F.sqrt(safe), 0.0), x).tolist() == [0.0, 0.25]


def test_xlogy_at_the_origin():
    x, y = tensor(0.0, requires_grad=True), tensor(0.0, requires_grad=True)
    z = F.xlogy(x, y)
    assert (z.item(), *(g.item() for g in gradients(z, [x, y]))) == (0.0, 0.0, 0.0)


def test_logaddexp_of_infinities_shares_the_gradient():
    x, y = tensor([-INF, INF], requires_grad=True), tensor([-INF, INF], requires_grad=True)
    for g in gradients(F.logaddexp(x, y), [x, y]):
        assert g.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("name", ["hypot", "atan2"])
def test_gradients_at_the_origin_are_zero(name):
    x, y = tensor(0.0, requires_grad=True), tensor(0.0, requires_grad=True)
    assert [g.item() for g in gradients(getattr(F, name)(x, y), [x, y])] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["asinh", "acosh", "atan", "hypot", "atan2"])
def test_gradients_of_huge_values_do_not_overflow(name):
    x = tensor(1e30, requires_grad=True)
    y = getattr(F, name)(x, x) if name in ("hypot", "atan2") else getattr(F, name)(x)
    assert np.isfinite(gradients(y, x).numpy())


def test_sinc_slope_is_accurate_near_zero():
    x = tensor([1e-4, 1e-2], requires_grad=True)  # float32
    exact = [-(math.pi**2) * 1e-4 / 3, -0.03289543525]
    np.testing.assert_allclose(gradients(F.sinc(x), x).numpy(), exact, rtol=1e-5)


# -- integers and dtypes --------------------------------------------------------------------------


def test_integer_limits():
    least = tensor(np.array([-128], np.int8))
    assert F.abs(least).tolist() == [-128]
    assert F.neg(tensor(np.array([1], np.uint8))).tolist() == [255]
    with np.errstate(all="ignore"):
        assert F.floor_divide(tensor([7]), tensor([0])).tolist() == [0]
    assert F.cast(tensor([300, -1]), "uint8").tolist() == [44, 255]


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "relu", "abs", "square"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_integers_stay_integers(name, dtype):
    assert getattr(F, name)(tensor([0, 3], dtype=dtype)).dtype == dtype


def test_python_integers_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match="300 does not fit in uint8"):
        F.add(tensor([1], dtype="uint8"), 300)


NARROW = ["exp", "exp2", "log2", "tanh", "sigmoid", "erf", "erfinv", "sinc", "square"]
NARROW += [
    "gelu",
    "silu",
    "softplus",
    "elu",
    "selu",
    "celu",
    "leaky_relu",
    "hardtanh",
    "softshrink",
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NARROW)
def test_narrow_floats_keep_their_dtype(name, dtype):
    pytest.importorskip("ml_dtypes")
    x = tensor([0.25, 0.75], dtype=dtype, requires_grad=True)
    y = getattr(F, name)(x)
    assert y.dtype == x.dtype
    assert gradients(y, x).dtype == x.dtype
    wide = getattr(F, name)(tensor([0.25, 0.75])).numpy()
    np.testing.assert_allclose(y.numpy().astype(np.float32), wide, rtol=2e-2, atol=1e-2)
