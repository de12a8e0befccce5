"""`chainer.serializers`: objects as files of arrays, in Chainer's layout (npz and HDF5)."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..core.imports import require


class DictionarySerializer:
    """Collects arrays by path: "predictor/l1/W"."""

    is_writer = True

    def __init__(self, target: dict[str, Any] | None = None, path: str = "") -> None:
        self.target: dict[str, Any] = {} if target is None else target
        self.path = path

    def __getitem__(self, key: str) -> DictionarySerializer:
        return DictionarySerializer(self.target, f"{self.path}{key.strip('/')}/")

    def __call__(self, key: str, value: Any) -> Any:
        """Pass a value through, by its name."""
        self.target[self.path + key.lstrip("/")] = (
            np.asarray(value) if value is not None else np.asarray(None)
        )
        return value

    def save(self, obj: Any) -> None:
        """Collect the arrays of an object."""
        obj.serialize(self)


class NpzDeserializer:
    """Gives arrays of a file by path."""

    is_writer = False

    def __init__(
        self, npz: Any, path: str = "", strict: bool = True, ignore_names: Any = None
    ) -> None:
        self.npz, self.path, self.strict = npz, path, strict
        names = (
            [ignore_names]
            if isinstance(ignore_names, str) or callable(ignore_names)
            else ignore_names
        )
        self.ignore_names = list(names or ())

    def __getitem__(self, key: str) -> NpzDeserializer:
        return NpzDeserializer(
            self.npz, f"{self.path}{key.strip('/')}/", self.strict, self.ignore_names
        )

    def __call__(self, key: str, value: Any) -> Any:
        """Pass a value through, by its name."""
        name = self.path + key.lstrip("/")
        if any(name == x if isinstance(x, str) else x(name) for x in self.ignore_names):
            return value
        if name not in self.npz:
            if self.strict:
                raise KeyError(f"{name} is not a file in the archive")
            return value
        found = self.npz[name]
        if found.dtype == object or (found.ndim == 0 and found[()] is None):
            return None
        if isinstance(value, np.ndarray) and value.shape != found.shape and value.size:
            raise ValueError(
                f"{name} in the file has the shape {found.shape}; the parameter has {value.shape}"
            )
        if value is None or isinstance(value, np.ndarray):
            return found
        return type(value)(found) if isinstance(value, (int, float, bool, str)) else found

    def load(self, obj: Any) -> None:
        """Give an object its arrays."""
        obj.serialize(self)


def save_npz(file: Any, obj: Any, compression: bool = True) -> None:
    """Write an object to a NumPy archive."""
    writer = DictionarySerializer()
    writer.save(obj)
    plain = {k: v for k, v in writer.target.items() if v.dtype != object}
    save = np.savez_compressed if compression else np.savez
    if isinstance(file, (str, os.PathLike)):
        with open(file, "wb") as opened:
            save(opened, **plain)
    else:
        save(file, **plain)


def load_npz(
    file: Any, obj: Any, path: str = "", strict: bool = True, ignore_names: Any = None
) -> None:
    """Read an object from a NumPy archive; nothing in it is executed."""
    with np.load(file, allow_pickle=False) as npz:
        NpzDeserializer(npz, path, strict, ignore_names).load(obj)


class HDF5Serializer(DictionarySerializer):
    """Collects arrays for an HDF5 file."""


class HDF5Deserializer(NpzDeserializer):
    """Gives arrays of an HDF5 file by path."""


def save_hdf5(filename: Any, obj: Any, compression: int = 4) -> None:
    """Write an object to an HDF5 file (needs h5py)."""
    h5py = require("h5py", "chainer", "an HDF5 file")
    writer = HDF5Serializer()
    writer.save(obj)
    with h5py.File(os.fspath(filename), "w") as file:
        for name, value in writer.target.items():
            if value.dtype != object:
                options = {"compression": compression} if value.ndim else {}
                file.create_dataset(name, data=value, **options)


def load_hdf5(filename: Any, obj: Any) -> None:
    """Read an object from an HDF5 file (needs h5py)."""
    h5py = require("h5py", "chainer", "an HDF5 file")
    with h5py.File(os.fspath(filename), "r") as file:
        found: dict[str, Any] = {}
        file.visititems(
            lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None
        )
    HDF5Deserializer({name: np.asarray(value) for name, value in found.items()}).load(obj)
