"""Index tensors of triangles, as NumPy names them."""

from __future__ import annotations

import numpy as np

from ...core.errors import ArgumentError
from ...core.op import composite
from ...core.shape import as_int
from ...core.tensor import Tensor, constant
from .._operands import names_errors


@composite()
@names_errors
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the row and column indices of the lower triangle of an (n, m) matrix.

    k moves the diagonal, up if positive; m is n unless given.

    >>> import weft as wf
    >>> wf.tril_indices(2)
    (tensor([0, 1, 1]), tensor([0, 0, 1]))
    """
    rows, columns, k = _sizes(n, k, m)
    return _where(np.tri(rows, columns, k, bool))


@composite()
@names_errors
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the row and column indices of the upper triangle of an (n, m) matrix.

    >>> import weft as wf
    >>> wf.triu_indices(2)
    (tensor([0, 0, 1]), tensor([0, 1, 1]))
    """
    rows, columns, k = _sizes(n, k, m)
    return _where(~np.tri(rows, columns, k - 1, bool))


def _sizes(n: int, k: int, m: int | None) -> tuple[int, int, int]:
    rows = as_int(n, "n")
    columns = rows if m is None else as_int(m, "m")
    if rows < 0 or columns < 0:
        raise ArgumentError(f"sizes must not be negative. Received: {(rows, columns)}")
    return rows, columns, as_int(k, "k")


def _where(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool]]) -> tuple[Tensor, Tensor]:
    rows, columns = np.nonzero(mask)
    return constant(rows.astype(np.int64)), constant(columns.astype(np.int64))
