"""References of the special functions: SciPy's, and finite differences of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

from weft.core.samples import ErrorSample, Sample, Sampler

from .elementwise import on_floats


def _with_degree(fn: Callable[..., Any], shifted: bool = False) -> Callable[..., Any]:
    def reference(x: Any, n: Any) -> Any:
        x = np.asarray(x, np.float64)
        n = np.asarray(n, np.float64)
        value = fn(n, 2 * x - 1 if shifted else x)
        return np.where(n < 0, 0.0, value)

    return reference


def _third(n: Any, x: Any) -> Any:
    return special.eval_chebyu(n, x) - np.where(n > 0, special.eval_chebyu(n - 1, x), 0.0)


def _fourth(n: Any, x: Any) -> Any:
    return special.eval_chebyu(n, x) + np.where(n > 0, special.eval_chebyu(n - 1, x), 0.0)


def _hermite(n: Any, x: Any) -> Any:
    degrees = np.broadcast_to(np.asarray(n), np.broadcast(n, x).shape).astype(int)
    values = [
        special.eval_hermite(max(d, 0), v) for d, v in np.nditer([degrees, x], ["zerosize_ok"])
    ]
    return np.array(values, np.float64).reshape(degrees.shape)


def _probabilist(n: Any, x: Any) -> Any:
    return 2.0 ** (-np.asarray(n) / 2) * _hermite(n, np.asarray(x) / np.sqrt(2))


POLYNOMIALS = {
    "chebyshev_t": _with_degree(special.eval_chebyt),
    "chebyshev_u": _with_degree(special.eval_chebyu),
    "chebyshev_v": _with_degree(_third),
    "chebyshev_w": _with_degree(_fourth),
    "shifted_chebyshev_t": _with_degree(special.eval_chebyt, True),
    "shifted_chebyshev_u": _with_degree(special.eval_chebyu, True),
    "shifted_chebyshev_v": _with_degree(_third, True),
    "shifted_chebyshev_w": _with_degree(_fourth, True),
    "hermite_h": _with_degree(_hermite),
    "hermite_he": _with_degree(_probabilist),
    "laguerre_l": _with_degree(special.eval_laguerre),
    "legendre_p": _with_degree(special.eval_legendre),
}


def _polynomial(x: Any, n: Any, family: str, order: int = 0) -> Any:
    fn, h = POLYNOMIALS[family], 0.125
    if order == 0:
        return fn(x, n)
    # Central differences of the second order are exact for polynomials of degree 3.
    assert order == 2
    assert np.max(n, initial=0) <= 3
    return (fn(x + h, n) - 2 * fn(x, n) + fn(x - h, n)) / h**2


def _by_shape(a: Any, x: Any, h: float = 1e-3) -> Any:
    """Return the derivative of gammainc by its first argument, by Richardson's extrapolation."""

    def central(h: float) -> Any:
        return (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)

    rough, finer, finest = central(h), central(h / 2), central(h / 4)
    first, second = (4 * finer - rough) / 3, (4 * finest - finer) / 3
    return (16 * second - first) / 15


def _gamma_draw_slope(a: Any, x: Any) -> Any:
    density = np.exp(special.xlogy(a - 1, x) - x - special.gammaln(a))
    return -_by_shape(a, x) / density


def _zeta(x: Any, q: Any) -> Any:
    x, q = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(q, np.float64))
    return np.where(x == 1, np.inf, special.zeta(np.where(x == 1, 2.0, x), q))


def _with_limits(fn: Callable[..., Any], below: float, above: float) -> Callable[..., Any]:
    """Return a function with its limits at -inf and inf, which releases of SciPy give as NaN."""

    def reference(x: Any) -> Any:
        limit = np.where(x > 0, above, below)
        return np.where(np.isinf(x), limit, fn(np.where(np.isinf(x), 1.0, x)))

    return reference


def _from_mode(pmf: Callable[[int], float], mode: int, u: float) -> float:
    """Return the value at which probabilities, from the mode up and down in turns, pass u."""
    total, k = 0.0, mode
    for step in range(1, 200):
        total += pmf(k)
        if u < total:
            break
        k = mode + (step + 1) // 2 * (1 if step % 2 else -1)
    return float(k)


@partial(np.vectorize, otypes=[float])
def _poisson_draw(rate: float, u: float) -> float:
    return _from_mode(lambda k: stats.poisson.pmf(k, rate), int(rate), u)


@partial(np.vectorize, otypes=[float])
def _binomial_draw(count: float, p: float, u: float) -> float:
    mode = min(int((count + 1) * p), int(count))
    return _from_mode(lambda k: stats.binom.pmf(k, count, p), mode, u)


def _public_name(family: str) -> str:
    name, _, kind = family.rpartition("_")
    return f"{name}_polynomial_{kind}"


REFERENCES: dict[str, Callable[..., Any]] = {
    "bessel_j0": on_floats(_with_limits(special.j0, 0.0, 0.0)),
    "bessel_j1": on_floats(_with_limits(special.j1, -0.0, 0.0)),
    "bessel_y0": on_floats(_with_limits(special.y0, np.nan, 0.0)),
    "bessel_y1": on_floats(_with_limits(special.y1, np.nan, 0.0)),
    "i0": on_floats(_with_limits(special.i0, np.inf, np.inf)),
    "i0e": on_floats(special.i0e),
    "i1": on_floats(_with_limits(special.i1, -np.inf, np.inf)),
    "i1e": on_floats(special.i1e),
    "modified_bessel_k0": on_floats(special.k0),
    "modified_bessel_k1": on_floats(special.k1),
    "scaled_modified_bessel_k0": on_floats(special.k0e),
    "scaled_modified_bessel_k1": on_floats(special.k1e),
    "spherical_bessel_j0": on_floats(lambda x: special.spherical_jn(0, np.abs(x))),
    "airy_ai": on_floats(_with_limits(lambda x: special.airy(x)[0], 0.0, 0.0)),
    # The derivative swings ever wider to the left.
    "airy_ai_slope": on_floats(_with_limits(lambda x: special.airy(x)[1], np.nan, 0.0)),
    "erfcx": on_floats(special.erfcx),
    "log_ndtr": on_floats(special.log_ndtr),
    "ndtri": on_floats(special.ndtri),
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "igamma_slope": _by_shape,
    "gamma_draw_slope": _gamma_draw_slope,
    "moved_gamma": lambda alpha, x: np.broadcast_arrays(alpha, x)[1],
    "poisson_draw": _poisson_draw,
    "binomial_draw": _binomial_draw,
    "von_mises_draw": lambda concentration, u: stats.vonmises.ppf(u, concentration),
    "zeta": _zeta,
    "multigammaln": np.vectorize(special.multigammaln),
    "orthogonal_polynomial": _polynomial,
    **{_public_name(family): reference for family, reference in POLYNOMIALS.items()},
}


def _degree_sample(s: Sampler) -> Any:
    yield Sample(s.real(2), 3)


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "multigammaln": lambda s: [Sample(s.positive(3, low=1.5), 3), Sample(s.positive(low=1.0), 1)],
    **{name: _degree_sample for name in REFERENCES if "_polynomial_" in name},
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "multigammaln": lambda s: [
        ErrorSample(s.positive(3), 0, error=ValueError, match="p must be at least 1.*0"),
        ErrorSample("text", 1, error=TypeError, match="x must be a tensor.*'text'"),
    ],
}
