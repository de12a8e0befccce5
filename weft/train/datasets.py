"""Datasets by name: readers of files, synthetic problems, and text for language models."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..core.errors import ArgumentError
from ..data import (
    CsvDataset,
    Dataset,
    ExampleDataset,
    ImageFolder,
    ImageRecordDataset,
    NpzDataset,
    ParquetDataset,
    TokenWindows,
    Vocabulary,
    load_cifar10,
    load_cifar100,
    load_digits,
    load_mnist,
    make_blobs,
    make_moons,
    make_regression,
    make_shapes,
    make_sines,
    make_spirals,
    read_csv,
)
from ..data.synthetic import SHAPES
from .images import write_image
from .registry import Registry

DATASETS = Registry("dataset")
# Options that name files or directories; relative ones are meant from the configuration.
PATH_OPTIONS = ("path", "root", "directory", "paths", "index")


class Characters(TokenWindows):
    """Windows of characters of a text, with the next characters as targets.

    path     a text file, or several
    source   instead of a path: "pydoc", the documentation topics that come with Python
    length   characters in a window; `stride` from one window to the next (default: the length)
    limit    use only so many characters
    """

    def __init__(
        self,
        length: int,
        path: str | Sequence[str] | None = None,
        source: str | None = None,
        stride: int | None = None,
        limit: int | None = None,
        encoding: str = "utf-8",
    ) -> None:
        text = _text_of(path, source, encoding)[:limit]
        self.vocabulary = Vocabulary.of(text)
        super().__init__(self.vocabulary.encode(text), length, stride)


class ShapesFolder(ImageFolder):
    """A folder of images of simple shapes, which is written when it is not there yet.

    root   the folder (default: runs/shapes-N, N images in the current directory)
    """

    def __init__(
        self,
        root: str | None = None,
        n: int = 600,
        size: int = 32,
        classes: int = 4,
        noise: float = 0.05,
        seed: int = 0,
        mode: str = "RGB",
    ) -> None:
        folder = Path("runs") / f"shapes-{n}" if root is None else Path(root)
        if not folder.exists():
            write_shapes(folder, make_shapes(n, size=size, classes=classes, noise=noise, seed=seed))
        super().__init__(folder, mode=mode)


def write_shapes(folder: Path, dataset: Dataset) -> None:
    """Write images (3, H, W) as PNG files by class; the folder appears complete or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        for i in range(len(dataset)):
            image, label = dataset[i]
            place = Path(temporary) / "all" / SHAPES[int(label)]
            place.mkdir(parents=True, exist_ok=True)
            pixels = (image.numpy().transpose(1, 2, 0) * 255 + 0.5).astype(np.uint8)
            write_image(place / f"{i:05d}.png", pixels)
        (Path(temporary) / "all").rename(folder)


def _text_of(path: str | Sequence[str] | None, source: str | None, encoding: str) -> str:
    if (path is None) == (source is None):
        raise ArgumentError("characters: give either path or source = 'pydoc'")
    if path is not None:
        return "".join(
            _read(name, encoding) for name in ([path] if isinstance(path, str) else path)
        )
    if source != "pydoc":
        raise ArgumentError(f"characters: source must be 'pydoc'. Received: {source!r}")
    from pydoc_data.topics import topics  # noqa: PLC0415  (half a megabyte that few runs need)

    return "\n".join(topics[name] for name in sorted(topics))


def _read(path: str, encoding: str) -> str:
    try:
        with open(path, encoding=encoding) as file:
            return file.read()
    except (OSError, UnicodeDecodeError, LookupError) as error:
        raise ArgumentError(f"cannot read {path} as text: {error}") from None


DATASETS.add("digits", load_digits)
DATASETS.add("mnist", load_mnist)
DATASETS.add("cifar10", load_cifar10)
DATASETS.add("cifar100", load_cifar100)
DATASETS.add("csv", CsvDataset, read_csv)
DATASETS.add("parquet", ParquetDataset)
DATASETS.add("npz", NpzDataset)
DATASETS.add("image_folder", ImageFolder)
DATASETS.add("image_records", ImageRecordDataset)
DATASETS.add("tfrecord", ExampleDataset)
DATASETS.add("shapes_folder", ShapesFolder)
DATASETS.add("characters", Characters)
for _make in (make_blobs, make_moons, make_spirals, make_regression, make_sines, make_shapes):
    # A run is the same each time: without a seed these would draw one.
    DATASETS.add(_make.__name__.removeprefix("make_"), _make, seed=0)
