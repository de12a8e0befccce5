"""`tf.image`: the basics, on images with channels last."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from ..faces.absent import absent_names
from ..ops.creation import tensor as _fixed
from ..ops.random import draw
from .dtypes import as_dtype
from .math_ops import cast
from .parsing import decode_gif, decode_image, decode_jpeg, decode_png
from .random_ops import random_crop, random_operation
from .recording import Tensor, convert_to_tensor, known_int, record

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "pad_to_bounding_box",
    "per_image_standardization",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "rgb_to_grayscale",
    "rot90",
    "transpose_image",
]


class ResizeMethod:
    """How images are resized."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = 0, 1, 2, 3


def _mapped(type: str, compute: Any, image: Any, name: str | None = None) -> Tensor:
    made: Tensor = record(type, compute, [image], name=name)
    return made


def flip_left_right(image: Any) -> Tensor:
    """Return images mirrored."""
    return _mapped("FlipLeftRight", lambda x: F.flip(x, -2), image)


def flip_up_down(image: Any) -> Tensor:
    """Return images upside down."""
    return _mapped("FlipUpDown", lambda x: F.flip(x, -3), image)


def transpose_image(image: Any) -> Tensor:
    """Return images with rows and columns exchanged."""
    return _mapped("TransposeImage", lambda x: F.swapaxes(x, -3, -2), image)


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """Return images turned by k right angles, against the clock."""
    return _mapped("Rot90", lambda x: F.rot90(x, k, (-3, -2)), image, name)


def _randomly(flip: Any, type: str) -> Any:
    def called(image: Any, seed: Any = None) -> Tensor:
        x = convert_to_tensor(image)

        def draws(x: Any, *, generator: Any) -> Any:
            u = draw.rand((), dtype="float32", generator=generator)
            return F.where(u < 0.5, flip(x), x)

        return random_operation(
            type, draws, [x], seed=seed, dtype=x.dtype, name=None, differentiable=True
        )

    called.__name__ = called.__qualname__ = type
    called.__doc__ = "Return an image, in one of two cases flipped."
    return called


random_flip_left_right = _randomly(lambda x: F.flip(x, -2), "random_flip_left_right")
random_flip_up_down = _randomly(lambda x: F.flip(x, -3), "random_flip_up_down")


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Return images with a number added."""
    x = convert_to_tensor(image)
    made: Tensor = record(
        "AdjustBrightness", lambda x, d: x + d, [x, convert_to_tensor(delta, x.dtype)]
    )
    return made


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Return images with the distance of each channel from its mean scaled."""
    x = cast(images, "float32")

    def compute(x: Any, c: Any) -> Any:
        mean = F.mean(x, axis=(-3, -2), keepdims=True)
        return (x - mean) * c + mean

    made: Tensor = record(
        "AdjustContrast", compute, [x, convert_to_tensor(contrast_factor, "float32")]
    )
    return made


def random_brightness(image: Any, max_delta: float, seed: Any = None) -> Tensor:
    """Return images with a random number added."""
    x = convert_to_tensor(image)

    def draws(x: Any, *, generator: Any) -> Any:
        return x + (draw.rand((), dtype=x.dtype, generator=generator) * 2 - 1) * max_delta

    return random_operation("RandomBrightness", draws, [x], seed=seed, dtype=x.dtype, name=None)


def random_contrast(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
    """Return images with random contrast."""
    x = convert_to_tensor(image)

    def draws(x: Any, *, generator: Any) -> Any:
        factor = lower + (upper - lower) * draw.rand((), dtype=x.dtype, generator=generator)
        mean = F.mean(x, axis=(-3, -2), keepdims=True)
        return (x - mean) * factor + mean

    return random_operation("RandomContrast", draws, [x], seed=seed, dtype=x.dtype, name=None)


def per_image_standardization(image: Any) -> Tensor:
    """Return an image with mean 0 and deviation 1, at least that of one element."""

    def compute(x: Any) -> Any:
        axes = (-3, -2, -1)
        count = x.shape[-3] * x.shape[-2] * x.shape[-1]
        mean = F.mean(x, axis=axes, keepdims=True)
        deviation = F.sqrt(F.var(x, axis=axes, keepdims=True))
        return (x - mean) / F.maximum(deviation, 1.0 / float(count) ** 0.5)

    return _mapped("Standardize", compute, cast(image, "float32"))


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Return how bright images are."""
    weights = np.array([0.2989, 0.5870, 0.1140], np.float32)
    made: Tensor = record(
        "Grayscale",
        lambda x, w: F.sum(x * w, axis=-1, keepdims=True),
        [cast(images, "float32"), weights],
        name=name,
    )
    return made


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Return images with one channel three times."""
    return _mapped("Rgb", lambda x: F.concat([x, x, x], -1), images, name)


def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Return images in another type, scaled to its range: floats are in [0, 1]."""
    x, kind = convert_to_tensor(image), as_dtype(dtype)
    if x.dtype == kind:
        return x
    if x.dtype.is_integer and kind.is_floating:
        return cast(x, kind) * (1.0 / x.dtype.max)
    if x.dtype.is_floating and kind.is_integer:
        return cast(x * (kind.max + 0.5), kind, name)
    return cast(x, kind, name)


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return a part of images."""
    rows, columns = (
        slice(offset_height, offset_height + target_height),
        slice(offset_width, offset_width + target_width),
    )
    return _mapped("Crop", lambda x: x[..., rows, columns, :], image)


def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Return images inside larger ones of zeros."""

    def compute(x: Any) -> Any:
        height, width = x.shape[-3], x.shape[-2]
        around = (
            (offset_height, target_height - offset_height - height),
            (offset_width, target_width - offset_width - width),
        )
        return F.pad(x, (*((0, 0),) * (x.ndim - 3), *around, (0, 0)))

    return _mapped("PadImage", compute, image)


def resize_image_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """Return images of a size: their middle, or with zeros around."""

    def compute(x: Any) -> Any:
        for axis, want in ((-3, target_height), (-2, target_width)):
            have = x.shape[axis]
            if have > want:
                start = (have - want) // 2
                key = [slice(None)] * x.ndim
                key[axis] = slice(start, start + want)
                x = x[tuple(key)]
            elif have < want:
                before = (want - have) // 2
                around = [(0, 0)] * x.ndim
                around[axis] = (before, want - have - before)
                x = F.pad(x, tuple(around))
        return x

    return _mapped("CropOrPad", compute, image)


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Return the middle of images."""
    if not 0.0 < central_fraction <= 1.0:
        raise ValueError("central_fraction must be within (0, 1]")

    def compute(x: Any) -> Any:
        height, width = x.shape[-3], x.shape[-2]
        top, left = (
            int((height - height * central_fraction) / 2),
            int((width - width * central_fraction) / 2),
        )
        return x[..., top : height - top, left : width - left, :]

    return _mapped("CentralCrop", compute, image)


def _lines(size: int, to: int, align: bool) -> tuple[Any, Any, Any]:
    """Return for each new line the lines that it lies between, and how far from the first."""
    scale = (size - 1) / (to - 1) if align and to > 1 else size / to
    at = np.arange(to, dtype=np.float32) * np.float32(scale)
    low = np.minimum(np.floor(at).astype(np.int64), size - 1)
    return low, np.minimum(low + 1, size - 1), at - low


def _bilinear(x: Any, sizes: tuple[int, int], align: bool) -> Any:
    for axis, to in zip((1, 2), sizes, strict=True):
        low, high, part = _lines(x.shape[axis], to, align)
        weight = part.astype(np.float32).reshape([-1 if i == axis else 1 for i in range(4)])
        first, second = F.take(x, _fixed(low), axis), F.take(x, _fixed(high), axis)
        x = first + (second - first) * _fixed(weight)
    return x


def _nearest(x: Any, sizes: tuple[int, int], align: bool) -> Any:
    for axis, to in zip((1, 2), sizes, strict=True):
        low, _, part = _lines(x.shape[axis], to, align)
        place = (
            np.minimum(np.round(low + part), x.shape[axis] - 1).astype(np.int64) if align else low
        )
        x = F.take(x, _fixed(place), axis)
    return x


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
) -> Tensor:
    """Return images of another size, as TensorFlow 1 places their elements."""
    chosen = {0: _bilinear, 1: _nearest, "bilinear": _bilinear, "nearest": _nearest}.get(method)
    if chosen is None:
        raise ValueError(
            "resize_images: the methods are ResizeMethod.BILINEAR and NEAREST_NEIGHBOR"
        )
    x = convert_to_tensor(images)
    x = x if chosen is _nearest else cast(x, "float32")
    to = (known_int(size[0], "size"), known_int(size[1], "size"))

    def compute(x: Any) -> Any:
        return (
            chosen(x, to, align_corners) if x.ndim == 4 else chosen(x[None], to, align_corners)[0]
        )

    return _mapped("ResizeImages", compute, x)


def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Return images of another size, elements between others from four of them."""
    return resize_images(images, size, ResizeMethod.BILINEAR, align_corners)


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Return images of another size, each element as the nearest one."""
    return resize_images(images, size, ResizeMethod.NEAREST_NEIGHBOR, align_corners)


resize = resize_images
_REASONS = {
    "ssim": "compute it from tf.nn.avg_pool",
    "non_max_suppression": "use tf.py_func",
}
__getattr__ = absent_names(globals(), _REASONS)
