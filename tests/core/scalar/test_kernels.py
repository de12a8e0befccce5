"""Kernels that follow from `lower` rules alone."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import F, Op, elementwise, find_op
from weft.core.shape import TensorType


def operator(declaration, lower, **options):
    """Return an operator that is in no registry."""
    record = Op(declaration, elementwise, **options)
    record.lower(lower)
    return record


def mixed(x: wf.Tensor, y: wf.Tensor) -> wf.Tensor:
    """Return a function of two."""


def sloped(x: wf.Tensor, slope=0.5) -> wf.Tensor:
    """Return a function with an attribute."""


def same(x, *attrs):
    return TensorType(x.shape, x.dtype)


@pytest.mark.parametrize(
    ("name", "ufunc"), [("exp", np.exp), ("add", np.add), ("where", np.where), ("floor", np.floor)]
)
def test_one_function_is_the_kernel_itself(name, ufunc):
    assert find_op(name).kernel is ufunc


def test_kernels_are_written_step_by_step():
    text = find_op("softsign").kernel.variant((np.dtype("float32"),), ()).text
    assert text == (
        "def kernel(x):\n    t0 = absolute(x)\n    t0 += c0\n    t1 = x / t0\n    return t1\n"
    )


def test_halves_are_rounded_once():
    x = np.linspace(-3, 3, 101).astype(np.float16)
    record = operator(sloped, lambda b, x, slope: x * x * x * x, promote="float")
    record.infer(same)
    exact = x.astype(np.float64) ** 4
    found = record.kernel(x, 0.5)
    assert found.dtype == np.float16
    assert (np.abs(found - exact) <= 0.51 * np.spacing(exact.astype(np.float16))).all()


def test_operands_are_left_as_they_are():
    record = operator(mixed, lambda b, x, y: (x + y) * x - y / x, promote="float")
    x, y = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])
    x.flags.writeable = y.flags.writeable = False
    np.testing.assert_array_equal(record.kernel(x, y), (x + y) * x - y / x)


def test_temporaries_are_overwritten_only_by_what_fits_them():
    """Y - 1 has the shape of y alone: the sum with x goes elsewhere."""
    record = operator(mixed, lambda b, x, y: (y - 1.0) * x + b.exp(y - 1.0), promote="float")
    for x, y in ((np.ones(3), np.ones((2, 1))), (np.ones((2, 3)), np.ones(3)), (1.0, np.ones(2))):
        found = record.kernel(np.asarray(x), y)
        np.testing.assert_allclose(found, (y - 1) * x + np.exp(y - 1))


def test_views_of_operands_are_not_overwritten():
    def flipped(b, x, slope):
        return b.bits(b.bits(x, np.int32) ^ b.constant(-(2**31), np.int32), np.float32)

    record = operator(sloped, flipped, promote="float")
    record.infer(same)
    x = np.array([1.0, -2.0], np.float32)
    np.testing.assert_array_equal(record.kernel(x, 0.5), -x)
    np.testing.assert_array_equal(x, [1, -2])


def test_what_has_a_view_is_not_overwritten():
    """The sum goes elsewhere, since its bits are wanted too."""

    def rule(b, x, slope):
        total = x + 1.0
        bits = b.cast(b.bits(total, np.int64), np.float64)
        return total * 2.0 + bits

    record = operator(sloped, rule, promote="float")
    record.infer(same)
    x = np.array([1.0, 2.0])
    total = x + 1
    np.testing.assert_array_equal(record.kernel(x, 0.5), total * 2 + total.view(np.int64))


def test_an_operand_that_is_the_result_is_copied():
    record = operator(sloped, lambda b, x, slope: x)
    record.infer(same)
    x = np.ones(2)
    found = record.kernel(x, 0.5)
    assert found is not x
    assert not np.shares_memory(found, x)


def test_attributes_stay_parameters():
    calls = []

    def rule(b, x, slope):
        calls.append(slope)
        return b.maximum(x, -slope) * slope

    record = operator(sloped, rule, promote="float")
    record.infer(same)
    x = np.array([-5.0, 5.0])
    for slope in (0.5, 2.0, 0.0, 3):
        np.testing.assert_array_equal(record.kernel(x, slope), np.maximum(x, -slope) * slope)
    assert len(calls) == 2  # floats, and integers


def test_attributes_that_a_rule_looks_at_have_kernels_of_their_own():
    record = operator(sloped, lambda b, x, slope: x * slope if slope > 1 else -x, promote="float")
    record.infer(same)
    x = np.array([1.0, 2.0])
    for slope in (0.5, 2.0, 0.5, 3.0, 2.0):
        expected = x * slope if slope > 1 else -x
        np.testing.assert_array_equal(record.kernel(x, slope), expected)


def test_zeros_of_either_sign_are_two_attributes():
    for rule in (lambda b, x, slope: x * slope, lambda b, x, slope: x * (slope * 1.0)):
        record = operator(sloped, rule, promote="float")
        record.infer(same)
        for zero in (0.0, -0.0, 0.0):
            assert np.signbit(record.kernel(np.ones(2), zero)).tolist() == [np.signbit(zero)] * 2


def test_numbers_and_mixed_dtypes_meet_as_in_numpy():
    """Rules give raw arrays of whatever dtype, and Python's numbers."""
    x = np.array([0.5, 2.0], np.float32)
    assert F.xlogy(x, 2.0).dtype == np.float32
    assert F.xlogy(x, np.ones(2)).dtype == np.float64
    assert F.lerp(x, 1, True).tolist() == [1.0, 1.0]


def test_rows_keep_their_axes_where_they_meet_full_values():
    text = find_op("logsumexp").kernel.variant((np.dtype("float64"),), ((1,), False)).text
    assert "t0 = maximum.reduce(x, axis=axis, keepdims=True, initial=-inf)\n" in text
    assert "sum_array(t6, axis, keepdims)\n" in text
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for axis, keepdims in (((1,), False), ((0, 2), True), ((0, 1, 2), False), ((), True)):
        found = find_op("logsumexp").kernel(x, axis, keepdims)
        np.testing.assert_allclose(found, np.log(np.exp(x).sum(axis, keepdims=keepdims)))


def test_integers_are_converted_while_they_are_added_up():
    text = find_op("sum").kernel.variant((np.dtype("int8"),), ((0,), False, None)).text
    assert "add.reduce(x, axis=axis, keepdims=keepdims, dtype=int64)" in text


def test_operands_that_are_not_promoted_keep_their_dtypes():
    x, y = np.array([0, 2]), np.array([True, True])
    assert F.logical_and(x, y).tolist() == [False, True]
    assert F.logical_or(x, False).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_dtypes_follow_the_shape_rule(dtype):
    x = np.array([0, 1, 5]).astype(dtype)
    found = find_op("relu").kernel(x)
    assert found.dtype == (np.int64 if dtype == "bool" else x.dtype)
    np.testing.assert_array_equal(found, x)


def test_tensors_of_no_axes():
    x = wf.tensor(2.0)
    assert wf.silu(x).item() == pytest.approx(2 / (1 + np.exp(-2)))
    assert wf.silu(x).shape == ()
