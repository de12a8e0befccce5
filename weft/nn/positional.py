"""Positions for models without recurrence (Vaswani et al. 2017, arXiv:1706.03762, section 3.5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.errors import ShapeError
from ..core.tensor import Tensor, wrap
from .arguments import as_flag, as_probability, as_size
from .calls import F
from .module import Module
from .rnn_cells import check_features


def sinusoidal_positions(length: int, size: int, *, dtype: Any = None) -> Tensor:
    """Return (length, size) waves: sin(t / 10000**(2i / size)) in column 2i, cos in 2i + 1.

    >>> sinusoidal_positions(2, 4).round(decimals=2)
    tensor([[0.  , 1.  , 0.  , 1.  ],
            [0.84, 0.54, 0.01, 1.  ]])
    """
    length = as_size("sinusoidal_positions", "length", length, least=0)
    size = as_size("sinusoidal_positions", "size", size)
    frequencies = np.exp(np.arange(0, size, 2) * (-math.log(10000.0) / size))
    angles = np.arange(length)[:, None] * frequencies
    table = np.empty((length, size))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, : size // 2])  # an odd size has one sine more
    return wrap(table.astype(dt.default_float() if dtype is None else dt.as_dtype(dtype)))


class PositionalEncoding(Module):
    """Add sinusoidal positions to embeddings, then drop out.

    Input is (length, batch, d_model), (batch, length, d_model) with `batch_first`, or
    (length, d_model). The table is no part of the state: it can be computed at any time.

    >>> import weft as wf
    >>> PositionalEncoding(4, dropout=0.0)(wf.zeros(2, 1, 4)).shape
    (2, 1, 4)
    """

    _printed = ("*d_model", "dropout", "max_len")
    pe: Tensor

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.1,
        max_len: int = 5000,
        batch_first: bool = False,
        *,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.d_model = as_size(self, "d_model", d_model)
        self.dropout = as_probability(self, "dropout", dropout)
        self.max_len = as_size(self, "max_len", max_len)
        self.batch_first = as_flag(self, "batch_first", batch_first)
        table = sinusoidal_positions(self.max_len, self.d_model, dtype=dtype)
        self.register_buffer("pe", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions."""
        layout = "(batch, length, features)" if self.batch_first else "(length, batch, features)"
        check_features(
            self, x, self.d_model, ndims=(2, 3), layout=f"{layout} or (length, features)"
        )
        length = x.shape[1 if x.ndim == 3 and self.batch_first else 0]
        if length > self.max_len:
            raise ShapeError(
                f"PositionalEncoding: at most max_len={self.max_len} positions are known. "
                f"Received: length {length} in shape {x.shape}"
            )
        positions = self.pe[:length]
        if x.ndim == 3 and not self.batch_first:
            positions = F.unsqueeze(positions, 1)
        return F.dropout(x + positions, self.dropout, self.training)
