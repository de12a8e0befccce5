"""The layers HDF5Data and HDF5Output: arrays in HDF5 files, by the names of blobs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...core.imports import require
from ...data import DataFileError
from ...data.errors import check_file
from ..errors import CaffeError
from ..inputs_protocol import Array
from .base import Batches, BatchStream, checked_batch_size
from .listing import read_lines

_MOST_COMPRESSED = 1100  # gzip makes data no smaller than that; others at the same scale


class Hdf5Batches(Batches):
    """Rows of the datasets that have the names of the tops, file after file."""

    def __init__(self, layer: Any, source: str, seed: int) -> None:
        param = layer.hdf5_data_param
        super().__init__(seed)
        self.layer, self.source = layer.name, source
        self.batch_size = checked_batch_size(layer.name, param.batch_size)
        self.names = list(layer.top)
        self.shuffle = bool(param.shuffle)
        self.files = read_lines(source)
        if not self.files:
            raise CaffeError(f"layer {layer.name!r}: {source} lists no HDF5 file")
        if layer.has("transform_param"):
            raise CaffeError(f"layer {layer.name!r}: HDF5Data does not transform data")
        self._kept: tuple[str, list[Array]] | None = None
        self.shapes = [(self.batch_size, *array.shape[1:]) for array in self._arrays(self.files[0])]
        self.are_at_hand = len(self.files) == 1  # which stays in memory

    def stream(self, start: int) -> BatchStream:
        """Yield batches; they go on in the next file, and in the next round."""
        rows = _Rows(self, start * self.batch_size)
        while True:
            parts = list(self._parts(rows))
            if len(parts) == 1:
                yield parts[0]
            else:
                yield [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]

    def _parts(self, rows: _Rows) -> Iterator[list[Array]]:
        missing = self.batch_size
        while missing:
            arrays, chosen = rows.take(missing)
            missing -= len(chosen)
            # Rows in their order are a view, which nobody writes to.
            rows_of = chosen if self.shuffle else slice(int(chosen[0]), int(chosen[-1]) + 1)
            yield [array[rows_of] for array in arrays]

    def round_length(self) -> int:
        """Return the number of rows of all files."""
        return sum(len(self.arrays_of(file)[0]) for file in self.files)

    def arrays_of(self, file: str) -> list[Array]:
        """Return the arrays of a file; the last one is kept."""
        if self._kept is None or self._kept[0] != file:
            self._kept = None  # before the next is read: one file at a time is in memory
            self._kept = file, self._arrays(file)
        return self._kept[1]

    def _arrays(self, file: str) -> list[Array]:
        arrays = read_hdf5(file, self.names)
        lengths = {len(array) for array in arrays}
        if len(lengths) != 1 or 0 in lengths:
            raise CaffeError(
                f"layer {self.layer!r}: datasets of {file} must have the same number of rows, at "
                f"least one. Received: {[array.shape for array in arrays]}"
            )
        shapes = [(self.batch_size, *array.shape[1:]) for array in arrays]
        if getattr(self, "shapes", shapes) != shapes:
            raise CaffeError(
                f"layer {self.layer!r}: rows of {file} have other shapes than those of the first "
                f"file: {shapes} and {self.shapes}"
            )
        return arrays


class _Rows:
    """The rows of all files in their order, for ever, from one of them on."""

    def __init__(self, source: Hdf5Batches, start: int) -> None:
        rounds, skipped = divmod(start, source.round_length()) if start else (0, 0)
        self._source = source
        self._files = self._walk(rounds)
        self._arrays: list[Array] = []
        self._order: Array = np.zeros(0, np.int64)
        while skipped:
            skipped -= len(self.take(skipped)[1])

    def take(self, most: int) -> tuple[list[Array], Array]:
        """Return some rows that follow, as the arrays of a file and places in them."""
        if not len(self._order):
            self._arrays, self._order = next(self._files)
        taken, self._order = self._order[:most], self._order[most:]
        return self._arrays, taken

    def _walk(self, start: int) -> Iterator[tuple[list[Array], Array]]:
        source = self._source
        for number in count(start):
            random = source.generator(number)
            order = self._ordered(len(source.files), random)
            for index in order:
                arrays = source.arrays_of(source.files[index])
                yield arrays, self._ordered(len(arrays[0]), random)

    def _ordered(self, size: int, random: np.random.Generator) -> Array:
        return random.permutation(size) if self._source.shuffle else np.arange(size)


def read_hdf5(path: Any, names: Sequence[str]) -> list[Array]:
    """Return datasets of an HDF5 file as arrays of float32.

    Links to other files, and datasets that lie in other files, are refused.
    """
    library = require("h5py", "caffe", "reading HDF5 files")
    shown = check_file(path)
    try:
        with library.File(shown, "r") as file:
            return [checked_dataset(library, file, shown, name) for name in names]
    except DataFileError:
        raise
    except Exception as error:  # of any kind: h5py hands out what each step of a read stumbles on
        raise DataFileError(shown, None, f"the HDF5 file cannot be read: {error}") from None


def checked_dataset(
    library: Any, file: Any, path: str, name: str, *, scalars: bool = False
) -> Array:
    """Return a dataset of an open file, after checking that it lies there and can be so large."""
    if name not in file:
        raise DataFileError(path, None, f"no dataset {name!r}; it has {', '.join(file)}")
    link = file.get(name, getlink=True)
    found = None if isinstance(link, library.ExternalLink) else file[name]
    if (
        found is None
        or not isinstance(found, library.Dataset)
        or found.is_virtual
        or found.external
    ):
        raise DataFileError(path, f"dataset {name!r}", "expected values in this file itself")
    if found.dtype.kind not in "fiu":
        raise DataFileError(path, f"dataset {name!r}", f"expected numbers, found {found.dtype}")
    if not found.shape and not scalars:
        raise DataFileError(path, f"dataset {name!r}", "expected rows, found a single number")
    size = found.size * max(4, found.dtype.itemsize)
    if size > _MOST_COMPRESSED * os.path.getsize(path):
        raise DataFileError(
            path, f"dataset {name!r}", f"it claims {size} bytes, more than the file can hold"
        )
    return np.asarray(found[()], np.float32)


class Hdf5Output:
    """The layer HDF5Output: what it is given is added to the datasets "data" and "label"."""

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)
        library = require("h5py", "caffe", "writing HDF5 files")
        try:
            self._file = library.File(self.path, "w")
        except OSError as error:
            raise DataFileError(self.path, None, f"cannot write the HDF5 file: {error}") from None

    def write(self, data: Array, label: Array) -> None:
        """Add the rows of a batch."""
        if len(data) != len(label):
            raise CaffeError(
                f"HDF5Output takes blobs of as many rows. Received: {data.shape}, {label.shape}"
            )
        for name, rows in (("data", data), ("label", label)):
            self._append(name, np.asarray(rows, np.float32))

    def _append(self, name: str, rows: Array) -> None:
        if name not in self._file:
            self._file.create_dataset(name, data=rows, maxshape=(None, *rows.shape[1:]))
            return
        held = self._file[name]
        if held.shape[1:] != rows.shape[1:]:
            raise CaffeError(
                f"HDF5Output: rows of {name!r} had the shape {held.shape[1:]}, "
                f"now they have {rows.shape[1:]}"
            )
        held.resize(len(held) + len(rows), axis=0)
        held[len(held) - len(rows) :] = rows

    def flush(self) -> None:
        """Let others see what was added so far."""
        self._file.flush()

    def close(self) -> None:
        """Write the file to its end."""
        self._file.close()


def write_hdf5(path: Any, arrays: dict[str, Any]) -> None:
    """Write arrays as datasets of one HDF5 file."""
    library = require("h5py", "caffe", "writing HDF5 files")
    with library.File(os.fspath(path), "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=np.asarray(array, np.float32))
