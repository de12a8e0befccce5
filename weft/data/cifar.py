"""CIFAR-10 and CIFAR-100: small colour images, from the archives as they are published.

The "python" archives hold pickles, which are read without being run (see `plainpickle`); the
"binary" ones hold rows of bytes: one label (two in CIFAR-100: coarse, fine), then 3 x 32 x 32
values. Both come as .tar.gz files or as the folders in them; nothing is downloaded.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..core.tensor import Tensor, wrap
from .bounded import read_at_most
from .checks import as_choice
from .dataset import Dataset, normal_index
from .errors import DataFileError, DataFileMissingError, check_file
from .inflate import Inflating
from .plainpickle import load_plain_pickle
from .streams import Array

_SHAPE: Final = (3, 32, 32)
_PIXELS: Final = 3 * 32 * 32
_LARGEST: Final = 1 << 28  # bytes of one file: the published ones have 155 MB at most
_ARCHIVE: Final = 1 << 30  # bytes of a whole archive, expanded
_GZIP_MAGIC: Final = b"\x1f\x8b"
_SPLITS: Final = ("train", "test")


@dataclass(frozen=True)
class _Form:
    """One of the four archives.

    name         its folder, and the .tar.gz file without the ending
    files        names of the files of each split
    label        which label is read: a key of a pickle, or the place of a byte in a row
    label_bytes  bytes of labels in a row; 0 for pickles
    names        the file with the names of classes, and the key of them if it is a pickle
    """

    name: str
    files: Mapping[str, Sequence[str]]
    label: str | int
    label_bytes: int
    names: tuple[str, str | None]


_TEN: Final = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
_TEN_BINARY: Final = {split: [f"{name}.bin" for name in names] for split, names in _TEN.items()}
_HUNDRED: Final = {"train": ["train"], "test": ["test"]}
_HUNDRED_BINARY: Final = {"train": ["train.bin"], "test": ["test.bin"]}
_CIFAR10: Final = (
    _Form("cifar-10-batches-py", _TEN, "labels", 0, ("batches.meta", "label_names")),
    _Form("cifar-10-batches-bin", _TEN_BINARY, 0, 1, ("batches.meta.txt", None)),
)
_CIFAR100: Final = {
    kind: (
        _Form("cifar-100-python", _HUNDRED, f"{kind}_labels", 0, ("meta", f"{kind}_label_names")),
        _Form("cifar-100-binary", _HUNDRED_BINARY, place, 2, (f"{kind}_label_names.txt", None)),
    )
    for place, kind in enumerate(("coarse", "fine"))
}
# Names under which the archives are published, where they differ from the folder's.
_ARCHIVES: Final = {
    "cifar-10-batches-py": "cifar-10-python",
    "cifar-10-batches-bin": "cifar-10-binary",
}


class CifarDataset(Dataset):
    """Images and labels of CIFAR, as (image, label): float32 in [0, 1] of shape (3, 32, 32), int64.

    images    the bytes, (N, 3, 32, 32); they are scaled when an image is asked for
    targets   the labels, int64
    classes   names of the labels; empty where the files do not say them
    """

    def __init__(self, images: Array, targets: Array, classes: Sequence[str] = ()) -> None:
        self.images = images
        self.targets = targets
        self.classes = list(classes)

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Any) -> tuple[Tensor, Tensor]:
        i = normal_index(index, len(self), "CifarDataset")
        return wrap(_scaled(self.images[i])), wrap(np.asarray(self.targets[i]))

    def take_batch(self, indices: Array) -> tuple[Tensor, Tensor]:
        """Return the images and labels at `indices`, all at once."""
        return wrap(_scaled(self.images[indices])), wrap(self.targets[indices])


def load_cifar10(path: Any, split: str = "train") -> CifarDataset:
    """Load CIFAR-10 from a .tar.gz archive, its folder, or the folder that one of them is in.

    split   "train" (50,000 images) or "test" (10,000)
    """
    as_choice("load_cifar10", "split", split, _SPLITS)
    return _load(path, split, _CIFAR10, 10)


def load_cifar100(path: Any, split: str = "train", *, labels: str = "fine") -> CifarDataset:
    """Load CIFAR-100 from a .tar.gz archive, its folder, or the folder that one of them is in.

    split    "train" (50,000 images) or "test" (10,000)
    labels   "fine" (100 classes) or "coarse" (20)
    """
    as_choice("load_cifar100", "split", split, _SPLITS)
    as_choice("load_cifar100", "labels", labels, tuple(_CIFAR100))
    return _load(path, split, _CIFAR100[labels], 100 if labels == "fine" else 20)


def _scaled(pixels: Array) -> Array:
    return pixels.astype(np.float32) / np.float32(255)


# -- where the files are ---------------------------------------------------------------------------

Reader = Callable[[str], bytes | None]  # the content of a file of an archive, None if it lacks it


def _load(path: Any, split: str, forms: Sequence[_Form], classes: int) -> CifarDataset:
    root = str(os.fspath(path))
    if os.path.isdir(root):
        form, place = _found(root, forms)
        if os.path.isdir(place):
            return _dataset(_folder_reader(place), place, form, split, classes)
    else:
        place = check_file(root)
        form = None
    wanted = [form] if form is not None else forms
    contents = _archive(
        place, {name for each in wanted for name in (*each.files[split], each.names[0])}
    )
    for each in wanted:
        if all(name in contents for name in each.files[split]):
            return _dataset(contents.get, place, each, split, classes)
    raise DataFileError(place, None, f"expected the files {_listed(wanted, split)} in the archive")


def _listed(forms: Sequence[_Form], split: str) -> str:
    return " or ".join(", ".join(form.files[split]) for form in forms)


def _found(root: str, forms: Sequence[_Form]) -> tuple[_Form, str]:
    """Return the form of the data in a folder, and the folder or the archive that they are in."""
    for form in forms:
        if os.path.isfile(os.path.join(root, form.files["test"][0])):
            return form, root
        published = _ARCHIVES.get(form.name, form.name)
        for name in (form.name, f"{published}.tar.gz", f"{published}.tar", f"{form.name}.tar.gz"):
            if os.path.exists(place := os.path.join(root, name)):
                return form, place
    names = ", ".join(
        f"{form.name}, {_ARCHIVES.get(form.name, form.name)}.tar.gz" for form in forms
    )
    raise DataFileMissingError(f"{root}: none of {names} is there")


def _folder_reader(folder: str) -> Reader:
    def read(name: str) -> bytes | None:
        place = os.path.join(folder, name)
        if not os.path.isfile(place):
            return None
        with open(place, "rb") as file:
            return _limited(file, place)

    return read


def _archive(path: str, wanted: set[str]) -> dict[str, bytes]:
    """Return the files of an archive that have one of the names, in any folder."""
    found = {}
    with open(path, "rb") as file:
        is_compressed = file.read(2) == _GZIP_MAGIC
        file.seek(0)
        stream: Any = _Counted(Inflating(file) if is_compressed else file, path)
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    name = os.path.basename(member.name)
                    if name in wanted and name not in found and member.isreg():
                        found[name] = _limited(archive.extractfile(member), path)
        except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
            if isinstance(error, DataFileError):
                raise
            raise DataFileError(path, f"offset {stream.at}", f"damaged archive: {error}") from None
    return found


class _Counted:
    """A stream that ends with an error where an archive grows beyond any that was published."""

    def __init__(self, stream: Any, path: str) -> None:
        self._stream = stream
        self._path = path
        self.at = 0

    def read(self, count: int) -> bytes:
        """Return up to `count` bytes."""
        content = bytes(read_at_most(self._stream, count))
        self.at += len(content)
        if self.at > _ARCHIVE:
            raise DataFileError(
                self._path, None, f"the archive expands to more than {_ARCHIVE} bytes"
            )
        return content


def _limited(stream: Any, path: str) -> bytes:
    content = read_at_most(stream, _LARGEST + 1)
    if len(content) > _LARGEST:
        raise DataFileError(path, None, f"expected {_LARGEST} bytes at most in a file of CIFAR")
    return bytes(content)


# -- what is in them -------------------------------------------------------------------------------


def _dataset(read: Reader, place: str, form: _Form, split: str, classes: int) -> CifarDataset:
    images, labels = [], []
    for name in form.files[split]:
        content = read(name)
        if content is None:
            raise DataFileMissingError(f"{place}: the file {name} is missing")
        batch = _rows if form.label_bytes else _batch
        pixels, targets = batch(content, f"{place}/{name}", form)
        strange = np.flatnonzero((targets < 0) | (targets >= classes))
        if len(strange):
            raise DataFileError(
                f"{place}/{name}",
                f"image {strange[0]}",
                f"expected a label below {classes}, found {targets[strange[0]]}",
            )
        images.append(pixels.reshape(-1, *_SHAPE))
        labels.append(targets)
    names = _class_names(read(form.names[0]), f"{place}/{form.names[0]}", form.names[1])
    return CifarDataset(np.concatenate(images), np.concatenate(labels), names)


def _rows(content: bytes, path: str, form: _Form) -> tuple[Array, Array]:
    """Return the pixels and the labels of a binary file."""
    width = form.label_bytes + _PIXELS
    if len(content) % width or not content:
        raise DataFileError(
            path,
            f"offset {len(content) // width * width}",
            f"expected rows of {width} bytes, found {len(content) % width} left over",
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, width)
    return rows[:, form.label_bytes :], rows[:, int(form.label)].astype(np.int64)


def _batch(content: bytes, path: str, form: _Form) -> tuple[Array, Array]:
    """Return the pixels and the labels of a pickle."""
    found = load_plain_pickle(content, path)
    pixels, labels = (_entry(found, key, path) for key in ("data", str(form.label)))
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.dtype != np.uint8
        or pixels.shape != (len(pixels), _PIXELS)
    ):
        raise DataFileError(path, None, f"expected 'data' to be bytes of shape (N, {_PIXELS})")
    if not isinstance(labels, list) or not all(type(n) is int and abs(n) < 1 << 31 for n in labels):
        raise DataFileError(path, None, f"expected {form.label!r} to be a list of integers")
    if len(labels) != len(pixels):
        raise DataFileError(
            path, None, f"expected {len(pixels)} labels in {form.label!r}, found {len(labels)}"
        )
    return pixels, np.array(labels, np.int64)


def _entry(found: Any, key: str, path: str) -> Any:
    """Return an entry of a dictionary whose keys are text, or bytes as Python 2 wrote them."""
    entries = found if isinstance(found, dict) else {}
    if key in entries or key.encode() in entries:
        return entries.get(key, entries.get(key.encode()))
    raise DataFileError(path, None, f"expected a dictionary with {key!r}")


def _class_names(content: bytes | None, path: str, key: str | None) -> list[str]:
    """Return the names of classes; none if the archive has no file of them."""
    if content is None:
        return []
    if key is None:
        return content.decode("utf-8", "replace").split()
    names = _entry(load_plain_pickle(content, path), key, path)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise DataFileError(path, None, f"expected {key!r} to be a list of names")
    return [n.decode("utf-8", "replace") if isinstance(n, bytes) else n for n in names]
