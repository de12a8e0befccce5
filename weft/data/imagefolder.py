"""Folders of images, one subfolder for each class, read with pillow."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError
from ..core.imports import require
from .checks import as_choice, check_callable, label_of
from .dataset import Dataset, normal_index
from .errors import DataFileError, check_directory, check_file
from .streams import Array
from .transforms import ToTensor

IMAGE_EXTENSIONS: Final = (
    ".png",
    ".jpg",
    ".jpeg",
    ".bmp",
    ".gif",
    ".ppm",
    ".pgm",
    ".pbm",
    ".tif",
    ".tiff",
    ".webp",
)
IMAGE_MODES: Final = ("RGB", "L", "RGBA")
# What the decoders of pillow raise when a file was damaged.
DAMAGED: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)


def read_image(path: Any, mode: str = "RGB") -> Array:
    """Read an image as an array of bytes, (height, width, channels); (height, width) for "L"."""
    as_choice("read_image", "mode", mode, IMAGE_MODES)
    shown = check_file(path)
    return decode_image(shown, mode, shown)


def decode_image(source: Any, mode: str, path: str, where: str | None = None) -> Array:
    """Return the image in a file or a stream; `path` and `where` name it in errors."""
    image_module = require("PIL.Image", "image", "reading images")
    operations = require("PIL.ImageOps", "image", "reading images")
    try:
        with image_module.open(source) as image:
            upright = operations.exif_transpose(image)  # cameras store a rotation beside the pixels
            return np.array(upright.convert(mode))
    except (*DAMAGED, image_module.DecompressionBombError) as error:
        raise DataFileError(path, where, f"expected an image: {error}") from None


class ImageFolder(Dataset):
    """Images in `root/class/name.png`, as (image, class number).

    transform          applied to the array of bytes, (height, width, channels); by default
                       `ToTensor()`, which gives a float32 tensor of shape (channels, height, width)
    target_transform   applied to the class number
    mode               "RGB", "L" (grey) or "RGBA"
    class_names        the classes to take, in the order of their numbers; by default all
                       subfolders of `root`, in alphabetical order
    extensions         the endings of the files to take; by default those of images
    is_valid_file      instead of endings: tells of a path whether to take it
    loader             reads a file; by default `read_image`
    allow_empty        take classes without images; otherwise they are refused

    Files stand below their class at any depth; hidden files and other kinds are passed over.
    """

    def __init__(
        self,
        root: Any,
        transform: Callable[[Any], Any] | None = None,
        *,
        target_transform: Callable[[int], Any] | None = None,
        mode: str = "RGB",
        class_names: Sequence[str] | None = None,
        extensions: Sequence[str] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        loader: Callable[[str], Any] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.root = check_directory(root)
        self.transform = ToTensor() if transform is None else transform
        check_callable(self, "transform", self.transform)
        self._target_transform = target_transform
        self._mode = as_choice(self, "mode", mode, IMAGE_MODES)
        self._load = partial(read_image, mode=self._mode) if loader is None else loader
        check_callable(self, "loader", self._load)
        is_wanted = _file_test(self, extensions, is_valid_file)
        self.classes = _class_names(self.root, class_names)
        self.class_to_index = {name: i for i, name in enumerate(self.classes)}
        found = [
            (path, i)
            for i, name in enumerate(self.classes)
            for path in self._images(name, is_wanted, allow_empty)
        ]
        self.paths = [path for path, _ in found]
        self.targets = np.array([i for _, i in found], np.int64)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Return the number of each class, under torchvision's name."""
        return self.class_to_index

    @property
    def samples(self) -> list[tuple[str, int]]:
        """Return the path and the class number of each image, as torchvision does."""
        return list(zip(self.paths, self.targets.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        i = normal_index(index, len(self), "ImageFolder")
        image = self.transform(self._load(self.paths[i]))
        target = int(self.targets[i])
        return image, target if self._target_transform is None else self._target_transform(target)

    def _images(self, name: str, is_wanted: Callable[[str], bool], allow_empty: bool) -> list[str]:
        folder = os.path.join(self.root, name)
        found = sorted(
            path
            for parent, _, files in os.walk(folder, followlinks=True)
            for file in files
            if not file.startswith(".") and is_wanted(path := os.path.join(parent, file))
        )
        if not found and not allow_empty:
            raise DataFileError(
                folder,
                None,
                f"expected images ({', '.join(IMAGE_EXTENSIONS)}, unless extensions or "
                f"is_valid_file say otherwise) of class {name!r}",
            )
        return found


def _file_test(
    owner: object,
    extensions: Sequence[str] | None,
    is_valid_file: Callable[[str], bool] | None,
) -> Callable[[str], bool]:
    """Return what tells of a path whether it is an image to take."""
    if is_valid_file is not None:
        if extensions is not None:
            raise ArgumentError(f"{label_of(owner)}: give either extensions or is_valid_file")
        check_callable(owner, "is_valid_file", is_valid_file)
        return is_valid_file
    listed = [extensions] if isinstance(extensions, str) else extensions or IMAGE_EXTENSIONS
    endings = tuple(ending.lower() for ending in listed)
    return lambda path: path.lower().endswith(endings)


def _class_names(root: str, wanted: Sequence[str] | None) -> list[str]:
    names = sorted(
        entry.name
        for entry in os.scandir(root)
        if entry.is_dir() and not entry.name.startswith(".")
    )
    if not names:
        raise DataFileError(root, None, "expected one subfolder for each class, found no subfolder")
    strange = [name for name in wanted or () if name not in names]
    if strange:
        raise DataFileError(
            root, None, f"class_names names {strange[0]!r}; the subfolders are {names}"
        )
    return names if wanted is None else list(wanted)
