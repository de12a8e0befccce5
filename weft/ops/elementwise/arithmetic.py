"""Sums, differences, products, quotients and signs."""

from __future__ import annotations

import numpy as np

from ...core.dtype import is_float
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.op import F, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from ._shared import real_samples, refuse_bool, without_derivative


@op(
    elementwise,
    promote="common",
    linear=("x", "y"),
    laws=("commutative",),
    total=True,
    exact=True,
    operator="__add__",
)
def add(x: Tensor, y: Tensor) -> Tensor:
    """Return x + y; alpha= (PyTorch's) multiplies y first.

    >>> import weft as wf
    >>> wf.add(wf.tensor([1.0, 2.0]), 10)
    tensor([11., 12.])
    """


@add.by_keywords()
def _(x, y, alpha):
    return F.add(x, _times_alpha("add", y, alpha))


def _times_alpha(name, y, alpha):
    is_number = isinstance(alpha, (int, float, np.number)) or getattr(alpha, "weak", False)
    if isinstance(alpha, bool) or not is_number:
        raise ArgumentTypeError(f"{name}: alpha must be a number. Received: {alpha!r:.60}")
    return y * alpha


add.partial_is("x", 1)
add.partial_is("y", 1)


add.lower(lambda b, x, y: x + y)


@add.samples
def _(s):
    yield from s.binary()
    yield Sample(s.integers(3), s.integers(2, 3), label="integers")
    yield Sample(s.real(3), 2, label="number")
    yield Sample(s.booleans(3), s.booleans(3), label="booleans")


@add.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(4), error=ValueError, match=r"\(3,\) and \(4,\)")
    yield ErrorSample(s.real(3), "text", error=TypeError, match="y must be a tensor")


@op(
    elementwise,
    promote="common",
    linear=("x", "y"),
    aliases=("subtract",),
    total=True,
    exact=True,
    operator="__sub__",
)
def sub(x: Tensor, y: Tensor) -> Tensor:
    """Return x - y. Unsigned integers wrap around; truth values are refused.

    alpha= (PyTorch's) multiplies y first.

    >>> import weft as wf
    >>> wf.sub(wf.tensor([1.0, 2.0]), 10)
    tensor([-9., -8.])
    """


@sub.by_keywords()
def _(x, y, alpha):
    return F.sub(x, _times_alpha("sub", y, alpha))


sub.infer(refuse_bool("cast them, e.g. x.to(wf.int64), or use logical_xor"))


sub.partial_is("x", 1)
sub.partial_is("y", -1)


sub.lower(lambda b, x, y: x - y)


@sub.samples
def _(s):
    yield from s.binary()
    yield Sample(s.integers(3), s.integers(2, 3), label="integers")
    yield Sample(s.real(3), 2, label="number")


@sub.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"\(2, 3\) and \(2,\)")
    yield ErrorSample(s.booleans(3), s.booleans(3), error=TypeError, match="dtype bool")


@op(
    elementwise,
    promote="common",
    multilinear=("x", "y"),
    aliases=("multiply",),
    laws=("commutative",),
    total=True,
    exact=True,
    operator="__mul__",
)
def mul(x: Tensor, y: Tensor) -> Tensor:
    """Return x * y.

    >>> import weft as wf
    >>> wf.mul(wf.tensor([1.0, 2.0]), wf.tensor([[2.0], [3.0]]))
    tensor([[2., 4.],
            [3., 6.]])
    """


mul.partial_is("x", "y")
mul.partial_is("y", "x")


mul.lower(lambda b, x, y: x * y)


@mul.samples
def _(s):
    yield from s.binary()
    yield Sample(s.integers(3), s.integers(2, 3), label="integers")
    yield Sample(s.real(3), -1.5, label="number")


@mul.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(2), error=ValueError, match=r"\(3,\) and \(2,\)")
    yield ErrorSample(s.real(3), {}, error=TypeError, match="y must be a tensor.*dict")


@op(
    elementwise,
    promote="float",
    aliases=("divide", "true_divide"),
    exact=True,
    operator="__truediv__",
)
def div(x: Tensor, y: Tensor) -> Tensor:
    """Return x / y in floating point; integers become the default float first.

    Division by zero follows IEEE 754: it gives an infinity, or NaN for 0 / 0. rounding_mode=
    (PyTorch's) "floor" is `floor_divide`, "trunc" rounds towards zero; both keep integers.

    >>> import weft as wf
    >>> wf.div(wf.tensor([1, 2]), 4)
    tensor([0.25, 0.5 ])
    """


@div.by_keywords()
def _(x, y, rounding_mode):
    if rounding_mode is None:
        return F.div(x, y)
    if rounding_mode == "floor":
        return F.floor_divide(x, y)
    if rounding_mode != "trunc":
        raise ArgumentError(
            f"div: rounding_mode must be None, 'floor' or 'trunc'. Received: {rounding_mode!r}"
        )
    down = F.floor_divide(x, y)
    if is_float(down.dtype):
        return F.trunc(F.div(x, y))
    inexact = F.not_equal(F.mul(down, y), x)
    return F.where(inexact & F.less(down, 0), down + 1, down)


@div.vjp("x")
def _(g, y):
    return g / y


@div.vjp("y")
def _(g, y, out):
    return -(g * out) / y


div.lower(lambda b, x, y: x / y)


@div.samples
def _(s):
    yield from s.binary(s.real, s.away)
    yield Sample(s.integers(3), s.integers(3, low=1), label="integers")
    yield Sample(s.real(3), 2, label="number")


@div.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(2, 4), error=ValueError, match=r"\(3,\) and \(2, 4\)")
    yield ErrorSample(None, s.real(3), error=TypeError, match="x must be a tensor.*None")


@op(
    elementwise,
    linear=("x",),
    aliases=("negative",),
    laws=("involution",),
    total=True,
    exact=True,
    operator="__neg__",
)
def neg(x: Tensor) -> Tensor:
    """Return -x. Unsigned integers wrap around; truth values are refused.

    >>> import weft as wf
    >>> wf.neg(wf.tensor([1.0, -2.0]))
    tensor([-1.,  2.])
    """


neg.infer(refuse_bool("use logical_not, ~x"))


neg.partial_is("x", -1)


neg.lower(lambda b, x: -x)


neg.samples(real_samples)


@neg.error_samples
def _(s):
    yield ErrorSample(s.booleans(3), error=TypeError, match="logical_not.*dtype bool")
    yield ErrorSample("text", error=TypeError, match="x must be a tensor.*text")


@op(elementwise, linear=("x",), identity=True, work="nothing", operator="__pos__")
def positive(x: Tensor) -> Tensor:
    """Return a copy of x; gradients flow through to x."""


@positive.eval  # nothing to look up: four fifths of the time for few elements
def _(x):
    return x.copy()


positive.partial_is("x", 1)


positive.lower(lambda b, x: x)


@positive.samples
def _(s):
    yield from s.unary()
    yield Sample(s.integers(3), label="integers")
    yield Sample(s.booleans(3), label="booleans")


@positive.error_samples
def _(s):
    yield ErrorSample({1, 2}, error=TypeError, match="x must be a tensor.*set")
    yield ErrorSample(["a"], error=TypeError, match="must hold numbers")


@op(
    elementwise,
    aliases=("absolute",),
    laws=("idempotent",),
    total=True,
    never_negative=True,
    exact=True,
    operator="__abs__",
    scalar=True,
)
def abs(x: Tensor) -> Tensor:
    """Return the absolute value of each element. The derivative at 0 is taken as 0.

    The most negative signed integer has no positive counterpart and stays as it is.

    >>> import weft as wf
    >>> wf.abs(wf.tensor([1.0, -2.0]))
    tensor([1., 2.])
    """


@abs.partial("x")
def _(x):
    return F.sign(x)


@abs.samples
def _(s):
    yield from s.unary(s.away)
    yield Sample(s.integers(3, low=-5), label="integers")
    yield Sample(np.array([0.0, -0.0, -np.inf, np.nan]), grad=0, label="special values")


@op(elementwise, laws=("idempotent",), scalar=True)
def sign(x: Tensor) -> Tensor:
    """Return -1, 0 or 1 by the sign of each element, NaN for NaN. The derivative is 0.

    >>> import weft as wf
    >>> wf.sign(wf.tensor([3.0, -0.5, 0.0]))
    tensor([ 1., -1.,  0.])
    """


sign.infer(refuse_bool("cast them, e.g. x.to(wf.int64)"))
without_derivative(sign)


@sign.samples
def _(s):
    yield from s.unary(s.away)
    yield Sample(s.integers(3, low=-5), label="integers")


@sign.error_samples
def _(s):
    yield ErrorSample(s.booleans(3), error=TypeError, match="dtype bool")
    yield ErrorSample({}, error=TypeError, match="x must be a tensor.*dict")
