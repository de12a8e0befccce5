"""Trained weights: what a .caffemodel (binary, or HDF5) brings into a net, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import WeftError
from ..core.imports import require
from ..io import SaveError
from .binary import parse_message_file, serialize_message
from .blobs import array_blob, blob_array
from .errors import CaffeError, CaffemodelError
from .inputs.hdf5 import checked_dataset
from .message import Message, NetParameter
from .upgrade import upgraded

if TYPE_CHECKING:
    from .network import Network

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def load_weights(net: Network, path: str | Path) -> list[str]:
    """Copy the blobs of layers of equal names from a file; return the names that were copied."""
    if _is_hdf5(path):
        return _copied(net, _hdf5_layers(path, [step.name for step in net.steps]), str(path))
    proto = upgraded(parse_message_file(path, NetParameter), str(path))
    return copy_weights(net, proto, str(path))


def copy_weights(net: Network, trained: Message, where: str = "weights") -> list[str]:
    """Copy the blobs of layers of equal names from a NetParameter with blobs."""
    layers = [
        (layer.name, [blob_array(blob, f"{where}: layer {layer.name!r}") for blob in layer.blobs])
        for layer in trained.layer
        if layer.has("blobs")
    ]
    return _copied(net, layers, where)


def net_proto(net: Network, *, diffs: bool = False) -> Message:
    """Return a net as NetParameter, with the blobs of its layers."""
    made = NetParameter(name=net.net_name)
    for step in net.steps:
        layer = made.layer.add()
        layer.merge(step.layer.param)
        layer.clear("blobs")
        for value in net.layer_blobs(step.name):
            grad = getattr(value, "grad", None) if diffs else None
            layer.blobs.append(
                array_blob(value.detach().numpy(), None if grad is None else grad.numpy())
            )
    return made


def save_weights(net: Network, path: str | Path) -> None:
    """Write the layers of a net with their blobs as a .caffemodel; .h5 as HDF5."""
    try:
        if str(path).endswith(".h5"):
            _save_hdf5(net, path)
        else:
            Path(path).write_bytes(serialize_message(net_proto(net)))
    except OSError as error:
        raise SaveError(f"{path}: cannot be written ({error.strerror})") from None


def _copied(net: Network, layers: list[tuple[str, list[Any]]], where: str) -> list[str]:
    """Check all blobs before any is written."""
    steps = {step.name: step for step in net.steps}
    fitting = [(name, blobs) for name, blobs in layers if name in steps]
    for name, blobs in fitting:
        specs = steps[name].layer.blob_specs
        if len(specs) != len(blobs):
            raise CaffeError(
                f"{where}: Incompatible number of blobs for layer {name!r}: the file has "
                f"{len(blobs)}, the net {len(specs)}"
            )
        for index, (spec, blob) in enumerate(zip(specs, blobs, strict=True)):
            if not _same_shape(blob.shape, spec.shape):
                raise CaffeError(
                    f"{where}: Cannot copy param {index} weights from layer {name!r}; shape "
                    f"mismatch.  Source param shape is {blob.shape}; target param shape is "
                    f"{spec.shape}. To learn this layer's parameters from scratch rather than "
                    "copying from a saved net, rename the layer."
                )
    for name, blobs in fitting:
        for index, (target, blob) in enumerate(zip(net.layer_blobs(name), blobs, strict=True)):
            values = np.asarray(blob, np.float32).reshape(target.shape)
            net.set_blob(name, index, values)
    return [name for name, _ in fitting]


def _same_shape(theirs: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Compare shapes; old files have four sizes, with ones in front."""
    if len(theirs) == 4 and len(ours) <= 4:
        return theirs == (1,) * (4 - len(ours)) + ours
    return theirs == ours


# -- HDF5 ------------------------------------------------------------------------------------------


def _is_hdf5(path: str | Path) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(HDF5_MAGIC)) == HDF5_MAGIC
    except OSError as error:
        raise CaffemodelError(f"File not found: {path} ({error.strerror})") from None


def _hdf5_layers(path: str | Path, names: list[str]) -> list[tuple[str, list[Any]]]:
    h5py = require("h5py", "caffe", "weights in HDF5 files")
    try:
        with h5py.File(path, "r") as file:
            found = [(name, _hdf5_blobs(h5py, file, str(path), name)) for name in names]
    except WeftError as error:
        raise CaffemodelError(str(error)) from None
    except Exception as error:  # of any kind: h5py hands out what each step of a read stumbles on
        raise CaffemodelError(f"{path}: no weights in HDF5 form ({error})") from None
    if not any(blobs for _, blobs in found):
        raise CaffemodelError(f"{path}: no weights in HDF5 form for a layer of this net")
    return [(name, blobs) for name, blobs in found if blobs]


def _hdf5_blobs(h5py: Any, file: Any, path: str, name: str) -> list[Any]:
    """Return the blobs of a layer: the datasets data/NAME/0, 1 ... that lie in this file."""
    where = f"data/{name}"
    parts = where.split("/")
    for end in range(1, len(parts) + 1):
        link = file.get("/".join(parts[:end]), getlink=True)
        if not isinstance(link, h5py.HardLink):
            return []
    group = file[where]
    keys = sorted((key for key in group if key.isdigit()), key=int)
    return [checked_dataset(h5py, file, path, f"{where}/{key}", scalars=True) for key in keys]


def _save_hdf5(net: Network, path: str | Path) -> None:
    h5py = require("h5py", "caffe", "weights in HDF5 files")
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        for step in net.steps:
            blobs = net.layer_blobs(step.name)
            group: Any = data.create_group(step.name) if blobs else None
            for index, blob in enumerate(blobs):
                group.create_dataset(str(index), data=blob.detach().numpy())
