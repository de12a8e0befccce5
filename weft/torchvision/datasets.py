"""torchvision.datasets: data sets in local files; nothing is downloaded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .. import data as core_data
from ..torch.adoption import adopt
from ..torch.tensor import wrap
from ..torch.utils.data import Dataset

Array = np.ndarray[Any, Any]


class VisionDataset(Dataset):
    """Images and labels; a transform makes of each what a network takes."""

    def __init__(self, root: Any, transform: Any = None, target_transform: Any = None) -> None:
        self.root = root
        self.transform, self.target_transform = transform, target_transform
        self.data: Any = []
        self.targets: Any = []

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        image, target = np.asarray(self.data[int(index)]), int(self.targets[int(index)])
        shown = image if self.transform is None else adopt(self.transform(image))
        return shown, target if self.target_transform is None else self.target_transform(target)


class MNIST(VisionDataset):
    """Handwritten digits, from IDX files in the folder or in `<name>/raw` below it."""

    classes = tuple(str(n) for n in range(10))

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        found = core_data.load_mnist(
            _folder(root, type(self).__name__), "train" if train else "test"
        )
        images, labels = found.tensors
        bytes_ = np.rint(np.asarray(images)[:, 0] * 255).astype(np.uint8)
        self.train = train
        self.data = wrap(bytes_)
        self.targets = adopt(labels)


class FashionMNIST(MNIST):
    """Images of clothes, from files as MNIST's."""


class KMNIST(MNIST):
    """Handwritten characters, from files as MNIST's."""


def _folder(root: Any, name: str) -> Path:
    """Return where the files of a data set are; raise if they are nowhere."""
    places = [Path(root) / name / "raw", Path(root) / name, Path(root)]
    for place in places:
        if place.is_dir() and any("idx" in entry for entry in os.listdir(place)):
            return place
    raise RuntimeError(
        f"Dataset not found. Nothing is downloaded: put the files of {name} (train-images-idx3-"
        f"ubyte.gz and its three relatives) into {places[0]}"
    )


class CIFAR10(VisionDataset):
    """Small colour images of ten kinds."""

    _load = staticmethod(core_data.load_cifar10)

    def __init__(
        self,
        root: Any,
        train: bool = True,
        transform: Any = None,
        target_transform: Any = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform, target_transform)
        found: Any = self._load(root, "train" if train else "test")
        self.train = train
        items = [found[i] for i in range(len(found))]
        self.data = np.stack([_bytes(image) for image, _ in items])
        self.targets = [int(label) for _, label in items]


class CIFAR100(CIFAR10):
    """Small colour images of a hundred kinds."""

    _load = staticmethod(core_data.load_cifar100)


def _bytes(image: Any) -> Array:
    """Return an image as (height, width, channels), in bytes."""
    pixels = np.asarray(image)
    if pixels.shape[0] in (1, 3):
        pixels = pixels.transpose(1, 2, 0)
    return np.rint(pixels * 255).astype(np.uint8) if pixels.dtype.kind == "f" else pixels


class ImageFolder(VisionDataset):
    """Images in folders, one for each class."""

    def __init__(
        self, root: Any, transform: Any = None, target_transform: Any = None, **_: Any
    ) -> None:
        super().__init__(root, transform, target_transform)
        self._found = core_data.ImageFolder(root)
        self.classes = list(self._found.classes)
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: Any) -> Any:
        image, target = self._found[index]
        shown = image if self.transform is None else adopt(self.transform(image))
        return shown, target if self.target_transform is None else self.target_transform(target)


class FakeData(VisionDataset):
    """Random images, for trying things out."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Any = None,
        target_transform: Any = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(None, transform, target_transform)
        self.size, self.image_size, self.num_classes = size, image_size, num_classes
        self.random_offset = random_offset

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= int(index) < self.size:
            raise IndexError(f"FakeData index {index} out of range")
        random = np.random.default_rng(int(index) + self.random_offset)
        channels, height, width = self.image_size
        image = random.integers(0, 256, (height, width, channels), np.uint8)
        target = int(random.integers(self.num_classes))
        shown = image if self.transform is None else adopt(self.transform(image))
        return shown, target if self.target_transform is None else self.target_transform(target)
