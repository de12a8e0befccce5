"""Transforms and augmentation of images, in NumPy alone, random from the loader's streams.

Enter and leave: one image as an array (height, width, channels) or a tensor (channels, height,
width), see base.py; `MixUp` and `CutMix` take batches. Random numbers come from
`item_generator()`, so that results do not depend on the number of workers.
"""

from .base import Compose, Normalize, RandomApply, RandomChoice, ToTensor, Transform
from .colour import ColorJitter, Grayscale, RandomGrayscale
from .geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomRotation,
    RandomVerticalFlip,
    Resize,
)
from .mixing import CutMix, MixUp

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "CutMix",
    "Grayscale",
    "MixUp",
    "Normalize",
    "Pad",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
    "ToTensor",
    "Transform",
]
