"""Orthogonal polynomials: one operator over all families, with derivatives of any order."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ...core.op import F, composite, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import as_int
from ...core.special.polynomials import FAMILIES, polynomial
from ...core.tensor import Tensor


@op(elementwise, promote="float", method=False)
def orthogonal_polynomial(x: Tensor, n: Tensor, family: str, order: int = 0) -> Tensor:
    """Return the order-th derivative of a family's polynomial of degree n, 0 for n < 0."""


@orthogonal_polynomial.canon
def _(x, n, family, order):
    if family not in FAMILIES:
        raise ArgumentError(f"family must be one of {', '.join(FAMILIES)}. Received: {family!r}")
    return family, as_int(order, "order")


@orthogonal_polynomial.eval
def _(x, n, family, order):
    return polynomial(x, n, family, order)


@orthogonal_polynomial.partial("x")
def _(x, n, family, order):
    return F.orthogonal_polynomial(x, n, family, order + 1)


@orthogonal_polynomial.partial("n")
def _(x):
    return F.zeros_like(x)  # a degree is a whole number: results are constant between two


@orthogonal_polynomial.samples
def _(s):
    for family in FAMILIES:
        yield Sample(s.real(2, low=-0.9, high=0.9), s.integers(2, low=0, high=6), family)
    yield Sample(s.real(2, 1), s.integers(3, low=-1, high=5), "legendre_p", label="broadcast")
    yield Sample(s.real(0), s.integers(0), "hermite_h", label="empty")
    yield Sample(s.real(), s.integers(), "chebyshev_u", 2, grad=0, label="derivative")


@orthogonal_polynomial.error_samples
def _(s):
    yield ErrorSample(s.real(2), s.integers(2), "bessel", error=ValueError, match="'bessel'")


@composite()
def chebyshev_polynomial_t(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the first kind of degree n.

    >>> import weft as wf
    >>> wf.special.chebyshev_polynomial_t(wf.tensor([0.5, 1.0]), 2)
    tensor([-0.5,  1. ])
    """
    return F.orthogonal_polynomial(x, n, "chebyshev_t")


@composite()
def chebyshev_polynomial_u(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the second kind of degree n."""
    return F.orthogonal_polynomial(x, n, "chebyshev_u")


@composite()
def chebyshev_polynomial_v(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the third kind of degree n."""
    return F.orthogonal_polynomial(x, n, "chebyshev_v")


@composite()
def chebyshev_polynomial_w(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the fourth kind of degree n."""
    return F.orthogonal_polynomial(x, n, "chebyshev_w")


@composite()
def shifted_chebyshev_polynomial_t(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the first kind of degree n at 2 * x - 1."""
    return F.orthogonal_polynomial(x, n, "shifted_chebyshev_t")


@composite()
def shifted_chebyshev_polynomial_u(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the second kind of degree n at 2 * x - 1."""
    return F.orthogonal_polynomial(x, n, "shifted_chebyshev_u")


@composite()
def shifted_chebyshev_polynomial_v(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the third kind of degree n at 2 * x - 1."""
    return F.orthogonal_polynomial(x, n, "shifted_chebyshev_v")


@composite()
def shifted_chebyshev_polynomial_w(x: Any, n: Any) -> Any:
    """Return the Chebyshev polynomial of the fourth kind of degree n at 2 * x - 1."""
    return F.orthogonal_polynomial(x, n, "shifted_chebyshev_w")


@composite()
def hermite_polynomial_h(x: Any, n: Any) -> Any:
    """Return the physicist's Hermite polynomial of degree n."""
    return F.orthogonal_polynomial(x, n, "hermite_h")


@composite()
def hermite_polynomial_he(x: Any, n: Any) -> Any:
    """Return the probabilist's Hermite polynomial of degree n."""
    return F.orthogonal_polynomial(x, n, "hermite_he")


@composite()
def laguerre_polynomial_l(x: Any, n: Any) -> Any:
    """Return the Laguerre polynomial of degree n."""
    return F.orthogonal_polynomial(x, n, "laguerre_l")


@composite()
def legendre_polynomial_p(x: Any, n: Any) -> Any:
    """Return the Legendre polynomial of degree n."""
    return F.orthogonal_polynomial(x, n, "legendre_p")
