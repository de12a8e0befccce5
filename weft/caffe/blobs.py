"""BlobProtos and arrays: old ones say num, channels, height and width, new ones a shape."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import CaffemodelError
from .message import BlobProto, Message

Array: TypeAlias = NDArray[Any]
OLD = ("num", "channels", "height", "width")


def blob_shape(blob: Message) -> tuple[int, ...]:
    """Return the shape that a BlobProto says."""
    if any(blob.has(name) for name in OLD):
        return tuple(getattr(blob, name) for name in OLD)
    return tuple(blob.shape.dim)


def blob_array(blob: Message, where: str = "blob", *, diff: bool = False) -> Array:
    """Return the numbers of a BlobProto in its shape.

    >>> made = blob_array(array_blob(np.ones((2, 1))))
    >>> made.shape
    (2, 1)
    """
    single, double = ("diff", "double_diff") if diff else ("data", "double_data")
    numbers = getattr(blob, double if blob.has(double) else single).array
    shape = blob_shape(blob)
    if min(shape, default=0) < 0 or math.prod(shape) != numbers.size:
        raise CaffemodelError(
            f"{where}: a blob of shape {shape} has {numbers.size} numbers instead of "
            f"{math.prod(shape)}"
        )
    return numbers.reshape(shape)


def array_blob(array: Any, diff: Any = None) -> Message:
    """Return the BlobProto of an array."""
    values = np.asarray(array)
    made = BlobProto(shape={"dim": [int(n) for n in values.shape]})
    made.shape.touch()
    double = values.dtype == np.float64
    (made.double_data if double else made.data).extend(values)
    if diff is not None:
        (made.double_diff if double else made.diff).extend(np.asarray(diff))
    return made
