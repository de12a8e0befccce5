"""What several files of elementwise operators need: attribute checks and common rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtype import bool_, int64
from ...core.errors import ArgumentTypeError, DTypeError, WeftError
from ...core.op import F, Op
from ...core.samples import Sample, Sampler
from ...core.shape import TensorType, broadcast


def as_number(value: Any, what: str) -> int | float:
    """Return a numeric attribute as a Python number; an integer stays one."""
    if value.__class__ is float or value.__class__ is int:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise ArgumentTypeError(
        f"{what} must be a Python number. Received: {type(value).__name__} {value!r:.60}"
    )


def counted(x: TensorType) -> TensorType:
    """Return the type of a function that counts truth values as integers."""
    return TensorType(x.shape, int64 if x.dtype == bool_ else x.dtype)


def as_real(value: Any, what: str) -> float:
    """Return a numeric attribute as a Python float."""
    return float(as_number(value, what))


def named(error: WeftError, name: str, inner: str) -> WeftError:
    """Return an error of the operator `inner` as one of the function the user called."""
    return type(error)(f"{name}: {str(error).removeprefix(f'{inner}: ')}", **error.facts)


def without_derivative(record: Op) -> None:
    """Give every input of a piecewise constant operator the gradient zero."""
    for name in record.inputs:
        record.vjp(name)(_zeros)


def _zeros(g):
    return F.zeros_like(g)


def refuse_bool(hint: str) -> Any:
    """Return a shape rule for an operator that is not defined for truth values."""

    def rule(*types: TensorType) -> TensorType:
        dtype = types[0].dtype
        if dtype == bool_:
            raise DTypeError(f"truth values are not numbers here; {hint}. Received: dtype bool")
        return TensorType(broadcast(*(t.shape for t in types)), dtype)

    return rule


def real_samples(s: Sampler) -> Iterator[Sample]:
    """Yield numbers of both signs."""
    yield from s.unary()
    yield Sample(s.integers(3), label="integers")


def positive_samples(s: Sampler) -> Iterator[Sample]:
    """Yield numbers above zero."""
    yield from s.unary(s.positive)
    yield Sample(s.integers(3, low=1), label="integers")
