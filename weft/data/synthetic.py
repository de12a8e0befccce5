"""Synthetic data: small problems with a known answer, made from a seed.

Each function returns a TensorDataset; the same seed gives the same data, and None draws a seed
from the default generator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ShapeError
from ..core.rng import Generator
from .checks import as_count, as_real
from .streams import Array, fresh_seed, normals, permutation, uniforms
from .tensors import TensorDataset


def make_blobs(
    n: int = 100,
    *,
    classes: int = 3,
    features: int = 2,
    std: float = 1.0,
    centers: Any = None,
    box: float = 10.0,
    seed: int | None = None,
) -> TensorDataset:
    """Make clouds of points: normal distributions around centres, one for each class.

    Centres are drawn uniformly from [-box, box] in each feature unless they are given, shape
    (classes, features). The classes have equally many points, up to one.
    """
    generator = _generator(seed)
    if centers is None:
        shape = (as_count("make_blobs", "classes", classes), _features("make_blobs", features))
        box = as_real("make_blobs", "box", box, 1e-12)
        middles = uniforms(shape, -box, box, generator=generator)
    else:
        middles = np.asarray(centers, np.float64)
        if middles.ndim != 2 or not len(middles):
            raise ShapeError(
                "make_blobs: centers must have shape (classes, features). "
                f"Received: {middles.shape}"
            )
    labels = _labels("make_blobs", n, len(middles), generator)
    noise = normals((len(labels), middles.shape[1]), generator=generator)
    points = middles[labels] + as_real("make_blobs", "std", std, 0.0) * noise
    return TensorDataset(points.astype(np.float32), labels)


def make_moons(n: int = 100, *, noise: float = 0.1, seed: int | None = None) -> TensorDataset:
    """Make two half circles that interlock, as points in the plane with classes 0 and 1."""
    generator = _generator(seed)
    labels = _labels("make_moons", n, 2, generator)
    angle = uniforms((len(labels),), 0.0, math.pi, generator=generator)
    x = np.where(labels == 0, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(labels == 0, np.sin(angle), 0.5 - np.sin(angle))
    return _noisy("make_moons", np.stack([x, y], axis=1), labels, noise, generator)


def make_spirals(
    n: int = 100,
    *,
    classes: int = 2,
    turns: float = 1.5,
    noise: float = 0.05,
    seed: int | None = None,
) -> TensorDataset:
    """Make arms of a spiral in the unit disc, one for each class."""
    generator = _generator(seed)
    classes = as_count("make_spirals", "classes", classes)
    labels = _labels("make_spirals", n, classes, generator)
    # The square root makes the points equally dense along the arm.
    radius = np.sqrt(uniforms((len(labels),), generator=generator))
    turns = as_real("make_spirals", "turns", turns, 0.0)
    angle = 2 * math.pi * (turns * radius + labels / classes)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _noisy("make_spirals", points, labels, noise, generator)


def make_regression(
    n: int = 100,
    *,
    features: int = 10,
    targets: int = 1,
    informative: int | None = None,
    noise: float = 0.1,
    seed: int | None = None,
) -> TensorDataset:
    """Make a linear problem y = x @ coefficients + bias + noise with standard normal x.

    Only the first `informative` features matter. The answer is in the dataset's attributes
    `coefficients`, shape (features, targets), and `bias`; y has shape (n, targets), or (n,) for
    one target.
    """
    generator = _generator(seed)
    n, features = as_count("make_regression", "n", n), _features("make_regression", features)
    targets = as_count("make_regression", "targets", targets)
    used = (
        features if informative is None else as_count("make_regression", "informative", informative)
    )
    if used > features:
        raise ArgumentError(
            f"make_regression: informative must be at most {features}. Received: {used}"
        )
    x = normals((n, features), generator=generator)
    coefficients = normals((features, targets), generator=generator)
    coefficients[used:] = 0.0
    bias = normals((targets,), generator=generator)
    noise = as_real("make_regression", "noise", noise, 0.0)
    y = x @ coefficients + bias + noise * normals((n, targets), generator=generator)
    return _Regression(x, y[:, 0] if targets == 1 else y, coefficients, bias)


class _Regression(TensorDataset):
    """A regression problem that knows its answer."""

    def __init__(self, x: Array, y: Array, coefficients: Array, bias: Array) -> None:
        super().__init__(x.astype(np.float32), y.astype(np.float32))
        self.coefficients, self.bias = coefficients, bias


def make_sines(
    n: int = 100,
    *,
    length: int = 50,
    horizon: int = 1,
    noise: float = 0.0,
    seed: int | None = None,
) -> TensorDataset:
    """Make sine waves of random frequency, phase and amplitude, to be continued.

    Items are (sequence of shape (length, 1), the next `horizon` values of shape (horizon,)).
    Periods last from 8 to 32 steps, amplitudes lie in [0.5, 1.5].
    """
    generator = _generator(seed)
    n, length = as_count("make_sines", "n", n), as_count("make_sines", "length", length)
    horizon = as_count("make_sines", "horizon", horizon)
    period = uniforms((n, 1), 8.0, 32.0, generator=generator)
    phase = uniforms((n, 1), 0.0, 2 * math.pi, generator=generator)
    amplitude = uniforms((n, 1), 0.5, 1.5, generator=generator)
    time = np.arange(length + horizon)
    waves = amplitude * np.sin(2 * math.pi * time / period + phase)
    noise = as_real("make_sines", "noise", noise, 0.0)
    seen = waves[:, :length] + noise * normals((n, length), generator=generator)
    future = waves[:, length:]
    return TensorDataset(seen[:, :, None].astype(np.float32), future.astype(np.float32))


SHAPES = ("circle", "square", "triangle", "cross", "ring", "bar")


def make_shapes(
    n: int = 100,
    *,
    size: int = 32,
    classes: int = 4,
    channels: int = 3,
    noise: float = 0.05,
    seed: int | None = None,
) -> TensorDataset:
    """Make images of shapes of random colour, size and place on a noisy ground.

    Items are (float32 in [0, 1] of shape (channels, size, size), class number); the classes are
    circle, square, triangle, cross, ring and bar, as many of them as `classes` says.
    """
    generator = _generator(seed)
    size = as_count("make_shapes", "size", size, 8)
    classes = as_count("make_shapes", "classes", classes)
    if classes > len(SHAPES):
        raise ArgumentError(
            f"make_shapes: there are {len(SHAPES)} classes {SHAPES}. Received: classes={classes}"
        )
    channels = as_count("make_shapes", "channels", channels)
    labels = _labels("make_shapes", n, classes, generator)
    masks = _shape_masks(labels, size, generator)[:, None]
    shape = (len(labels), channels, 1, 1)
    ground = uniforms(shape, 0.0, 0.4, generator=generator)
    colour = uniforms(shape, 0.6, 1.0, generator=generator)
    images = np.where(masks, colour, ground).astype(np.float32)
    deviation = as_real("make_shapes", "noise", noise, 0.0)
    if deviation:
        images += np.float32(deviation) * normals(images.shape, "float32", generator=generator)
    return TensorDataset(np.clip(images, 0.0, 1.0), labels)


def _shape_masks(labels: Array, size: int, generator: Generator) -> Array:
    """Return which pixels belong to each shape, in coordinates relative to its centre."""
    count = len(labels)
    radius = uniforms((count, 1, 1), 0.2 * size, 0.4 * size, generator=generator)
    free = size - 2 * radius
    corner = uniforms((count, 2, 1, 1), generator=generator) * free[:, None]
    grid = np.arange(size) + 0.5
    y = (grid[:, None] - corner[:, 0] - radius) / radius
    x = (grid[None, :] - corner[:, 1] - radius) / radius
    distance = np.hypot(x, y)
    inside = np.maximum(abs(x), abs(y)) <= 0.9
    kinds = np.stack(
        [
            distance <= 1.0,
            inside,
            (abs(x) <= (y + 1.0) / 2.0) & (abs(y) <= 1.0),
            inside & (np.minimum(abs(x), abs(y)) <= 0.3),
            (distance <= 1.0) & (distance >= 0.6),
            (abs(y) <= 0.35) & (abs(x) <= 1.0),
        ]
    )
    masks: Array = kinds[labels, np.arange(count)]
    return masks


def _generator(seed: int | None) -> Generator:
    return Generator(fresh_seed() if seed is None else seed)


def _features(owner: str, features: int) -> int:
    return as_count(owner, "features", features)


def _labels(owner: str, n: int, classes: int, generator: Generator) -> Array:
    """Return n labels in random order, as equally many of each class as possible."""
    count = as_count(owner, "n", n)
    return (np.arange(count) % classes)[permutation(count, generator=generator)]


def _noisy(
    owner: str, points: Array, labels: Array, noise: float, generator: Generator
) -> TensorDataset:
    deviation = as_real(owner, "noise", noise, 0.0)
    points = points + deviation * normals(points.shape, generator=generator)
    return TensorDataset(points.astype(np.float32), labels)


__all__ = [
    "SHAPES",
    "make_blobs",
    "make_moons",
    "make_regression",
    "make_shapes",
    "make_sines",
    "make_spirals",
]
