"""torchvision.transforms: Weft's transforms of images, under torchvision's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import transforms as core_transforms
from ..torch.adoption import adopt
from ..torch.names import names
from ..torch.tensor import wrap

SAME = names("""
    CenterCrop ColorJitter Grayscale Pad RandomApply RandomChoice RandomCrop
    RandomErasing RandomGrayscale RandomHorizontalFlip RandomResizedCrop RandomRotation
    RandomVerticalFlip Resize
""")
CLASSES: dict[str, Any] = {name: getattr(core_transforms, name) for name in SAME}
globals().update(CLASSES)


class Compose:
    """Transforms one after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = list(transforms)

    def __call__(self, image: Any) -> Any:
        """Return the image after all of them."""
        for transform in self.transforms:
            image = transform(image)
        return image

    def __repr__(self) -> str:
        lines = "\n".join(f"    {transform!r}" for transform in self.transforms)
        return f"Compose(\n{lines}\n)"


class ToTensor:
    """Turn an image of bytes into a tensor of floats from 0 to 1, channels first."""

    def __call__(self, image: Any) -> Any:
        """Return the tensor."""
        pixels = np.asarray(image)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        moved = np.ascontiguousarray(pixels.transpose(2, 0, 1))
        return wrap(
            moved.astype(np.float32) / np.float32(255) if moved.dtype == np.uint8 else moved
        )

    def __repr__(self) -> str:
        return "ToTensor()"


class PILToTensor:
    """Turn an image into a tensor of its own numbers, channels first."""

    def __call__(self, image: Any) -> Any:
        """Return the tensor."""
        pixels = np.asarray(image)
        pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
        return wrap(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


class ConvertImageDtype:
    """Turn a tensor of bytes into one of floats from 0 to 1."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, image: Any) -> Any:
        """Return the tensor."""
        scaled = image.to(self.dtype)
        return scaled / 255 if image.dtype == np.uint8 else scaled


class Normalize:
    """Subtract means of channels, and divide by their deviations."""

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = mean, std
        self._shift = np.asarray(mean, np.float32).reshape(-1, 1, 1)
        self._scale = np.asarray(std, np.float32).reshape(-1, 1, 1)

    def __call__(self, tensor: Any) -> Any:
        """Return the tensor."""
        return wrap((np.asarray(tensor.detach()) - self._shift) / self._scale)

    def __repr__(self) -> str:
        return f"Normalize(mean={self.mean}, std={self.std})"


class Lambda:
    """A function of an image."""

    def __init__(self, lambd: Any) -> None:
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        """Return what the function makes of the image."""
        return adopt(self.lambd(image))
