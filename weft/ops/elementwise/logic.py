"""Logical operators on truth values and bitwise operators on integers. They have no derivative."""

from __future__ import annotations

import numpy as np

from ...core.dtype import bool_, is_integer
from ...core.errors import DTypeError
from ...core.op import elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, broadcast
from ...core.tensor import Tensor


@op(elementwise, result="bool", laws=("commutative", "associative", "idempotent"))
def logical_and(x: Tensor, y: Tensor) -> Tensor:
    """Return whether both elements hold; numbers other than 0 (NaN too) count as true."""


@op(elementwise, result="bool", laws=("commutative", "associative", "idempotent"))
def logical_or(x: Tensor, y: Tensor) -> Tensor:
    """Return whether at least one element holds; numbers other than 0 count as true."""


@op(elementwise, result="bool", laws=("commutative",))
def logical_xor(x: Tensor, y: Tensor) -> Tensor:
    """Return whether exactly one element holds; numbers other than 0 count as true."""


@op(elementwise, result="bool", laws=("involution",))
def logical_not(x: Tensor) -> Tensor:
    """Return whether an element does not hold; numbers other than 0 count as true."""


@logical_not.spelling
def _(types):
    return "not {x}" if types[0].shape == () and types[0].dtype.kind == "b" else None


def _logical_samples(s):
    yield from s.binary(s.booleans)
    yield Sample(s.integers(2, 3), s.real(3), grad=0, label="numbers")
    yield Sample(np.array([0.0, -0.0, np.nan]), True, grad=0, label="special values")


for _record in (logical_and, logical_or, logical_xor):
    _record.samples(_logical_samples)

logical_and.lower(lambda b, x, y: b.truth(x) & b.truth(y))
logical_or.lower(lambda b, x, y: b.truth(x) | b.truth(y))
logical_xor.lower(lambda b, x, y: b.truth(x) ^ b.truth(y))

logical_not.lower(lambda b, x: ~b.truth(x))


@logical_not.samples
def _(s):
    yield from s.unary(s.booleans)
    yield Sample(s.integers(3, high=2), label="integers")
    yield Sample(np.array([0.0, np.nan, 2.0]), grad=0, label="floats")


# -- bits -----------------------------------------------------------------------------------------


@op(
    elementwise,
    promote="common",
    laws=("commutative", "associative", "idempotent"),
    exact=True,
    operator="__and__",
)
def bitwise_and(x: Tensor, y: Tensor) -> Tensor:
    """Return x & y on the bits of integers, or on truth values.

    >>> import weft as wf
    >>> wf.bitwise_and(wf.tensor([6, 5]), 3)
    tensor([2, 1])
    """


@op(
    elementwise,
    promote="common",
    laws=("commutative", "associative", "idempotent"),
    exact=True,
    operator="__or__",
)
def bitwise_or(x: Tensor, y: Tensor) -> Tensor:
    """Return x | y on the bits of integers, or on truth values."""


@op(elementwise, promote="common", laws=("commutative",), exact=True, operator="__xor__")
def bitwise_xor(x: Tensor, y: Tensor) -> Tensor:
    """Return x ^ y on the bits of integers, or on truth values."""


@op(
    elementwise,
    aliases=("bitwise_invert", "invert"),
    laws=("involution",),
    exact=True,
    operator="__invert__",
)
def bitwise_not(x: Tensor) -> Tensor:
    """Return ~x: every bit of an integer flipped, or the opposite truth value."""


@op(
    elementwise,
    promote="common",
    aliases=("left_shift",),
    operator="__lshift__",
    public={"wf": ("bitwise_left_shift",)},
)
def bitwise_left_shift(x: Tensor, y: Tensor) -> Tensor:
    """Return x << y. Shifting by a negative number, or by all bits or more, gives 0."""


@op(
    elementwise,
    promote="common",
    aliases=("right_shift",),
    operator="__rshift__",
    public={"wf": ("bitwise_right_shift",)},
)
def bitwise_right_shift(x: Tensor, y: Tensor) -> Tensor:
    """Return x >> y, which keeps the sign: by all bits or more (or fewer than 0) gives 0 or -1."""


def _bits_type(*types: TensorType) -> TensorType:
    return _checked_type(types, takes_bool=True)


def _shift_type(*types: TensorType) -> TensorType:
    return _checked_type(types, takes_bool=False)


def _checked_type(types: tuple[TensorType, ...], *, takes_bool: bool) -> TensorType:
    """Return the type of the result; raise unless the operands are made of bits."""
    dtype = types[0].dtype
    if not is_integer(dtype) and not (takes_bool and dtype == bool_):
        allowed = "integers or truth values" if takes_bool else "integers"
        raise DTypeError(
            f"bits are defined for {allowed} only; cast the operands first. Received: dtype {dtype}"
        )
    return TensorType(broadcast(*(t.shape for t in types)), dtype)


def _refuse_bool(x, y):
    """Raise for truth values, which NumPy would shift as int8."""
    if getattr(x, "dtype", None) == bool_ and getattr(y, "dtype", None) == bool_:
        raise TypeError  # explained by the shape rule
    return ()


def _integer_samples(s):
    yield from s.binary(s.integers)
    signed = s.integers(2, 3, low=-9, high=9, dtype=np.int8)
    yield Sample(signed, s.integers(3, dtype=np.int8), label="int8")
    yield Sample(s.integers(3), 3, label="number")


def _bit_samples(s):
    yield from _integer_samples(s)
    yield Sample(s.booleans(2, 3), s.booleans(3), label="booleans")


def _float_errors(s):
    yield ErrorSample(s.real(3), s.integers(3), error=TypeError, match="Received: dtype float64")
    yield ErrorSample(s.integers(2), s.integers(3), error=ValueError, match=r"\(2,\) and \(3,\)")


def _shift_errors(s):
    yield from _float_errors(s)
    yield ErrorSample(s.booleans(3), s.booleans(3), error=TypeError, match="Received: dtype bool")


for _record in (bitwise_and, bitwise_or, bitwise_xor):
    _record.infer(_bits_type)
    _record.samples(_bit_samples)
    _record.error_samples(_float_errors)
for _record in (bitwise_left_shift, bitwise_right_shift):
    _record.canon(_refuse_bool)
    _record.infer(_shift_type)
    _record.samples(_integer_samples)
    _record.error_samples(_shift_errors)

bitwise_not.infer(_bits_type)


bitwise_not.lower(lambda b, x: ~x)


@bitwise_not.samples
def _(s):
    yield from s.unary(s.integers)
    yield Sample(s.booleans(3), label="booleans")
    yield Sample(s.integers(3, dtype=np.uint8), label="uint8")


@bitwise_not.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=TypeError, match="Received: dtype float64")


bitwise_and.lower(lambda b, x, y: x & y)
bitwise_or.lower(lambda b, x, y: x | y)
bitwise_xor.lower(lambda b, x, y: x ^ y)
bitwise_left_shift.lower(lambda b, x, y: b.shift_left(x, y))
bitwise_right_shift.lower(lambda b, x, y: b.shift_right(x, y))
