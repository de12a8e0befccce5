"""Operators that move elements without changing them: shapes, axes, joins, splits, padding."""

from . import axes, broadcast, diagonal, flip, join, pad, repeat, reshape, split, windows
from .axes import PROPERTIES

__all__ = [
    "PROPERTIES",  # Tensor properties, for the facade to attach
    "axes",
    "broadcast",
    "diagonal",
    "flip",
    "join",
    "pad",
    "repeat",
    "reshape",
    "split",
    "windows",
]
