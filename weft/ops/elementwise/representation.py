"""Numbers by their bits and factors: frexp, ldexp, nextafter, gcd and lcm; float_power."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import float16, float64, int32, int64, is_integer
from ...core.errors import DTypeError
from ...core.op import F, composite, elementwise, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, broadcast
from ...core.tensor import Tensor
from .._operands import operand


@op(general, promote="float", outputs=2, public=("wf",))
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mantissas in [0.5, 1) and exponents (int32) with x = mantissa * 2**exponent.

    >>> import weft as wf
    >>> wf.frexp(wf.tensor([3.0, -0.25]))
    (tensor([ 0.75, -0.5 ]), tensor([ 2, -1], dtype=int32))
    """


@frexp.infer
def _(x):
    return TensorType(x.shape, x.dtype), TensorType(x.shape, int32)


@frexp.eval
def _(x):
    mantissa, exponent = np.frexp(x if x.dtype.kind == "f" else x.astype(np.float32))
    return mantissa.astype(x.dtype, copy=False), np.asarray(exponent, np.int32)


@frexp.place
def _(b, x):
    here = x.here()
    wide, mantissa_bits, bias = (
        (int64, 52, 1023) if here.dtype.itemsize == int64.itemsize else (int32, 23, 127)
    )
    full, least = (1 << (wide.itemsize * 8 - 1 - mantissa_bits)) - 1, 2.0 ** (1 - bias)
    lift = mantissa_bits + 2
    small = b.abs(here) < least  # too small for an exponent of its own
    bits = b.bits(b.select(small, here * 2.0**lift, here), wide)
    field = b.shift_right(bits, b.constant(mantissa_bits, wide)) & b.constant(full, wide)
    halves = (bits & b.constant(~(full << mantissa_bits), wide)) | b.constant(
        (bias - 1) << mantissa_bits, wide
    )
    special = b.eq(here, 0.0) | b.eq(field, full)
    exponent = field - b.select(small, bias - 1 + lift, b.constant(bias - 1, wide))
    mantissa = b.select(special, here, b.bits(halves, here.dtype))
    return mantissa, b.select(special, 0, b.cast(exponent, int32))


@frexp.vjp("x")
def _(g, out):
    mantissa, exponent = g[0], out[1]
    return mantissa * F.exp2(F.cast(-exponent, mantissa.dtype))


@frexp.batch
def _(x):
    return F.frexp(x)


@frexp.samples
def _(s):
    yield Sample(s.away(2, 3, points=(0.0, 0.5, 1.0, -0.5, -1.0), margin=0.02))
    yield Sample(np.array([0.0, 1024.0, 3e-310, np.inf]), grad=0, label="special values")
    yield Sample(s.real(0))


@composite(method=True)
def ldexp(x: Any, n: Any) -> Any:
    """Return x * 2**n.

    >>> import weft as wf
    >>> wf.ldexp(wf.tensor([1.0, 3.0]), wf.tensor([4, -1]))
    tensor([16. ,  1.5])
    """
    x, n = operand("ldexp", "x", x), operand("ldexp", "n", n)
    dtype = x.dtype if x.dtype.kind == "f" else F.true_divide(x, 1).dtype
    return x * F.exp2(n if n.dtype.kind == "f" else F.cast(n, dtype))


@op(elementwise, promote="float")
def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """Return the floating-point number after x in the direction of y, which moves with x.

    >>> import weft as wf
    >>> float(wf.nextafter(wf.tensor(1.0), wf.tensor(2.0))) > 1
    True
    """


nextafter.eval(np.nextafter)


@nextafter.place
def _(b, x, y):
    if x.dtype == float16:  # computed in float32, where the next number is another
        return None
    start, end = x.here(), y.here()
    word = int64 if x.dtype.itemsize == int64.itemsize else int32
    outwards = b.eq(b.cast(end > start, word), b.cast(start > 0.0, word))
    step = b.select(outwards, 1, b.constant(-1, word))
    moved = b.bits(b.bits(start, word) + step, x.dtype)
    least = b.copysign(b.bits(b.constant(1, word), x.dtype), end)
    found = b.select(b.eq(start, end), end, b.select(b.eq(start, 0.0), least, moved))
    return b.select(b.is_nan(start) | b.is_nan(end), math.nan, found)


@nextafter.partial("x")
def _(x, y):
    return F.cast(F.not_equal(x, y), x.dtype)


@nextafter.partial("y")
def _(x, y):
    return F.cast(F.equal(x, y), y.dtype)


@nextafter.samples
def _(s):
    yield Sample(s.real(2, 1), s.real(3))
    yield Sample(np.array([1.0, 0.0]), np.array([1.0, -1.0]), grad=0, label="edges")


@op(elementwise, promote="common", laws=("commutative", "associative"))
def gcd(x: Tensor, y: Tensor) -> Tensor:
    """Return the greatest common divisor of integers; that of 0 and 0 is 0.

    >>> import weft as wf
    >>> wf.gcd(wf.tensor([12, 7, 0]), 18)
    tensor([ 6,  1, 18])
    """


@op(elementwise, promote="common", laws=("commutative", "associative"))
def lcm(x: Tensor, y: Tensor) -> Tensor:
    """Return the least common multiple of integers, never negative.

    >>> import weft as wf
    >>> wf.lcm(wf.tensor([4, 0]), 6)
    tensor([12,  0])
    """


def _integers(*types: TensorType) -> TensorType:
    dtype = types[0].dtype
    if not is_integer(dtype):
        raise DTypeError(f"both operands must hold integers. Received: dtype {dtype}")
    return TensorType(broadcast(*(t.shape for t in types)), dtype)


def _integer_samples(s):
    yield Sample(s.integers(2, 1, low=-9, high=9), s.integers(3, low=-9, high=9))
    yield Sample(s.integers(3, dtype=np.int32), 6, label="number")
    yield Sample(s.integers(0), s.integers(0))


def _integer_errors(s):
    yield ErrorSample(s.real(3), s.integers(3), error=TypeError, match="integers.*float64")


@gcd.expand
def _(x, y):
    a, b = F.abs(x), F.abs(y)
    for _ in range(math.ceil(_STEPS_PER_BIT * 8 * x.dtype.itemsize) + 1):
        done = b == 0
        a, b = F.where(done, a, b), F.where(done, b, F.fmod(a, F.where(done, F.ones_like(b), b)))
    return a


_STEPS_PER_BIT = 1 / math.log2((1 + math.sqrt(5)) / 2)  # of Euclid's algorithm, at most (Lame)


@lcm.expand
def _(x, y):
    divisor = F.gcd(x, y)
    none = divisor == 0
    return F.where(none, divisor, F.abs(F.floor_divide(x, F.where(none, 1, divisor)) * y))


for _record, _kernel in ((gcd, np.gcd), (lcm, np.lcm)):
    _record.infer(_integers)
    _record.eval(_kernel)
    _record.samples(_integer_samples)
    _record.error_samples(_integer_errors)


@composite(method=True)
def float_power(x: Any, y: Any) -> Any:
    """Return x**y computed in float64, whatever the dtypes are.

    >>> import weft as wf
    >>> wf.float_power(wf.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=float64)
    """
    x, y = operand("float_power", "x", x), operand("float_power", "y", y)
    return F.pow(F.cast(x, float64), F.cast(y, float64))
