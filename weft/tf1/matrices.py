"""Ranges of numbers, and matrices that follow from a few of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from .dtypes import as_dtype
from .environment import NotKnownError
from .recording import (
    Tensor,
    constant,
    convert_to_tensor,
    known_int,
    pair,
    record,
)


def range_(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range"
) -> Tensor:
    """Return numbers from start up to limit."""
    if limit is None:
        start, limit = 0, start
    bounds = [convert_to_tensor(x) for x in (start, limit, delta)]
    kinds = [t.dtype for t in bounds]
    kind = (
        as_dtype(dtype) if dtype is not None else max(kinds, key=lambda k: (k.is_floating, k.size))
    )

    def compute(*given: Any) -> Any:
        first, last, step = (x.item() if isinstance(x, np.ndarray) else x for x in given)
        if all(isinstance(x, (int, float)) for x in (first, last, step)):
            return np.arange(first, last, step).astype(kind.dtype)
        raise NotKnownError

    made: Tensor = record(
        "Range", compute, bounds, static=[0, 1, 2], name=name, dtype=kind, differentiable=False
    )
    return made


def linspace(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """Return num numbers from start to stop."""
    first, last = pair("LinSpace", start, stop)
    count = known_int(num, "num")
    steps = np.linspace(0, 1, count).astype(first.dtype.dtype)
    made: Tensor = record(
        "LinSpace", lambda a, b, s: a + (b - a) * s, [first, last, constant(steps)], name=name
    )
    return made


lin_space = linspace


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Tensor:
    """Return the identity matrix."""
    rows = known_int(num_rows, "num_rows")
    columns = rows if num_columns is None else known_int(num_columns, "num_columns")
    matrix = np.eye(rows, columns, dtype=as_dtype(dtype).dtype)
    return constant(
        np.broadcast_to(matrix, (*(batch_shape or ()), rows, columns)).copy(), name=name or "eye"
    )


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Return a matrix with a diagonal."""
    made: Tensor = record("Diag", F.diag_embed, [diagonal], name=name)
    return made


matrix_diag = diag


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """Return the diagonal of matrices."""
    made: Tensor = record("DiagPart", lambda x: F.diagonal(x, 0, -2, -1), [input], name=name)
    return made


matrix_diag_part = diag_part


def matrix_band_part(input: Any, num_lower: int, num_upper: int, name: str | None = None) -> Tensor:
    """Return matrices in which only a band around the diagonal is left."""

    def compute(x: Any) -> Any:
        kept = x if num_upper < 0 else F.tril(x, num_upper)
        return kept if num_lower < 0 else F.triu(kept, -num_lower)

    made: Tensor = record("MatrixBandPart", compute, [input], name=name)
    return made


def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return grids of coordinates."""
    order = kwargs.get("indexing", "xy")
    made = record(
        "Meshgrid",
        lambda *xs: tuple(F.meshgrid(*xs, indexing=order)),
        list(args),
        outputs=len(args),
        name=kwargs.get("name"),
    )
    return list(made) if len(args) > 1 else [made]
