"""Masked arrays of NumPy: a tensor has no mask, so what is masked must be filled before."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .dtype import Array
from .errors import ArgumentError


def plain_array(array: Array, what: str) -> Array:
    """Return an array as one of no subclass, without a copy; raise if elements are masked.

    >>> plain_array(np.ma.array([1, 2]), "data")
    array([1, 2])
    """
    if array.__class__ is np.ndarray:
        return array
    check_unmasked(array, what)
    return array.view(np.ndarray)


def check_unmasked(data: Any, what: str) -> None:
    """Raise if elements of an array are masked: their values would count as if they were not."""
    masked = sys.modules.get("numpy.ma")  # who has made one has loaded it
    if masked is None or not isinstance(data, masked.MaskedArray):
        return
    count = int(masked.count_masked(data))
    if count:
        raise ArgumentError(
            f"{what} has {count} masked element{'s' * (count > 1)}, and tensors have no masks; say "
            "what stands there with data.filled(value), or drop them with data.compressed()"
        )
