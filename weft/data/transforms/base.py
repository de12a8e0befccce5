"""What an image is, and the base of transforms.

Arrays are images as files give them: (height, width) or (height, width, channels), bytes from 0 to
255 or floats from 0 to 1. Tensors are images as networks take them: (channels, height, width).
A transform takes either, works on (height, width, channels), and returns the kind and the dtype it
was given; pillow images come back as arrays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.tensor import Tensor, wrap
from ..checks import as_probability, check_callable
from ..streams import Array, chance, integer

Pixels = Array


class Transform:
    """A function of an image; subclasses define `apply` on pixels (height, width, channels)."""

    def __call__(self, image: Any) -> Any:
        """Return the transformed image, of the same kind."""
        pixels, restore = unpacked(self, image)
        return restore(self.apply(pixels))

    @abstractmethod
    def apply(self, pixels: Pixels) -> Pixels:
        """Return the transformed pixels."""
        raise NotImplementedError(f"{type(self).__name__} must define apply")

    def __repr__(self) -> str:
        shown = ", ".join(f"{name.lstrip('_')}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


class Occasional(Transform):
    """A transform that changes an image with probability `p`; subclasses define `change`."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = as_probability(self, "p", p)

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the pixels, changed or not."""
        return self.change(pixels) if chance(self.p) else pixels

    @abstractmethod
    def change(self, pixels: Pixels) -> Pixels:
        """Return the changed pixels."""


def unpacked(owner: object, image: Any) -> tuple[Pixels, Callable[[Pixels], Any]]:
    """Return the pixels of an image, and the function that makes such an image of pixels."""
    if isinstance(image, Tensor):
        values = image._value
        check_image(owner, values)
        if values.ndim == 2:
            return values[:, :, None], lambda pixels: wrap(_flat(pixels))
        return values.transpose(1, 2, 0), _as_tensor
    array = as_pixels(owner, image)
    check_image(owner, array)
    if array.ndim == 2:
        return array[:, :, None], _flat
    return array, np.ascontiguousarray


def as_pixels(owner: object, image: Any) -> Pixels:
    """Return an array or a pillow image as an array."""
    if isinstance(image, np.ndarray):
        return image
    if hasattr(image, "getbands") and hasattr(image, "__array_interface__"):
        return np.asarray(image)
    raise ArgumentTypeError(
        f"{type(owner).__name__}: expected an image as a NumPy array, a tensor or a pillow image. "
        f"Received: {type(image).__name__}"
    )


def check_image(owner: object, array: Pixels) -> None:
    """Raise unless an array has the dimensions and the dtype of an image."""
    name = type(owner).__name__
    if array.ndim not in (2, 3):
        raise ShapeError(
            f"{name}: an image has shape (height, width[, channels]) as an array and (channels, "
            f"height, width) as a tensor; batches are transformed item by item. Received: "
            f"{array.shape}"
        )
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        raise DTypeError(
            f"{name}: an image holds uint8 from 0 to 255 or floats from 0 to 1. "
            f"Received: {array.dtype}"
        )


def _as_tensor(pixels: Pixels) -> Tensor:
    return wrap(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def _flat(pixels: Pixels) -> Pixels:
    return np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


# -- computing with bytes --------------------------------------------------------------------------


def as_float(pixels: Pixels) -> Pixels:
    """Return pixels as float32 (float64 stays), in their own range."""
    return pixels if pixels.dtype == np.float64 else pixels.astype(np.float32, copy=False)


def like(pixels: Pixels, values: Pixels) -> Pixels:
    """Return computed values in the dtype of `pixels`; bytes are rounded and kept in range."""
    if pixels.dtype == np.uint8:
        return np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return values.astype(pixels.dtype, copy=False)


def full_value(pixels: Pixels) -> float:
    """Return the value of white."""
    return 255.0 if pixels.dtype == np.uint8 else 1.0


# -- combinations ----------------------------------------------------------------------------------


class Compose:
    """One transform after another.

    >>> import numpy as np
    >>> from weft.data.transforms import CenterCrop, Compose, ToTensor
    >>> Compose([CenterCrop(2), ToTensor()])(np.zeros((4, 4, 3), np.uint8)).shape
    (3, 2, 2)
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)
        for transform in self.transforms:
            check_callable(self, "each transform", transform)

    def __call__(self, image: Any) -> Any:
        """Return the image after all transforms."""
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        return f"Compose({self.transforms!r})"


class RandomApply:
    """A transform that is applied with probability `p`."""

    def __init__(self, transform: Callable[[Any], Any], p: float = 0.5) -> None:
        check_callable(self, "transform", transform)
        self._transform, self._p = transform, as_probability(self, "p", p)

    def __call__(self, image: Any) -> Any:
        """Return the image, transformed or not."""
        return self._transform(image) if chance(self._p) else image

    def __repr__(self) -> str:
        return f"RandomApply({self._transform!r}, p={self._p})"


class RandomChoice:
    """One of several transforms, drawn for each image."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self._transforms = Compose(transforms).transforms
        if not self._transforms:
            raise ArgumentError("RandomChoice needs at least one transform")

    def __call__(self, image: Any) -> Any:
        """Return the image after one of the transforms."""
        return self._transforms[integer(0, len(self._transforms))](image)

    def __repr__(self) -> str:
        return f"RandomChoice({self._transforms!r})"


# -- kinds and ranges ------------------------------------------------------------------------------


class ToTensor:
    """Return an image as a float32 tensor (channels, height, width); bytes are divided by 255.

    >>> import numpy as np
    >>> from weft.data.transforms import ToTensor
    >>> ToTensor()(np.full((1, 2), 255, np.uint8))
    tensor([[[1., 1.]]])
    """

    def __call__(self, image: Any) -> Tensor:
        """Return the tensor of an image."""
        pixels, _ = unpacked(self, image)
        values = pixels.astype(np.float32)
        if pixels.dtype == np.uint8:
            values /= np.float32(255)
        return _as_tensor(values)

    def __repr__(self) -> str:
        return "ToTensor()"


class Normalize(Transform):
    """Subtract a mean and divide by a deviation, each one number or one for every channel."""

    def __init__(self, mean: float | Sequence[float], std: float | Sequence[float]) -> None:
        self.mean, self.std = np.atleast_1d(_reals(mean)), np.atleast_1d(_reals(std))
        if self.mean.ndim > 1 or self.std.ndim > 1 or not np.all(self.std > 0):
            raise ArgumentError(
                "Normalize: mean and std are numbers, or lists of one for each channel, and std "
                f"is above 0. Received: mean={mean!r}, std={std!r}"
            )

    def apply(self, pixels: Pixels) -> Pixels:
        """Return the normalised pixels."""
        if pixels.dtype == np.uint8:
            raise DTypeError("Normalize: the image holds bytes; put ToTensor() before Normalize")
        for values in (self.mean, self.std):
            if values.size not in (1, pixels.shape[2]):
                raise ShapeError(
                    f"Normalize: {values.size} values for an image of {pixels.shape[2]} channel(s)"
                )
        mean, std = self.mean.astype(pixels.dtype), self.std.astype(pixels.dtype)
        normal: Pixels = (pixels - mean) / std
        return normal


def _reals(value: Any) -> Array:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"Normalize: expected numbers. Received: {value!r}") from None
