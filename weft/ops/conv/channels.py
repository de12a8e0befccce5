"""Batches of convolutions, as channels of one.

What only one operand has a batch of becomes part of its examples or of its channels; if both have
one, each example is a group of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.batching import BatchedCall, fold, unfold
from ...core.op import F


def batch_by_weight(call: BatchedCall, widened: Callable[[Any, int], Any]) -> Any:
    """Run a convolution or its adjoint in x, `op(x, weight, ..., groups)`, on a batch.

    `widened(weight, groups)` is one weight that holds those of all examples.
    """
    (x, weight), (*settings, groups) = call.inputs, call.attrs
    if not call.batched[1]:
        return unfold(call.op(fold(x), weight, *call.attrs), call.size)
    if not call.batched[0]:
        found = call.op(x, widened(weight, groups), *call.attrs)
        return from_channels(found, 1, groups, call.size)
    found = call.op(beside(x), fold(weight), *settings, groups * call.size)
    return apart(found, 1, call.size)


def beside(x: Any) -> Any:
    """Return a batch (B, N, C, ...) with the channels of all examples side by side."""
    return merged(F.moveaxis(x, 0, 1), 1)


def apart(x: Any, axis: int, examples: Any) -> Any:
    """Return a batch again whose channels stand side by side along an axis."""
    return F.moveaxis(parted(x, axis, examples), axis, 0)


def into_channels(x: Any, axis: int, groups: int) -> Any:
    """Return a batch whose examples stand side by side within each group of channels."""
    moved = F.moveaxis(parted(x, axis, groups), 0, axis)  # (..., groups, B, C/groups, ...)
    return merged(merged(moved, axis), axis - 1)


def from_channels(x: Any, axis: int, groups: int, examples: Any) -> Any:
    """Return a batch again whose examples stand side by side within each group of channels."""
    split = parted(parted(x, axis, groups), axis + 1, examples)
    return merged(F.moveaxis(split, axis + 1, 0), axis + 1)


def merged(x: Any, axis: int) -> Any:
    """Return x with an axis and the next made into one."""
    return F.reshape(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def parted(x: Any, axis: int, count: Any) -> Any:
    """Return x with an axis split into `count` parts."""
    size = x.shape[axis] // count if count != 0 else 0
    return F.reshape(x, (*x.shape[:axis], count, size, *x.shape[axis + 1 :]))
