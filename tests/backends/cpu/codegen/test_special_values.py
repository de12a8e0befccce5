"""Zeros, infinities, NaN, subnormal numbers and thresholds: as NumPy has them."""

import numpy as np
import pytest

from tests.backends.cpu.codegen.functions import BINARY, FUNCTIONS, UNARY, last_places, limit
from tests.backends.cpu.codegen.jit import evaluate
from weft.backends.cpu.codegen import Target, host, sse2


def special_numbers(dtype: str) -> np.ndarray:
    info = np.finfo(dtype)
    sizes = [0.0, info.smallest_subnormal, 3 * info.smallest_subnormal, info.tiny, info.eps]
    sizes += [0.25, 0.5, 1.0, 1 + info.eps, 1 - info.epsneg, 1.5, 2.0, 3.0, 4.0, 26.0, 1e4]
    sizes += [2.0**23 - 0.5, 2.0**24 + 2, 2.0**53, 2.0**54, info.max / 4, info.max, np.inf]
    sizes += [np.log(float(info.max)), np.log(float(info.tiny)), info.maxexp, info.minexp, 710.5]
    both = np.array([*sizes, *(-s for s in sizes), np.nan, np.pi / 2, np.pi, 88.72284, 104.0])
    return both.astype(dtype)


def plainly_equal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Whether both are NaN, or both the same infinity, or both zeros of the same sign."""
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    return same | (np.isnan(got) & np.isnan(want))


def check(name: str, *operands: np.ndarray, target: Target | None = None) -> None:
    with np.errstate(all="ignore"):
        want = {**UNARY, **BINARY}[name](*operands).astype(operands[0].dtype)
    got = evaluate(FUNCTIONS[name], *operands, target=target)
    exceptional = ~np.isfinite(want) | (want == 0) | ~np.isfinite(got)
    wrong = exceptional & ~plainly_equal(got, want)
    assert not wrong.any(), [(*(x[wrong] for x in operands), got[wrong], want[wrong])]
    # NumPy's own float32 functions err by up to 4 units themselves.
    close = last_places(got, want.astype(np.longdouble)) <= limit(name, str(want.dtype)) + 4
    assert (close | exceptional).all(), [
        (*(x[~close] for x in operands), got[~close], want[~close])
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(UNARY))
def test_special_operands(name: str, dtype: str) -> None:
    check(name, special_numbers(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BINARY))
def test_special_pairs(name: str, dtype: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(special_numbers(dtype), special_numbers(dtype)))
    check(name, np.ascontiguousarray(x), np.ascontiguousarray(y))


@pytest.mark.skipif(host().architecture != "x86_64", reason="needs a processor that runs SSE2")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(BINARY))
def test_special_pairs_without_fused_multiply_add(name: str, dtype: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(special_numbers(dtype), special_numbers(dtype)))
    check(name, np.ascontiguousarray(x), np.ascontiguousarray(y), target=sse2())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted({**UNARY, **BINARY}))
def test_neighbours_do_not_matter(name: str, dtype: str) -> None:
    """A number has the same bits in a vector of its like and beside special ones."""
    rng = np.random.default_rng(0)
    count = 1 if name in UNARY else 2
    usual = [np.exp(rng.normal(size=512)).astype(dtype) for _ in range(count)]
    special = [rng.permutation(np.resize(special_numbers(dtype), 512)) for _ in range(count)]
    mixed = [np.stack(pair, -1).ravel() for pair in zip(usual, special, strict=True)]
    alone = evaluate(FUNCTIONS[name], *usual)
    np.testing.assert_array_equal(evaluate(FUNCTIONS[name], *mixed)[::2], alone)


@pytest.mark.parametrize("payload", [0x7F800001, 0x7FC001FF, 0xFFFFFFFF])
@pytest.mark.parametrize("name", sorted(set(UNARY)))
def test_any_nan_stays_nan(name: str, payload: int) -> None:
    x = np.array([payload], np.uint32).view(np.float32)
    assert np.isnan(evaluate(FUNCTIONS[name], x)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf_ends_at_one_exactly(dtype: str) -> None:
    """Otherwise gelu, x (1 + erf) / 2, would grow where it vanishes."""
    x = np.array([6.0, 7.5, 1e10, np.finfo(dtype).max, np.inf], dtype)
    np.testing.assert_array_equal(evaluate(FUNCTIONS["erf"], x), 1)
    np.testing.assert_array_equal(evaluate(FUNCTIONS["erf"], -x), -1)
