"""Databases and files that nets read, made from arrays and from images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..binary import serialize_message
from ..blobs import array_blob
from ..errors import CaffeError
from ..inputs_protocol import Array
from .databases import make_database, open_database
from .datum import datum_of, encoded_datum, format_datum, read_datum
from .hdf5 import write_hdf5
from .images import read_pixels
from .listing import read_labelled

_AT_ONCE = 1000  # records of a transaction, as Caffe's tools write them


def write_database(path: Any, records: Iterable[tuple[bytes, bytes]], backend: str) -> int:
    """Make a database of records; return how many there are."""
    os.makedirs(os.path.dirname(os.fspath(path)) or ".", exist_ok=True)
    total, remaining = 0, iter(records)
    with closing(make_database(path, backend)) as database:
        while some := list(islice(remaining, _AT_ONCE)):
            database.put(some)
            total += len(some)
    return total


def write_arrays(path: Any, images: Any, labels: Any, backend: str = "LMDB") -> int:
    """Make a database of images (n, channels, height, width) and n labels; return n.

    >>> import os, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_arrays(os.path.join(folder, "db"), np.zeros((3, 1, 2, 2), "u1"), [0, 1, 2])
    3
    """
    pixels, numbers = as_images(images), np.asarray(labels).reshape(-1)
    if len(pixels) != len(numbers):
        raise CaffeError(f"there are {len(pixels)} images and {len(numbers)} labels")
    pairs = zip(pixels, numbers.tolist(), strict=True)
    records = (
        (b"%08d" % i, format_datum(datum_of(image, label)))
        for i, (image, label) in enumerate(pairs)
    )
    return write_database(path, records, backend)


def write_hdf5_list(path: Any, images: Any, labels: Any) -> int:
    """Make an HDF5 file with "data" and "label", and beside it the list that HDF5Data reads.

    path   of the list, e.g. train.txt; the arrays go into train.h5
    """
    listing = Path(path)
    file = listing.with_suffix(".h5")
    if listing.suffix == ".h5" or listing.exists() or file.exists():
        raise CaffeError(f"{listing} must be a new text file, and so must {file} be new")
    listing.parent.mkdir(parents=True, exist_ok=True)
    write_hdf5(file, {"data": images, "label": labels})
    listing.write_text(f"{file}\n", encoding="utf-8")
    return len(images)


def as_images(images: Any) -> Array:
    """Return images (n, height, width) or (n, channels, height, width) as the latter."""
    pixels = np.asarray(images)
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    if pixels.ndim != 4:
        raise CaffeError(
            "images must be (n, height, width) or (n, channels, height, width). "
            f"Received: {pixels.shape}"
        )
    return pixels


def image_records(
    root: Any,
    listing: Any,
    *,
    gray: bool = False,
    shuffle: int | None = None,
    size: tuple[int, int] | None = None,
    encoded: bool = False,
    check_size: bool = False,
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of the images of a list, as Caffe's convert_imageset makes them.

    root        what the paths of the list begin at
    shuffle     the seed of another order than the list's
    size        (height, width) to resize to
    encoded     keep the files as they are
    check_size  refuse images that differ in size
    """
    entries = read_labelled(listing)
    order = range(len(entries)) if shuffle is None else _shuffled(shuffle, len(entries))
    first: tuple[int, ...] | None = None
    for number, index in enumerate(order):
        name, label = entries[index]
        path = os.path.join(os.fspath(root), name)
        key = f"{number:08d}_{name}".encode()
        if encoded:
            yield key, format_datum(encoded_datum(_content(path), label))
            continue
        height, width = size or (0, 0)
        pixels = read_pixels(path, color=not gray, height=height, width=width)
        first = first or pixels.shape
        if check_size and pixels.shape != first:
            raise CaffeError(f"{path}: its shape {pixels.shape} differs from the first, {first}")
        yield key, format_datum(datum_of(pixels, label))


def _shuffled(seed: int, count: int) -> list[int]:
    order: list[int] = np.random.default_rng(seed).permutation(count).tolist()
    return order


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def mean_of_database(path: Any, backend: str = "LMDB") -> Array:
    """Return the mean image (channels, height, width) of a database."""
    total: Any = None
    count = 0
    with closing(open_database(path, backend)) as database:
        for key, value in database.records():
            where = f"record {key!r} of {path}"
            pixels, _ = read_datum(value, where)
            if total is None:
                total = np.zeros(pixels.shape, np.float64)
            if pixels.shape != total.shape:
                raise CaffeError(
                    f"{where}: its shape {pixels.shape} differs from the first, {total.shape}"
                )
            total += pixels
            count += 1
    if total is None:
        raise CaffeError(f"the database {path} is empty")
    return np.asarray(total / count, np.float32)


def write_mean(path: Any, mean: Array) -> None:
    """Write a mean image as the blob that mean_file reads."""
    Path(path).write_bytes(serialize_message(array_blob(mean[None])))
