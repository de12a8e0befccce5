"""Sentences of PyTorch's errors that several functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def dimension_out_of_range(dim: int, count: int) -> IndexError:
    """Return the error for a dimension that a tensor of so many does not have."""
    most = max(count, 1)
    return IndexError(
        f"Dimension out of range (expected to be in range of [{-most}, {most - 1}], but got {dim})"
    )


def expanded_size(target: Sequence[Any], own: Sequence[Any]) -> RuntimeError:
    """Return the error for a tensor that cannot be repeated to the sizes wanted of it."""
    added = len(target) - len(own)
    axis = next(i for i, n in enumerate(own) if n not in (1, target[i + added])) + added
    return RuntimeError(
        f"The expanded size of the tensor ({target[axis]}) must match the existing size "
        f"({own[axis - added]}) at non-singleton dimension {axis}.  Target sizes: {list(target)}.  "
        f"Tensor sizes: {list(own)}"
    )


def unequal_sizes(shapes: Sequence[Sequence[Any]]) -> RuntimeError:
    """Return the error for tensors that do not broadcast: of the first two that differ."""
    together: list[Any] = []
    for shape in shapes:
        ndim = max(len(together), len(shape))
        left, right = ([1] * (ndim - len(s)) + list(s) for s in (together, shape))
        for axis in reversed(range(ndim)):
            a, b = left[axis], right[axis]
            if a != b and 1 not in (a, b):
                return RuntimeError(
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at "
                    f"non-singleton dimension {axis}"
                )
        together = [b if a == 1 else a for a, b in zip(left, right, strict=True)]
    return RuntimeError(f"shapes {list(map(list, shapes))} do not broadcast")
