"""Scalar expressions are shared, typed, and complete."""

from __future__ import annotations

import numpy as np
import pytest

from weft.core.scalar.builder import CHEAP, ScalarBuilder, postorder, substituted

F32, I32, BOOL = np.dtype("float32"), np.dtype("int32"), np.dtype("bool")


def test_the_same_expression_is_the_same_object():
    b = ScalarBuilder()
    x = b.load(0, F32)
    assert b.exp(x) is b.exp(x)
    assert x * 2.0 is x * 2.0
    assert (x * 0.0) is not (x * -0.0)
    assert b.constant(float("nan"), F32) is b.constant(float("nan"), F32)


def test_numbers_take_the_dtype_of_what_they_meet():
    b = ScalarBuilder()
    assert (b.load(0, F32) + 1).args[1].data == 1.0
    assert (1 - b.load(0, I32)).args[0].dtype == I32
    with pytest.raises(AssertionError, match="float32 meets int32"):
        b.load(0, F32) + b.load(1, I32)


def test_comparisons_are_truth_values():
    b = ScalarBuilder()
    x = b.load(0, F32)
    assert {e.dtype for e in (x < 1, x >= 1, b.eq(x, x), b.truth(x), b.is_nan(x))} == {BOOL}


def test_whole_numbers_stay_as_they_are():
    b = ScalarBuilder()
    n = b.load(0, I32)
    assert b.floor(n) is n
    assert b.floor(b.load(1, F32)).kind == "floor"


def test_functions_may_be_composed_of_others():
    b = ScalarBuilder()
    kinds = {e.kind for e in postorder([b.normal_cdf(b.load(0, F32))])}
    assert {"exp", "select"} <= kinds
    assert "normal_cdf" not in kinds


def test_substitution_rebuilds_what_depends_on_the_parts():
    b, c = ScalarBuilder(), ScalarBuilder()
    x, y = b.load(0, F32), b.load(1, F32)
    made = substituted(c, b.exp(x * y) + x, {x: c.load(7, F32), y: c.constant(2.0, F32)})
    assert repr(made) == "add(exp(mul(load(7), const(2.0))), load(7))"


def test_arguments_come_before_what_uses_them():
    b = ScalarBuilder()
    x = b.load(0, F32)
    order = postorder([b.exp(x) * x])
    assert [e.kind for e in order] == ["load", "exp", "mul"]


def test_cheap_expressions():
    assert {"add", "load", "const", "select", "cast"} <= CHEAP
    assert not {"exp", "div", "floor", "mod"} & CHEAP
