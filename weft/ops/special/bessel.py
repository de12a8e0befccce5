"""The Bessel functions of order 0 and 1, and the modified ones: each other's derivatives."""

from __future__ import annotations

from ...core.op import F, elementwise, op
from ...core.special import bessel
from ...core.tensor import Tensor
from .._operands import constant
from .._traced import in_operators
from ._shared import few_samples


@op(elementwise, promote="float", method=False, public=True)
def bessel_j0(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 0.

    >>> import weft as wf
    >>> wf.special.bessel_j0(wf.tensor(2.5))
    tensor(-0.0484)
    """


bessel_j0.eval(bessel.j0)


@bessel_j0.partial("x")
def _(x):
    return -F.bessel_j1(x)


@op(elementwise, promote="float", method=False, public=True)
def bessel_j1(x: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 1."""


bessel_j1.eval(bessel.j1)


@bessel_j1.partial("x")
def _(x, out):
    return F.bessel_j0(x) - _over(out, x, 0.5)


@op(elementwise, promote="float", method=False, public=True)
def bessel_y0(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 0: -inf at 0 and NaN below."""


bessel_y0.eval(bessel.y0)


@bessel_y0.partial("x")
def _(x):
    return -F.bessel_y1(x)


@op(elementwise, promote="float", method=False, public=True)
def bessel_y1(x: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 1: -inf at 0 and NaN below."""


bessel_y1.eval(bessel.y1)


@bessel_y1.partial("x")
def _(x, out):
    return F.bessel_y0(x) - out / x


@op(elementwise, promote="float", method=False, aliases=("modified_bessel_i0",), public=True)
def i0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    >>> import weft as wf
    >>> wf.special.i0(wf.tensor([0.0, 2.0]))
    tensor([1.  , 2.28])
    """


i0.eval(bessel.i0)


@i0.partial("x")
def _(x):
    return F.i1(x)


@op(elementwise, promote="float", method=False, aliases=("modified_bessel_i1",), public=True)
def i1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1."""


i1.eval(bessel.i1)


@i1.partial("x")
def _(x, out):
    return F.i0(x) - _over(out, x, 0.5)


@op(elementwise, promote="float", method=False, public=True)
def i0e(x: Tensor) -> Tensor:
    """Return i0(x) * exp(-abs(x)), which does not overflow."""


i0e.eval(bessel.i0e)


@i0e.partial("x")
def _(x, out):
    return F.i1e(x) - F.sign(x) * out


@op(elementwise, promote="float", method=False, public=True)
def i1e(x: Tensor) -> Tensor:
    """Return i1(x) * exp(-abs(x)), which does not overflow."""


i1e.eval(bessel.i1e)


@i1e.partial("x")
def _(x, out):
    return F.i0e(x) - F.sign(x) * out - _over(out, x, 0.5)


@op(elementwise, promote="float", method=False, public=True)
def modified_bessel_k0(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0: inf at 0, NaN below."""


modified_bessel_k0.eval(bessel.k0)


@modified_bessel_k0.partial("x")
def _(x):
    return -F.modified_bessel_k1(x)


@op(elementwise, promote="float", method=False, public=True)
def modified_bessel_k1(x: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1: inf at 0, NaN below."""


modified_bessel_k1.eval(bessel.k1)


@modified_bessel_k1.partial("x")
def _(x, out):
    return -F.modified_bessel_k0(x) - out / x


@op(elementwise, promote="float", method=False, public=True)
def scaled_modified_bessel_k0(x: Tensor) -> Tensor:
    """Return modified_bessel_k0(x) * exp(x), which does not underflow."""


scaled_modified_bessel_k0.eval(bessel.k0e)


@scaled_modified_bessel_k0.partial("x")
def _(x, out):
    return out - F.scaled_modified_bessel_k1(x)


@op(elementwise, promote="float", method=False, public=True)
def scaled_modified_bessel_k1(x: Tensor) -> Tensor:
    """Return modified_bessel_k1(x) * exp(x), which does not underflow."""


scaled_modified_bessel_k1.eval(bessel.k1e)


@scaled_modified_bessel_k1.partial("x")
def _(x, out):
    return out - F.scaled_modified_bessel_k0(x) - out / x


@op(elementwise, promote="float", method=False, public=True)
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """Return sin(x) / x, which is 1 at 0."""


@spherical_bessel_j0.lower
def _(b, x):
    at_infinity = b.select(b.eq(b.abs(x), float("inf")), 0.0, b.sin(x) / x)
    return b.select(b.eq(x, 0.0), 1.0, at_infinity)


@spherical_bessel_j0.partial("x")
def _(x, out):
    # Near 0 the difference of cos(x) and sin(x) / x cancels: its series instead.
    small = F.abs(x) < 0.01
    square = x * x
    series = x * (square * constant(1 / 30, x) - constant(1 / 3, x))
    away = F.where(small, F.ones_like(x), x)
    return F.where(small, series, (F.cos(away) - out) / away)


in_operators(bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i1, i0e, i1e)
in_operators(modified_bessel_k0, modified_bessel_k1)
in_operators(scaled_modified_bessel_k0, scaled_modified_bessel_k1)


def _over(y, x, at_zero):
    """Return y / x, whose limit at 0 is given."""
    zero = x == 0
    limit = F.full_like(y, at_zero)
    return F.where(zero, limit, y / F.where(zero, F.ones_like(x), x))


for _record, _low in (
    (bessel_j0, -6.0),
    (bessel_j1, -6.0),
    (bessel_y0, 0.5),
    (bessel_y1, 0.5),
    (i0, -3.0),
    (i1, -3.0),
    (i0e, 0.2),
    (i1e, 0.2),
    (modified_bessel_k0, 0.5),
    (modified_bessel_k1, 0.5),
    (scaled_modified_bessel_k0, 0.5),
    (scaled_modified_bessel_k1, 0.5),
    (spherical_bessel_j0, -3.0),
):
    few_samples(_record, low=_low, high=4.0)
