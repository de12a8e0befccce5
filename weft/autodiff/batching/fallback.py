"""What vmap does with an operator that has no batching rule: one example after another."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ...core.batching import BatchedCall
from ...core.dispatch import group, run
from ...core.errors import ShapeError, UnknownSizeError, user_stacklevel
from ...core.op import F
from ...core.shape import TensorType, type_of
from ...core.tensor import constant

_warned: set[str] = set()


class SlowVmapWarning(UserWarning):
    """An operation inside vmap runs once for each example."""


def one_by_one(call: BatchedCall, *, quiet: bool = False) -> Any:
    """Run an operation for each example and stack the results; warn, once for each operator."""
    if not isinstance(call.size, int):
        raise UnknownSizeError(
            f"{call.op.name} has no batching rule and runs once for each example of vmap, but "
            f"their number, {call.size}, is not known until the graph runs"
        )
    if not quiet:
        _warn(call.op.name)
    if call.size == 0:
        return _nothing(call)
    rows = [run(call.op, example(call, i), call.attrs) for i in range(call.size)]
    if isinstance(rows[0], tuple):
        return tuple(_stacked(call, column) for column in zip(*rows, strict=True))
    return _stacked(call, rows)


def example(call: BatchedCall, i: int) -> tuple[Any, ...]:
    """Return the operands of one example."""
    pairs = zip(call.inputs, call.batched, strict=True)
    return tuple(x[i] if flag else x for x, flag in pairs)


def _stacked(call: BatchedCall, rows: Any) -> Any:
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        shown = " and ".join(map(str, sorted(shapes)[:2]))
        raise ShapeError(
            f"{call.op.name}: inside vmap the results of all examples must have one shape. "
            f"Received: {shown}"
        )
    return F.stack(list(rows))


def _nothing(call: BatchedCall) -> Any:
    """Return the results of no example at all, of the types that one would give."""
    types = [
        None if x is None else TensorType(x.shape[1:], x.dtype) if flag else type_of(x)
        for x, flag in zip(call.inputs, call.batched, strict=True)
    ]
    found = call.op.type_rule(group(call.op, types), call.attrs)
    if isinstance(found, TensorType):
        return _empty(found)
    return tuple(map(_empty, found))


def _empty(kind: TensorType) -> Any:
    sizes = (size if isinstance(size, int) else 0 for size in kind.shape)
    return constant(np.zeros((0, *sizes), kind.dtype))


def _warn(name: str) -> None:
    if name in _warned:
        return
    _warned.add(name)
    warnings.warn(
        f"vmap: {name} has no batching rule, so it runs once for each example",
        SlowVmapWarning,
        stacklevel=user_stacklevel(),
    )
