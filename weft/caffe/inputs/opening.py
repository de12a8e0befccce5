"""Which class reads the data of which type of layer."""

from __future__ import annotations

from ...data.streams import fresh_seed
from ..binary import parse_message_file
from ..blobs import blob_array
from ..errors import CaffeError
from ..inputs_protocol import Array, InputSource, OpenInput
from ..message import TRAIN, BlobProto, Message
from .base import Input
from .data import DataBatches
from .hdf5 import Hdf5Batches
from .images import ImageBatches
from .memory import MemoryInput
from .transform import Transformer
from .windows import WindowBatches

_AHEAD = 2  # batches, where the layer has no number of its own


def open_input(layer: Message, phase: int) -> InputSource:
    """Return the batches of a layer that brings data; paths are taken from the working directory.

    >>> from weft.caffe.message import LayerParameter
    >>> size = {"batch_size": 2, "channels": 1, "height": 4, "width": 4}
    >>> layer = LayerParameter(name="in", type="MemoryData", memory_data_param=size)
    >>> open_input(layer, TRAIN).shapes()
    ((2, 1, 4, 4), (2,))
    """
    opened = INPUTS.get(layer.type)
    if opened is None:
        raise CaffeError(
            f"layer {layer.name!r}: {layer.type!r} brings no data; {', '.join(INPUTS)} do"
        )
    return opened(layer, phase)


def mean_of_file(path: str) -> Array:
    """Return the mean image that a binaryproto file holds."""
    return blob_array(parse_message_file(path, BlobProto), path)


def _transformer(layer: Message, phase: int) -> Transformer:
    param = layer.transform_param
    mean = mean_of_file(param.mean_file) if param.has("mean_file") else None
    return Transformer(param, layer=layer.name, train=phase == TRAIN, mean=mean)


def _data(layer: Message, phase: int) -> InputSource:
    param = layer.data_param
    batches = DataBatches(layer, _transformer(layer, phase), param.source, fresh_seed())
    return Input(batches, max(1, param.prefetch))


def _hdf5(layer: Message, phase: int) -> InputSource:
    return Input(Hdf5Batches(layer, layer.hdf5_data_param.source, fresh_seed()), _AHEAD)


def _images(layer: Message, phase: int) -> InputSource:
    source = layer.image_data_param.source
    batches = ImageBatches(layer, _transformer(layer, phase), source, fresh_seed())
    return Input(batches, _AHEAD)


def _windows(layer: Message, phase: int) -> InputSource:
    source = layer.window_data_param.source
    batches = WindowBatches(layer, _transformer(layer, phase), source, fresh_seed())
    return Input(batches, _AHEAD)


def _memory(layer: Message, phase: int) -> InputSource:
    return MemoryInput(layer)


INPUTS: dict[str, OpenInput] = {
    "Data": _data,
    "HDF5Data": _hdf5,
    "ImageData": _images,
    "MemoryData": _memory,
    "WindowData": _windows,
}
