"""Apply a linear map to every row of a basis at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .batching import vmap

LinearMap = Callable[[list[Any]], list[Any]]


def map_rows(linear: LinearMap, batches: Sequence[Any]) -> list[Any]:
    """Return the results of a map of lists of tensors, for each row of the batches, stacked."""
    found: list[Any] = vmap(linear)(list(batches))
    return found
