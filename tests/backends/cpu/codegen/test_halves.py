"""16-bit floats: every number there is, and the numbers between them, on every machine at hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.codegen.functions import every_exponent
from tests.backends.cpu.codegen.jit import evaluate
from weft.backends.cpu.codegen import host, sse2
from weft.backends.cpu.codegen.halves import half_bits, narrowed, widened

ml_dtypes = pytest.importorskip("ml_dtypes")
TARGETS = {"host": host(), "sse2": sse2()}
if host().architecture != "x86_64":
    del TARGETS["sse2"]
HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
ALL_BITS = np.arange(2**16, dtype=np.uint16).view(np.int16)

each_target = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
each_half = pytest.mark.parametrize("dtype", HALVES, ids=str)


def widen(dtype):
    return {d: lambda f, x, d=d: widened(f, x, d) for d in HALVES}[dtype]


def narrow(dtype):
    return {d: lambda f, x, d=d: narrowed(f, x, d) for d in HALVES}[dtype]


def between(dtype) -> np.ndarray:
    """Return all numbers of a dtype as float32, the middles between them, and their neighbours."""
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.sort(ALL_BITS.view(dtype).astype(np.float32))
        numbers = numbers[np.isfinite(numbers)]
        middles = (numbers[1:] / 2 + numbers[:-1] / 2).astype(np.float32)
        beyond = np.float32([65504, 65519.996, 65520, 65536, np.inf, 3.4e38, 3.395e38])
        points = np.concatenate([numbers, middles, beyond, -beyond])
        up, down = (np.nextafter(points, np.float32(to)) for to in (np.inf, -np.inf))
    return np.concatenate([points, up, down, every_exponent("float32", 20_000)])


@each_target
@each_half
def test_all_numbers_are_widened(dtype, target) -> None:
    got = evaluate(widen(dtype), ALL_BITS, output="float32", target=target)
    expected = ALL_BITS.view(dtype).astype(np.float32)
    np.testing.assert_array_equal(got, expected)
    assert (np.signbit(got) == np.signbit(expected)).all()


@each_target
@each_half
def test_numbers_are_rounded_to_the_nearest(dtype, target) -> None:
    x = between(dtype)
    got = evaluate(narrow(dtype), x, output="int16", target=target)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(dtype)
    nan = np.isnan(x)
    assert np.isnan(got.view(dtype)[nan].astype(np.float32)).all()
    np.testing.assert_array_equal(got[~nan], expected.view(np.int16)[~nan])


@each_half
@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.00390625, 1.01171875, 3.3e38, 1e-40, -2.7, -np.inf, np.nan]
)
def test_constants(dtype, number) -> None:
    bits = np.array([half_bits(dtype, number)]).astype(np.uint16)
    with np.errstate(over="ignore"):
        expected = np.array([number], np.float32).astype(dtype)
    if np.isnan(number):
        assert np.isnan(bits.view(dtype).astype(np.float32)).all()
    else:
        assert bits == expected.view(np.uint16)
