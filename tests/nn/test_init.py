"""Initialisers: their distributions, fixed values and errors."""

import math

import numpy as np
import pytest

import weft as wf
from weft.nn import init


def big(*shape):
    return wf.zeros(shape or (400, 300))


def spread(tensor):
    x = tensor.numpy()
    return float(x.mean()), float(x.std())


@pytest.mark.parametrize(
    ("fill", "std"),
    [
        (lambda t: init.uniform_(t, -2.0, 4.0), 6 / math.sqrt(12)),
        (lambda t: init.normal_(t, 1.0, 3.0), 3.0),
        (lambda t: init.xavier_uniform_(t, gain=2.0), 2 * math.sqrt(2 / 700)),
        (init.xavier_normal_, math.sqrt(2 / 700)),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 300)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out"), math.sqrt(2 / 400)),
        (lambda t: init.kaiming_normal_(t, a=1.0), math.sqrt(1 / 300)),
    ],
)
def test_spreads(fill, std):
    wf.manual_seed(0)
    tensor = big()
    assert fill(tensor) is tensor
    mean, found = spread(tensor)
    assert found == pytest.approx(std, rel=0.02)
    assert abs(mean - (1.0 if std in (3.0, 6 / math.sqrt(12)) else 0.0)) < 0.02 * max(std, 1)


def test_uniform_bounds_hold_and_may_coincide():
    x = init.uniform_(big(), -0.5, 0.25).numpy()
    assert x.min() >= -0.5
    assert x.max() < 0.25
    assert init.uniform_(wf.zeros(3), 2.0, 2.0).tolist() == [2.0] * 3


def test_truncated_normal_stays_within():
    x = init.trunc_normal_(big(), 0.0, 1.0, -0.5, 1.5).numpy()
    assert x.min() >= -0.5
    assert x.max() <= 1.5
    assert x.std() > 0.3


def test_convolution_fans_count_the_kernel():
    tensor = big(64, 32, 3, 3)
    assert init.fans(tensor) == (288, 576)
    init.kaiming_normal_(tensor)
    assert spread(tensor)[1] == pytest.approx(math.sqrt(2 / 288), rel=0.02)


@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (4, 2, 3)])
def test_orthogonal_rows_or_columns(shape):
    q = init.orthogonal_(wf.zeros(shape, dtype=wf.float64), gain=2.0).numpy().reshape(shape[0], -1)
    small = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-12)


def test_sparse_zeroes_the_same_number_in_each_column():
    x = init.sparse_(wf.zeros(10, 6), 0.25, std=2.0).numpy()
    assert ((x == 0).sum(axis=0) == 3).all()
    assert (init.sparse_(wf.zeros(10, 6), 0.0).numpy() != 0).all()
    columns = {tuple(np.flatnonzero(c == 0)) for c in x.T}
    assert len(columns) > 1


def test_fixed_values():
    assert init.constant_(wf.zeros(2), 3.5).tolist() == [3.5, 3.5]
    assert init.ones_(wf.zeros(2)).tolist() == [1.0, 1.0]
    assert init.zeros_(wf.ones(2)).tolist() == [0.0, 0.0]
    np.testing.assert_array_equal(init.eye_(wf.zeros(2, 3)).numpy(), np.eye(2, 3))


def test_dirac_keeps_channels():
    conv = wf.nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False)
    init.dirac_(conv.weight, groups=2)
    x = wf.randn(1, 4, 5, 5)
    np.testing.assert_allclose(conv(x).numpy(), x.numpy())


def test_generator_makes_draws_repeatable():
    a = init.normal_(big(5, 5), generator=wf.Generator(7))
    b = init.normal_(big(5, 5), generator=wf.Generator(7))
    np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_every_float_dtype_keeps_its_own(dtype):
    for fill in (init.uniform_, init.normal_, init.orthogonal_, init.xavier_uniform_):
        assert fill(wf.zeros(4, 4, dtype=dtype)).dtype.name == dtype


def test_empty_tensors_are_left_alone():
    for fill in (init.kaiming_uniform_, init.xavier_normal_, init.orthogonal_):
        assert fill(wf.zeros(0, 3)).shape == (0, 3)


def test_parameters_stay_leaves():
    layer = wf.nn.Linear(3, 3)
    init.xavier_uniform_(layer.weight)
    assert layer.weight.is_leaf
    assert layer.weight.requires_grad


def test_gains():
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / (1 + 1e-4)))
    assert init.calculate_gain("leaky_relu", 2.0) == pytest.approx(math.sqrt(2 / 5))
    assert init.calculate_gain("tanh") == pytest.approx(5 / 3)
    assert init.calculate_gain("conv_transpose3d") == 1.0
    assert init.calculate_gain("selu") == 0.75


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: init.ones_([1.0]), TypeError, "ones_|constant_: expected a tensor"),
        (lambda: init.normal_(wf.zeros(2, dtype=wf.int64)), TypeError, "floating-point"),
        (lambda: init.xavier_uniform_(wf.zeros(3)), ValueError, "at least 2 dimensions"),
        (lambda: init.kaiming_normal_(wf.zeros(3, 3), mode="in"), ValueError, "'fan_in' or"),
        (
            lambda: init.kaiming_normal_(wf.zeros(3, 3), nonlinearity="x"),
            ValueError,
            "one of linear",
        ),
        (lambda: init.eye_(wf.zeros(3)), ValueError, "needs a matrix"),
        (lambda: init.dirac_(wf.zeros(3, 3)), ValueError, "3, 4 or 5 dimensions"),
        (lambda: init.dirac_(wf.zeros(3, 3, 3), 2), ValueError, "groups must divide the 3"),
        (lambda: init.sparse_(wf.zeros(3, 3), 1.5), ValueError, r"\[0, 1\]"),
        (lambda: init.sparse_(wf.zeros(3), 0.5), ValueError, "needs a matrix"),
        (lambda: init.orthogonal_(wf.zeros(3)), ValueError, "at least 2"),
        (lambda: init.uniform_(wf.zeros(3), 2.0, 1.0), ValueError, "low must be less than high"),
        (lambda: init.constant_(wf.zeros(3), "x"), TypeError, "val must be a number"),
        (lambda: init.normal_(wf.zeros(3), generator=3), TypeError, "wf.Generator"),
    ],
)
def test_errors(call, error, match):
    with pytest.raises(error, match=match):
        call()
