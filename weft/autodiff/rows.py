"""Apply a linear map to every row of a basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.op import F
from ..core.tensor import constant

LinearMap = Callable[[list[Any]], list[Any]]


def map_rows(linear: LinearMap, batches: Sequence[Any]) -> list[Any]:
    """Return the results of a map of lists of tensors, for each row of the batches, stacked.

    A result of None, for something that does not depend on the row, stays None.
    """
    count = batches[0].shape[0]
    if not count:  # one row, to learn the shapes
        once = linear([constant(np.zeros(batch.shape[1:], batch.dtype)) for batch in batches])
        return [None if y is None else F.stack([y])[:0] for y in once]
    found = [linear([batch[i] for batch in batches]) for i in range(count)]
    columns = zip(*found, strict=True)
    return [None if column[0] is None else F.stack(list(column)) for column in columns]
