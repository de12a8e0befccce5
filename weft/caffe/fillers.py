"""Fillers: how the blobs of layers begin, by the names that FillerParameter gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.dtype import float32
from ..ops.random.draw import normal, rand, uniform
from .errors import CaffeError
from .message import Message

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


def fill(filler: Message, shape: Shape) -> Array:
    """Return an array that a filler made, with the random numbers of `wf.manual_seed`.

    >>> from weft.caffe.message import FillerParameter
    >>> fill(FillerParameter(value=2), (3,)).tolist()
    [2.0, 2.0, 2.0]
    """
    made = FILLERS.get(filler.type)
    if made is None:
        known = ", ".join(sorted(FILLERS))
        raise CaffeError(f"Unknown filler name: {filler.type!r}; there are {known}")
    if 0 in shape:
        return np.zeros(shape, np.float32)
    return np.ascontiguousarray(made(filler, shape), np.float32).reshape(shape)


def _constant(filler: Message, shape: Shape) -> Array:
    return np.full(shape, filler.value, np.float32)


def _uniform(filler: Message, shape: Shape) -> Array:
    return _between(filler.min, filler.max, shape)


def _between(low: float, high: float, shape: Shape) -> Array:
    if not low <= high:
        raise CaffeError(f"uniform filler: min must not exceed max. Received: {low} and {high}")
    return uniform(low, high, shape, dtype=float32).numpy()


def _gaussian(filler: Message, shape: Shape) -> Array:
    """Draw normal numbers; with `sparse`, so many for each input stay on average."""
    drawn = _normal(filler.mean, filler.std, shape)
    if filler.sparse < 0:
        return drawn
    kept = rand(shape, dtype=float32).numpy() < filler.sparse / shape[0]
    return np.where(kept, drawn, np.float32(0))


def _normal(mean: float, std: float, shape: Shape) -> Array:
    if not std >= 0:
        raise CaffeError(f"gaussian filler: std must not be negative. Received: {std}")
    return normal(mean, std, shape, dtype=float32).numpy()


def _fan(filler: Message, shape: Shape) -> float:
    count = math.prod(shape)
    fan_in = count / shape[0] if shape else 1
    fan_out = count / shape[1] if len(shape) > 1 else count
    kinds = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "AVERAGE": (fan_in + fan_out) / 2}
    return kinds[filler.which("variance_norm")]


def _xavier(filler: Message, shape: Shape) -> Array:
    scale = math.sqrt(3 / _fan(filler, shape))
    return _between(-scale, scale, shape)


def _msra(filler: Message, shape: Shape) -> Array:
    return _normal(0.0, math.sqrt(2 / _fan(filler, shape)), shape)


def _positive_unitball(filler: Message, shape: Shape) -> Array:
    """Draw from [0, 1) and divide each row, so that it sums to 1."""
    rows = rand(shape, dtype=float32).numpy().reshape(shape[0] if shape else 1, -1)
    return rows / rows.sum(1, keepdims=True)


def _bilinear(filler: Message, shape: Shape) -> Array:
    """Return filters with which a deconvolution interpolates."""
    if len(shape) != 4 or shape[2] != shape[3]:
        raise CaffeError(f"bilinear filler: Blob must be 4 dim, and square. Received: {shape}")
    factor = math.ceil(shape[3] / 2)
    centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
    ramp = 1 - np.abs(np.arange(shape[3]) / factor - centre)
    return np.broadcast_to(ramp[:, None] * ramp, shape)


FILLERS: dict[str, Callable[[Message, Shape], Array]] = {
    "constant": _constant,
    "uniform": _uniform,
    "gaussian": _gaussian,
    "xavier": _xavier,
    "msra": _msra,
    "positive_unitball": _positive_unitball,
    "bilinear": _bilinear,
}
