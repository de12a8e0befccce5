"""Straight-line NumPy source of scalar expressions."""

from __future__ import annotations

import numpy as np

from weft.core.scalar.text import ExpressionSource, NumpyBuilder, numbers_of

F64 = np.dtype("float64")


def lines(rule, count=1, **options):
    b = NumpyBuilder()
    return ExpressionSource(
        ("x", "y")[:count], rule(b, *(b.load(i, F64) for i in range(count))), **options
    )


def test_a_temporary_takes_the_result():
    assert lines(lambda b, x: b.exp(x) * 2.0 + x).lines == ["t0 = exp(x)", "t0 *= c0", "t0 += x"]


def test_one_that_is_needed_again_does_not():
    def rule(b, x):
        e = b.exp(x)
        return (e + 1.0) * e

    assert lines(rule).lines == ["t0 = exp(x)", "t1 = t0 + c0", "t1 *= t0"]


def test_one_of_another_shape_does_not():
    found = lines(lambda b, x, y: b.exp(x) - y, 2).lines
    assert found == ["t0 = exp(x)", "t1 = t0 - y"]


def test_functions_write_over_arrays_that_have_axes():
    rule = lambda b, x: b.sqrt(1.0 - b.exp(x))  # noqa: E731  (a line of its own)
    assert lines(rule).lines == ["t0 = exp(x)", "t1 = c0 - t0", "t2 = sqrt(t1)"]
    assert lines(rule, axes=True).lines == [
        "t0 = exp(x)",
        "subtract(c0, t0, out=t0)",
        "sqrt(t0, out=t0)",
    ]


def test_an_operand_is_no_result():
    assert lines(lambda b, x: x).result == "x.copy()"


def test_steps_of_a_function_are_written_out():
    assert lines(lambda b, x: b.sigmoid(x)).lines == [
        "t0 = -x",
        "t1 = exp(t0)",
        "t1 += c0",
        "t2 = c0 / t1",
    ]


def test_numbers_are_kept_by_value_and_zeros_by_sign():
    numbers = numbers_of(np.dtype("float32"), False)
    assert numbers[0.1] is numbers[0.1]
    assert numbers[0.1].dtype == np.float32
    assert [bool(np.signbit(numbers[zero])) for zero in (0.0, -0.0, 0)] == [False, True, False]
    assert isinstance(numbers_of(np.dtype("float32"), True)[0.1], np.float32)
