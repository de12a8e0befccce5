"""Hold every mathematical function to its error bound, over all exponents."""

from decimal import Decimal

import numpy as np
import pytest

from tests.backends.cpu.codegen import minimax
from tests.backends.cpu.codegen.functions import (
    BINARY,
    FUNCTIONS,
    UNARY,
    common_arguments,
    every_exponent,
    last_places,
    limit,
    reference,
)
from tests.backends.cpu.codegen.jit import evaluate
from tests.backends.cpu.codegen.sweep import BLOCK, worst_error
from weft.backends.cpu.codegen import Target, host, sse2

# SciPy's own error is of the size to be measured in float64, so decimals are the reference there.
DECIMAL = {"erf": minimax.erf, "erfc": minimax.erfc}
WIDER_THAN_DOUBLE = np.finfo(np.longdouble).eps < 2.0**-60
STRIDE = 20011  # of the bit patterns of float32 that every run checks: a prime, about 215,000


def check(name: str, *operands: np.ndarray) -> None:
    got = evaluate(FUNCTIONS[name], *operands)
    assert_close(name, got, reference(name, *operands), *operands)


def assert_close(name: str, got: np.ndarray, exact: np.ndarray, *operands: np.ndarray) -> None:
    errors = last_places(got, exact)
    worst = int(errors.argmax())
    where = [x[worst] for x in operands]
    bound = allowed(name, str(got.dtype), host())
    assert errors[worst] <= bound, (name, where, got[worst], exact[worst])


def allowed(name: str, dtype: str, target: Target) -> float:
    """Return the bound of a function: without fused operations it may lose half a unit more."""
    bound = limit(name, dtype)
    return bound if target.has_fma or bound == 0 else bound + 0.5


def mixed_arguments(dtype: str, seed: int) -> np.ndarray:
    return np.concatenate([every_exponent(dtype, 997, seed), common_arguments(dtype, 996, seed)])


@pytest.mark.parametrize("name", sorted(UNARY))
def test_float32_is_accurate_at_all_exponents(name: str) -> None:
    bits = np.arange(0, 2**32, STRIDE, dtype=np.uint32)
    check(name, bits.view(np.float32))
    check(name, common_arguments("float32", 60_000))


@pytest.mark.skipif(not WIDER_THAN_DOUBLE, reason="long double is no wider than double here")
@pytest.mark.parametrize("name", sorted(set(UNARY) - set(DECIMAL)))
def test_float64_is_accurate_at_all_exponents(name: str) -> None:
    check(name, every_exponent("float64", 40_000))
    check(name, common_arguments("float64", 60_000))


@pytest.mark.parametrize("name", sorted(DECIMAL))
def test_error_functions_are_accurate_in_float64(name: str) -> None:
    low, high = {"erf": (0.0, 6.2), "erfc": (0.3, 26.5)}[name]
    x = np.random.default_rng(1).uniform(low, high, 300)
    exact = np.array([np.longdouble(str(DECIMAL[name](Decimal(float(v))))) for v in x])
    assert_close(name, evaluate(FUNCTIONS[name], x), exact, x)


@pytest.mark.skipif(not WIDER_THAN_DOUBLE, reason="long double is no wider than double here")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BINARY))
def test_functions_of_two_are_accurate(name: str, dtype: str) -> None:
    check(name, every_exponent(dtype, 60_000, seed=1), every_exponent(dtype, 60_000, seed=2))
    x = common_arguments(dtype, 60_000, seed=3)
    y = np.random.default_rng(4).permutation(common_arguments(dtype, 60_000, seed=5))
    check(name, x, y)
    check(name, np.abs(x), y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_that_are_exact_come_out_exact(dtype: str) -> None:
    bases, exponents = np.meshgrid(np.arange(-40, 41), np.arange(0, 12))
    exact = bases.astype(object) ** exponents.astype(object)
    fits = np.abs(exact.astype(float)) < 2.0 ** (np.finfo(dtype).nmant + 1)
    x, y = bases[fits].astype(dtype), exponents[fits].astype(dtype)
    np.testing.assert_array_equal(evaluate(FUNCTIONS["pow"], x, y), exact[fits].astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_of_powers_are_exact(dtype: str) -> None:
    low, high = {"float32": (-149, 128), "float64": (-1074, 1024)}[dtype]
    exponents = np.arange(low, high).astype(dtype)
    powers = np.ldexp(np.ones(1, dtype), np.arange(low, high)).astype(dtype)
    np.testing.assert_array_equal(evaluate(FUNCTIONS["log2"], powers), exponents)
    np.testing.assert_array_equal(evaluate(FUNCTIONS["exp2"], exponents), powers)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted({**UNARY, **BINARY}))
def test_a_result_depends_on_its_own_operands_only(name: str, dtype: str) -> None:
    """The same bits in any lane and any width of vector, beside any neighbours."""
    operands = [mixed_arguments(dtype, seed) for seed in range(1 if name in UNARY else 2)]
    wide = evaluate(FUNCTIONS[name], *operands)
    for lanes in (1, 2 * host().lanes(dtype)):
        again = evaluate(FUNCTIONS[name], *operands, lanes=lanes)
        np.testing.assert_array_equal(again, wide)
    shifted = evaluate(FUNCTIONS[name], *(x[3:] for x in operands))
    np.testing.assert_array_equal(shifted, wide[3:])


@pytest.mark.skipif(host().architecture != "x86_64", reason="needs a processor that runs SSE2")
@pytest.mark.skipif(not WIDER_THAN_DOUBLE, reason="long double is no wider than double here")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted({*UNARY, *BINARY} - {*DECIMAL}))
def test_without_fused_multiply_add(name: str, dtype: str) -> None:
    operands = [mixed_arguments(dtype, seed) for seed in range(1 if name in UNARY else 2)]
    got = evaluate(FUNCTIONS[name], *operands, target=sse2())
    errors = last_places(got, reference(name, *operands))
    assert errors.max() <= allowed(name, dtype, sse2())


@pytest.mark.skipif(host().architecture != "x86_64", reason="needs a processor that runs SSE2")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["ceil", "floor", "fmod", "round", "trunc"])
def test_exact_functions_without_instructions_for_them(name: str, dtype: str) -> None:
    """Whole numbers, halves between them, the largest numbers, zeros of both signs."""
    info = np.finfo(dtype)
    edges = [0.0, 0.5, 1.0, 1.5, 2.5, info.max, info.tiny, info.smallest_subnormal, np.inf]
    edges += [2.0**info.nmant, 2.0**info.nmant - 0.5, 2.0 ** (info.nmant + 1)]
    near = np.array(edges, dtype)
    x = np.concatenate([near, np.nextafter(near, near.dtype.type(0)), common_arguments(dtype, 600)])
    x = np.concatenate([x, -x, [np.nan]]).astype(dtype)
    pairs = [x] if name in UNARY else [np.repeat(x, 5), np.resize(x[:71], 5 * len(x))]
    got, exact = evaluate(FUNCTIONS[name], *pairs, target=sse2()), reference(name, *pairs)
    np.testing.assert_array_equal(got, exact)
    np.testing.assert_array_equal(
        np.signbit(got[~np.isnan(got)]), np.signbit(exact[~np.isnan(exact)])
    )


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(UNARY))
def test_all_float32_numbers(name: str) -> None:
    """Check the 2^32 numbers there are."""
    worst = worst_error(name)
    assert worst.error <= limit(name, "float32"), (name, worst)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_the_sweep_of_all_numbers_on_a_few(name: str) -> None:
    """Runs of neighbouring numbers: the least, around 1, the largest with the infinities."""
    for middle in (0, 0x3F800000, 0x7F800000, 0xBF800000, 0xFF800000):
        first = max(0, middle - BLOCK)
        worst = worst_error(name, first, first + 2 * BLOCK)
        assert worst.error <= limit(name, "float32"), (name, worst)
