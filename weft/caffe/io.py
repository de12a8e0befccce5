"""`caffe.io`: images into blobs and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.imports import require
from ..core.op import F
from ..ops.creation import tensor
from .binary import serialize_message
from .blobs import array_blob, blob_array
from .errors import CaffeError
from .message import BlobProtoVector, Datum, Message

Array: TypeAlias = NDArray[Any]


def blobproto_to_array(blob: Message, return_diff: bool = False) -> Array:
    """Return the numbers of a BlobProto in its shape."""
    return blob_array(blob, diff=return_diff)


def array_to_blobproto(arr: Any, diff: Any = None) -> Message:
    """Return the BlobProto of an array."""
    return array_blob(np.asarray(arr, np.float32), diff)


def arraylist_to_blobprotovector_str(arrays: Sequence[Any]) -> bytes:
    """Return arrays as a BlobProtoVector in binary form."""
    return serialize_message(BlobProtoVector(blobs=[array_to_blobproto(a) for a in arrays]))


def blobprotovector_str_to_arraylist(data: bytes) -> list[Array]:
    """Return the arrays of a BlobProtoVector in binary form."""
    return [blob_array(blob) for blob in BlobProtoVector.FromString(data).blobs]


def array_to_datum(arr: Any, label: int | None = None) -> Message:
    """Return a (channels, height, width) array as a Datum: bytes if it holds such, else floats."""
    values = np.asarray(arr)
    if values.ndim != 3:
        raise CaffeError(f"Incorrect array shape: a Datum has three axes, not {values.shape}")
    channels, height, width = values.shape
    made = Datum(channels=channels, height=height, width=width)
    if values.dtype == np.uint8:
        made.data = values.tobytes()
    else:
        made.float_data.extend(float(v) for v in values.flat)
    if label is not None:
        made.label = label
    return made


def datum_to_array(datum: Message) -> Array:
    """Return the (channels, height, width) array of a Datum, without its label."""
    raw = datum.data
    found = np.frombuffer(raw, np.uint8) if raw else np.asarray(list(datum.float_data), np.float64)
    shape = datum.channels, datum.height, datum.width
    if found.size != shape[0] * shape[1] * shape[2]:
        raise CaffeError(f"a Datum of shape {shape} has {found.size} values")
    return found.reshape(shape)


def load_image(filename: str, color: bool = True) -> Array:
    """Return an image as (height, width, channels) floats from 0 to 1, in RGB or grey."""
    image = require("PIL.Image", "image", "caffe.io.load_image")
    try:
        with image.open(filename) as opened:
            found = np.asarray(opened.convert("RGB" if color else "L"), np.float32) / 255
    except OSError as error:
        raise CaffeError(f"{filename}: cannot be read as an image ({error})") from None
    return found if color else found[:, :, None]


def resize_image(im: Any, new_dims: Sequence[int], interp_order: int = 1) -> Array:
    """Return (height, width, channels) in another size: bilinear, or nearest with order 0."""
    if interp_order not in {0, 1}:
        raise CaffeError(f"interp_order must be 0 or 1. Received: {interp_order}")
    values = np.asarray(im, np.float32)
    planes = tensor(np.ascontiguousarray(values.transpose(2, 0, 1)[None]))
    mode = {"mode": "bilinear", "align_corners": False} if interp_order else {"mode": "nearest"}
    made = F.interpolate(planes, size=tuple(int(n) for n in new_dims), **mode)
    return np.array(made.numpy()[0].transpose(1, 2, 0))


def oversample(images: Sequence[Any], crop_dims: Sequence[int]) -> Array:
    """Return the four corners and the centre of each image, and their mirror images."""
    height, width = (int(n) for n in crop_dims)
    crops = []
    for image in images:
        values = np.asarray(image)
        rows, columns = values.shape[:2]
        middle = (rows - height) // 2, (columns - width) // 2
        starts = [(i, j) for i in (0, rows - height) for j in (0, columns - width)]
        five = [values[i : i + height, j : j + width] for i, j in [*starts, middle]]
        crops += [*five, *(part[:, ::-1] for part in five)]
    return np.stack(crops).astype(np.float32)


class Transformer:
    """How images become inputs: resized, axes moved, channels swapped, scaled, centred, scaled."""

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        self.inputs = {name: tuple(shape) for name, shape in inputs.items()}
        self.transpose: dict[str, tuple[int, ...]] = {}
        self.channel_swap: dict[str, tuple[int, ...]] = {}
        self.raw_scale: dict[str, float] = {}
        self.mean: dict[str, Array] = {}
        self.input_scale: dict[str, float] = {}

    def preprocess(self, in_: str, data: Any) -> Array:
        """Return an image (height, width, channels) as the net wants it."""
        self._check(in_)
        made = np.asarray(data).astype(np.float32)
        size = self.inputs[in_][2:]
        if made.shape[:2] != size:
            made = resize_image(made, size)
        if in_ in self.transpose:
            made = made.transpose(self.transpose[in_])
        if in_ in self.channel_swap:
            made = made[list(self.channel_swap[in_])]
        made = made * np.float32(self.raw_scale.get(in_, 1))
        made = made - self.mean.get(in_, np.float32(0))
        return np.asarray(made * np.float32(self.input_scale.get(in_, 1)))

    def deprocess(self, in_: str, data: Any) -> Array:
        """Return what a net was given as an image again."""
        self._check(in_)
        made = np.array(data, np.float32).squeeze() / np.float32(self.input_scale.get(in_, 1))
        made = made + self.mean.get(in_, np.float32(0))
        made = made / np.float32(self.raw_scale.get(in_, 1))
        if in_ in self.channel_swap:
            made = made[np.argsort(self.channel_swap[in_])]
        if in_ in self.transpose:
            made = made.transpose(np.argsort(self.transpose[in_]))
        return np.asarray(made)

    def set_transpose(self, in_: str, order: Sequence[int]) -> None:
        """Say in which order the axes of an image go into the input, (2, 0, 1) as a rule."""
        self._check(in_)
        if len(order) != len(self.inputs[in_]) - 1:
            raise CaffeError("Transpose order needs to have the same number of dims as the input")
        self.transpose[in_] = tuple(order)

    def set_channel_swap(self, in_: str, order: Sequence[int]) -> None:
        """Say in which order the channels go, (2, 1, 0) for BGR."""
        self._check(in_)
        if len(order) != self.inputs[in_][1]:
            raise CaffeError("Channel swap needs to have the same number of dims as the channels")
        self.channel_swap[in_] = tuple(order)

    def set_raw_scale(self, in_: str, scale: float) -> None:
        """Say by what images are multiplied before the mean is taken away, 255 as a rule."""
        self._check(in_)
        self.raw_scale[in_] = scale

    def set_mean(self, in_: str, mean: Any) -> None:
        """Say what is taken away: a number for each channel, or an image of the input's size."""
        self._check(in_)
        values = np.asarray(mean, np.float32)
        wanted = self.inputs[in_][1:]
        if values.ndim == 1:
            if len(values) not in {1, wanted[0]}:
                raise CaffeError(f"Mean channels incompatible with input: {values.shape}, {wanted}")
            values = values[:, None, None]
        elif values.shape != wanted and values.shape != wanted[1:]:
            raise CaffeError(f"Mean shape incompatible with input shape: {values.shape}, {wanted}")
        self.mean[in_] = values

    def set_input_scale(self, in_: str, scale: float) -> None:
        """Say by what inputs are multiplied in the end."""
        self._check(in_)
        self.input_scale[in_] = scale

    def _check(self, in_: str) -> None:
        if in_ not in self.inputs:
            raise CaffeError(f"{in_} is not one of the net inputs: {list(self.inputs)}")
