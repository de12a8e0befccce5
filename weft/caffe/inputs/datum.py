"""Datum: the record of Caffe's databases, an image with its label."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ...core.imports import require
from ...data.imagefolder import DAMAGED
from ...io import wire
from ..binary import serialize_message
from ..errors import CaffeError, CaffemodelError
from ..inputs_protocol import Array
from ..message import Datum

_NUMBER = {name: field.number for name, field in Datum.TYPE.fields.items()}


def datum_of(image: Any, label: int = 0) -> Any:
    """Return the record of an image (channels, height, width), as bytes or as floats."""
    pixels = np.asarray(image)
    if pixels.ndim != 3:
        raise CaffeError(
            f"a Datum holds an image (channels, height, width). Received: shape {pixels.shape}"
        )
    channels, height, width = pixels.shape
    made = Datum(channels=channels, height=height, width=width, label=int(label))
    if pixels.dtype == np.uint8:
        made.data = pixels.tobytes()
    else:
        made.float_data.extend(pixels.astype(np.float32).ravel().tolist())
    return made


def encoded_datum(content: bytes, label: int = 0) -> Any:
    """Return the record of an image file, as it is."""
    return Datum(data=content, label=int(label), encoded=True)


def format_datum(datum: Any) -> bytes:
    """Return a record as bytes."""
    return serialize_message(datum)


def read_datum(
    content: bytes, where: str, *, color: bool = False, gray: bool = False
) -> tuple[Array, int]:
    """Return the image of a record, (channels, height, width), and its label.

    Colours are in the order B, G, R. Fields are taken from the wire without a message between: a
    batch has many records.

    color, gray   what to make of an encoded image, whatever it is
    """
    try:
        found = wire.Message(content, name="Datum")
        label = _int32(found.integer(_NUMBER["label"]))
        if found.boolean(_NUMBER["encoded"]):
            return decoded(found.raw(_NUMBER["data"]), where, color=color, gray=gray), label
        shape = tuple(found.integer(_NUMBER[name]) for name in ("channels", "height", "width"))
        data = found.view(_NUMBER["data"])
        flat = np.frombuffer(data, np.uint8) if data else found.floats(_NUMBER["float_data"])
    except wire.WireError as error:
        raise CaffemodelError(f"{where}: no Datum, or a damaged one ({error})") from None
    if color or gray:
        raise CaffeError(f"{where}: force_color and force_gray are for encoded images only")
    if min(shape) < 1 or flat.size != shape[0] * shape[1] * shape[2]:
        raise CaffeError(
            f"{where}: the record claims the shape {shape} and holds {flat.size} values"
        )
    return flat.reshape(shape), label


def _int32(number: int) -> int:
    """Return what protobuf makes of a number of an int32 field: its low bits."""
    return (number + 2**31) % 2**32 - 2**31


def decoded(content: bytes, where: str, *, color: bool = False, gray: bool = False) -> Array:
    """Return an image file's pixels, (channels, height, width); colours in the order B, G, R."""
    if color and gray:
        raise CaffeError("give force_color or force_gray, not both")
    module = require("PIL.Image", "caffe", "decoding images")
    try:
        with module.open(io.BytesIO(content)) as image:
            single = gray or (not color and image.mode in ("1", "L"))
            found = np.array(image.convert("L" if single else "RGB"))
    except (*DAMAGED, module.DecompressionBombError) as error:
        raise CaffeError(f"{where}: expected an encoded image: {error}") from None
    return (
        found[None]
        if found.ndim == 2
        else np.ascontiguousarray(found[:, :, ::-1].transpose(2, 0, 1))
    )
