"""`chainer.utils`: type checks, and small helpers that programs use."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...core.imports import require
from . import type_check
from .walker_alias import WalkerAlias

__all__ = [
    "WalkerAlias",
    "force_array",
    "open_hdf5",
    "type_check",
]


def force_array(x: Any, dtype: Any = None) -> Any:
    """Return a NumPy array of a number or array."""
    return np.asarray(x, dtype)


def open_hdf5(path: str | os.PathLike[str], mode: str = "r") -> Any:
    """Open an HDF5 file with h5py."""
    return require("h5py", "chainer", "an HDF5 file").File(os.fspath(path), mode)
