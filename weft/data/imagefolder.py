"""Folders of images, one subfolder for each class, read with pillow."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..core.imports import require
from .checks import as_choice, check_callable
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
_MODES: Final = ("RGB", "L", "RGBA")
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
    as_choice("read_image", "mode", mode, _MODES)
    shown = check_file(path)
    image_module = require("PIL.Image", "image", "reading images")
    operations = require("PIL.ImageOps", "image", "reading images")
    try:
        with image_module.open(shown) as image:
            upright = operations.exif_transpose(image)  # cameras store a rotation beside the pixels
            return np.array(upright.convert(mode))
    except (*DAMAGED, image_module.DecompressionBombError) as error:
        raise DataFileError(shown, None, f"expected an image: {error}") from None


class ImageFolder(Dataset):
    """Images in `root/class/name.png`, as (image, class number).

    Classes are the subfolders of `root` in alphabetical order, files below them at any depth;
    hidden files and other kinds of files are passed over. `transform` is applied to the array of
    bytes, (height, width, channels); by default it is `ToTensor()`, which gives a float32 tensor
    of shape (channels, height, width). `mode` is "RGB", "L" (grey) or "RGBA".
    """

    def __init__(
        self,
        root: Any,
        transform: Callable[[Any], Any] | None = None,
        *,
        target_transform: Callable[[int], Any] | None = None,
        mode: str = "RGB",
    ) -> None:
        self.root = check_directory(root)
        self.transform = ToTensor() if transform is None else transform
        check_callable(self, "transform", self.transform)
        self._target_transform = target_transform
        self._mode = as_choice(self, "mode", mode, _MODES)
        self.classes = _class_names(self.root)
        self.class_to_index = {name: i for i, name in enumerate(self.classes)}
        found = [(path, i) for i, name in enumerate(self.classes) for path in self._images(name)]
        self.paths = [path for path, _ in found]
        self.targets = np.array([i for _, i in found], np.int64)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        i = normal_index(index, len(self), "ImageFolder")
        image = self.transform(read_image(self.paths[i], self._mode))
        target = int(self.targets[i])
        return image, target if self._target_transform is None else self._target_transform(target)

    def _images(self, name: str) -> list[str]:
        folder = os.path.join(self.root, name)
        found = sorted(
            os.path.join(parent, file)
            for parent, _, files in os.walk(folder, followlinks=True)
            for file in files
            if file.lower().endswith(IMAGE_EXTENSIONS) and not file.startswith(".")
        )
        if not found:
            raise DataFileError(
                folder, None, f"expected images ({', '.join(IMAGE_EXTENSIONS)}) of class {name!r}"
            )
        return found


def _class_names(root: str) -> list[str]:
    names = sorted(
        entry.name
        for entry in os.scandir(root)
        if entry.is_dir() and not entry.name.startswith(".")
    )
    if not names:
        raise DataFileError(root, None, "expected one subfolder for each class, found no subfolder")
    return names
