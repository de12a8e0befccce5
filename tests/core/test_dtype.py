"""Element types: names, promotion, weak scalars."""

import numpy as np
import pytest

import weft as wf
from weft.core import dtype as dt
from weft.core.errors import ArgumentTypeError, DTypeError

FLOATS = (dt.float16, dt.float32, dt.float64)
INTEGERS = tuple(np.dtype(f"{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64))
ALL = (dt.bool_, *INTEGERS, *FLOATS)


@pytest.fixture
def double_by_default():
    wf.set_default_dtype("float64")
    yield
    wf.set_default_dtype("float32")


def test_names():
    assert dt.as_dtype("float32") is dt.as_dtype(np.float32) is dt.float32
    assert dt.as_dtype(float) == dt.float32
    assert dt.as_dtype(int) == dt.int64
    assert dt.as_dtype(bool) == dt.bool_
    assert dt.as_dtype("bfloat16").name == "bfloat16"
    assert np.zeros(3, wf.float32).dtype == wf.float32


@pytest.mark.parametrize("spec", ["complex64", "object", "S4", "datetime64[s]"])
def test_unsupported_dtypes(spec):
    with pytest.raises(DTypeError):
        dt.as_dtype(spec)


@pytest.mark.parametrize("spec", ["float99", 3.5, [1]])
def test_what_is_no_dtype(spec):
    with pytest.raises((ArgumentTypeError, DTypeError), match="Received"):
        dt.as_dtype(spec)


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_promotion_is_symmetric_and_idempotent(a, b):
    try:
        result = dt.promote(a, b)
    except DTypeError:
        assert {a, b} & {dt.uint64}
        return
    assert result == dt.promote(b, a) == dt.promote(result, a) == dt.promote(result, b)


@pytest.mark.parametrize("a", INTEGERS)
@pytest.mark.parametrize("b", FLOATS)
def test_integers_take_the_float_s_dtype(a, b):
    assert dt.promote(a, b) == b


def test_promotion_within_a_kind():
    assert dt.promote(dt.float16, dt.float64) == dt.float64
    assert dt.promote(dt.int8, dt.uint8) == dt.int16
    assert dt.promote(dt.bool_, dt.int8) == dt.int8
    assert dt.promote(dt.float16, dt.bfloat16()) == dt.float32
    assert dt.promote(dt.bfloat16(), dt.float32) == dt.float32
    with pytest.raises(DTypeError, match="uint64 and int64 have no common integer dtype"):
        dt.promote(dt.uint64, dt.int64)


def test_python_scalars_are_weak():
    assert dt.promote_weak(dt.float16, 1.5) == dt.float16
    assert dt.promote_weak(dt.int8, 1000) == dt.int8
    assert dt.promote_weak(dt.int8, 1.5) == dt.float32
    assert dt.promote_weak(dt.bool_, 1) == dt.int64
    assert dt.promote_weak(dt.bool_, True) == dt.bool_
    assert dt.promote_weak(dt.bool_, 0.5) == dt.float32


def test_default_dtype(double_by_default):
    assert wf.tensor(1.0).dtype == wf.float64
    assert dt.to_float(dt.int32) == wf.float64
    assert dt.as_dtype(float) == wf.float64
    assert (wf.tensor(1, dtype=wf.int8) + 0.5).dtype == wf.float64
    with pytest.raises(DTypeError, match=r"must be a float. Received: int64"):
        wf.set_default_dtype("int64")


def test_kinds():
    assert dt.is_float(dt.bfloat16())
    assert not dt.is_float(dt.int8)
    assert dt.is_integer(dt.uint8)
    assert not dt.is_integer(dt.bool_)
