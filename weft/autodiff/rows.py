"""Apply a linear map to every row of a basis at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import F
from .batching import vmap

LinearMap = Callable[[list[Any]], list[Any]]


def map_rows(linear: LinearMap, batches: Sequence[Any]) -> list[Any]:
    """Return the results of a map of lists of tensors, for each row of the batches, stacked."""
    if _is_one(batches):  # the gradient of one number, say: no batch is needed
        return [F.unsqueeze(y, 0) for y in linear([F.squeeze(x, 0) for x in batches])]
    found: list[Any] = vmap(linear)(list(batches))
    return found


def _is_one(batches: Sequence[Any]) -> bool:
    return bool(batches) and all(x.shape[0] == 1 for x in batches)
