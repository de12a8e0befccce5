"""Making tensors of evenly spaced numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.dim import is_known, known_size, size_max
from ..core.dtype import DType, as_dtype, default_float, float64, int64, to_float
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.op import F
from ..core.operands import holds_floats, holds_tensors, nest_dtype, tensor_from
from ..core.shape import as_int, as_shape
from ..core.tensor import Tensor
from ._memory import check_allocation
from .creation import derived, new_leaf

__all__ = ["arange", "linspace", "logspace"]


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return the numbers from start up to, but without, stop, `step` apart.

    With one argument, arange(n) counts from 0 to n - 1. Integers give int64, a float among the
    arguments the default float, tensors of floats their dtype; gradients flow to start and step.

    >>> import weft as wf
    >>> wf.arange(3)
    tensor([0, 1, 2])
    >>> wf.arange(1.0, 2.0, 0.25)
    tensor([1.  , 1.25, 1.5 , 1.75])
    """
    first, last = (0, start) if stop is None else (start, stop)
    kinds = {first.__class__, last.__class__, step.__class__}
    if not kinds <= _PLAIN_NUMBERS:
        if not is_known((first, last)):
            return _range_when_run(first, last, step, dtype)
        if holds_floats((first, last, step)):
            return derived(_range_of_tensors(first, last, step, dtype), requires_grad, device)
        first, last, step = _numbers(first, last, step)
        kinds = {first.__class__, last.__class__, step.__class__}
    wanted = as_dtype(dtype) if dtype is not None else default_float() if float in kinds else int64
    check_allocation("arange", (_steps(first, last, step),), wanted)
    # Computed in float64 (or exactly) and rounded once, so that errors do not add up along the way.
    array = np.arange(first, last, step).astype(wanted, copy=False)
    return new_leaf(array, requires_grad, device)


_PLAIN_NUMBERS = frozenset((int, float))


def _numbers(start: Any, stop: Any, step: Any) -> list[Any]:
    named = (("start", start), ("stop", stop), ("step", step))
    return [_number(value, f"arange: {name}") for name, value in named]


def _range_of_tensors(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """Return a range that moves with its start and stretches with its step.

    How many elements there are follows from the values.
    """
    numbers = _numbers(start, stop, step)
    wanted = _float_of(dtype, start, stop, step)
    count = _steps(*numbers)
    check_allocation("arange", (count,), wanted)
    first, by = (tensor_from(v, "arange", float64) for v in (start, step))
    return F.cast(first + F.iota(count) * by, wanted)


def _range_when_run(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    """Return a range of a graph whose ends are known when it runs."""
    by = as_int(step, "arange: step with an unknown size")
    count = (stop - start + by - (1 if by > 0 else -1)) // by
    numbers = F.iota(size_max(count, 0)) * by + start
    return numbers if dtype is None else F.cast(numbers, as_dtype(dtype))


def _steps(start: float, stop: float, step: float) -> int:
    """Return how many elements a range has; raise if it never ends."""
    if step == 0:
        raise ArgumentError("arange: step must not be zero. Received: step=0")
    if not all(map(math.isfinite, (start, stop, step))):
        raise ArgumentError(
            f"arange: the range must be finite. Received: start={start}, stop={stop}, step={step}"
        )
    return max(0, math.ceil((stop - start) / step))


def linspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    endpoint: bool = True,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return `num` evenly spaced numbers from start to stop, stop included if `endpoint`.

    Where an end is a tensor its dtype decides and gradients flow to it; its own axes come last.

    >>> import weft as wf
    >>> wf.linspace(0, 1, 5)
    tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = _count("linspace", num)
    if holds_tensors((start, stop)):
        spaced = _between("linspace", start, stop, count, endpoint)
        return derived(F.cast(spaced, _float_of(dtype, start, stop)), requires_grad, device)
    return new_leaf(_spaced("linspace", start, stop, count, endpoint, dtype), requires_grad, device)


def logspace(
    start: float,
    stop: float,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Return `num` numbers from base**start to base**stop, evenly spaced in their logarithm.

    >>> import weft as wf
    >>> wf.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    count = _count("logspace", num)
    if holds_tensors((start, stop, base)):
        exponents = _between("logspace", start, stop, count, endpoint)
        spaced = F.pow(tensor_from(base, "logspace: base", float64), exponents)
        return derived(F.cast(spaced, _float_of(dtype, start, stop, base)), requires_grad, device)
    exponents = _spaced("logspace", start, stop, count, endpoint, float64)
    wanted = default_float() if dtype is None else as_dtype(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.power(float(_number(base, "logspace: base")), exponents).astype(wanted)
    return new_leaf(array, requires_grad, device)


def _count(what: str, num: Any) -> int:
    (count,) = as_shape(num if np.ndim(num) == 0 else as_int(num, f"{what}: num"), f"{what}: num")
    return known_size(count, f"{what}: the distance of the elements")


def _spaced(
    what: str, start: Any, stop: Any, count: int, endpoint: bool, dtype: Any
) -> np.ndarray[Any, Any]:
    wanted = default_float() if dtype is None else as_dtype(dtype)
    check_allocation(what, (count,), wanted)
    ends = _number(start, f"{what}: start"), _number(stop, f"{what}: stop")
    with np.errstate(over="ignore", invalid="ignore"):
        return np.linspace(*ends, count, endpoint=endpoint).astype(wanted)


def _between(what: str, start: Any, stop: Any, count: int, endpoint: bool) -> Any:
    """Return evenly spaced values between tensors, in float64: rounded once, as numbers are."""
    start, stop = (
        tensor_from(value, f"{what}: {name}", float64)
        for name, value in (("start", start), ("stop", stop))
    )
    gaps = count - 1 if endpoint else count
    place = F.reshape(F.iota(count), (count, *(1,) * max(start.ndim, stop.ndim)))
    spaced = start + place * ((stop - start) / max(gaps, 1))
    return F.where(F.equal(place, gaps), stop, spaced) if endpoint and gaps > 0 else spaced


def _float_of(dtype: Any, *values: Any) -> DType:
    """Return the dtype of a result: the one asked for, or the float in which the values meet."""
    return to_float(nest_dtype(values, "values")) if dtype is None else as_dtype(dtype)


def _number(value: Any, what: str) -> int | float:
    """Return a Python, NumPy or 0-d tensor number as a Python number."""
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise ArgumentTypeError(
        f"{what} must be a number. Received: {type(value).__name__} {value!r:.60}"
    )
