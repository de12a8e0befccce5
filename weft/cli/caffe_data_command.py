"""`weft caffe convert-images`, `convert-arrays` and `mean`: databases that nets of Caffe read."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..caffe.inputs.writing import (
    as_images,
    image_records,
    mean_of_database,
    write_arrays,
    write_database,
    write_hdf5_list,
    write_mean,
)
from ..data import read_idx, read_npy, read_npz
from .errors import UsageError

BACKENDS = ("lmdb", "leveldb")
Add = Callable[[str, Callable[[Namespace], int], str], Any]


def add_data_commands(add: Add) -> None:
    """Add the commands; `add(name, function, help)` returns a parser."""
    made = add("convert-images", convert_images, "make a database of a list of image files")
    made.add_argument("root", help="the folder that the paths of the list begin at")
    made.add_argument("list", help="a text file with a path and a label on each line")
    made.add_argument("out", help="the database, a new folder")
    _add_backend(made, BACKENDS)
    made.add_argument("--gray", action="store_true", help="make images grey")
    made.add_argument("--shuffle", type=int, metavar="SEED", help="put them into another order")
    made.add_argument("--resize", metavar="HxW", type=_size, help="e.g. 256x256")
    made.add_argument("--encoded", action="store_true", help="keep the files as they are")
    made.add_argument("--check-size", action="store_true", help="refuse images of other sizes")
    made = add("convert-arrays", convert_arrays, "make a database, or HDF5 files, of arrays")
    made.add_argument("images", help="an IDX, .npy or .npz file (with x and y)")
    made.add_argument("labels", nargs="?", help="an IDX or .npy file; of an .npz, none")
    made.add_argument("out", help="a new folder; for HDF5 the list file, e.g. train.txt")
    _add_backend(made, (*BACKENDS, "hdf5"))
    made.add_argument(
        "--scale", type=float, default=1.0, help="of HDF5, whose layer does not scale"
    )
    made = add("mean", compute_mean, "write the mean image of a database for mean_file")
    made.add_argument("database", help="an LMDB or LevelDB")
    made.add_argument("out", help="a .binaryproto file")
    _add_backend(made, BACKENDS)


def _add_backend(made: Any, choices: tuple[str, ...]) -> None:
    made.add_argument("--backend", choices=choices, default="lmdb", help="default: lmdb")


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    return int(height), int(width)


def convert_images(options: Namespace) -> int:
    """Make a database of image files."""
    records = image_records(
        options.root,
        options.list,
        gray=options.gray,
        shuffle=options.shuffle,
        size=options.resize,
        encoded=options.encoded,
        check_size=options.check_size,
    )
    count = write_database(options.out, records, options.backend)
    print(f"{count} images in {options.out}")
    return 0


def convert_arrays(options: Namespace) -> int:
    """Make a database, or HDF5 files, of arrays."""
    images, labels = _arrays(options.images, options.labels)
    if options.backend == "hdf5":
        scaled = as_images(images).astype(np.float32) * np.float32(options.scale)
        count = write_hdf5_list(options.out, scaled, labels)
    elif options.scale != 1.0:
        raise UsageError("--scale is for HDF5; a database is scaled by transform_param")
    else:
        count = write_arrays(options.out, images, labels, options.backend)
    print(f"{count} images in {options.out}")
    return 0


def compute_mean(options: Namespace) -> int:
    """Write the mean image of a database."""
    mean = mean_of_database(options.database, options.backend)
    write_mean(options.out, mean)
    channels = ", ".join(f"{value:.6g}" for value in mean.mean((1, 2)).tolist())
    print(f"the mean {mean.shape} is in {options.out}; of its channels: {channels}")
    return 0


def _arrays(images: str, labels: str | None) -> tuple[Any, Any]:
    if Path(images).suffix == ".npz":
        if labels is not None:
            raise UsageError(f"{images} has the labels itself, as y. Received: {labels}")
        found = read_npz(images)
        if not {"x", "y"} <= found.keys():
            raise UsageError(f"{images} must hold x and y. Received: {', '.join(found)}")
        return found["x"], found["y"]
    if labels is None:
        raise UsageError(f"{images} needs a file of labels beside it")
    return _array(images), _array(labels)


def _array(path: str) -> Any:
    return read_npy(path) if Path(path).suffix == ".npy" else read_idx(path)
