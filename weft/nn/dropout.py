"""Dropout layers: they drop in training only, and return their input in evaluation.

`inplace` is taken for PyTorch's sake: tensors are values, so the input never changes.
"""

from __future__ import annotations

from ..core.tensor import Tensor
from .arguments import as_flag, as_probability
from .calls import F
from .module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = as_probability(self, "p", p)
        self.inplace = as_flag(self, "inplace", inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Set elements to zero with probability p, and scale the others by 1 / (1 - p).

    >>> import weft as wf
    >>> wf.nn.Dropout(0.5).eval()(wf.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x with elements dropped."""
        return F.dropout(x, self.p, self.training)


class Dropout1d(_Dropout):
    """Drop whole channels of (N, C, L) or (C, L)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channels dropped."""
        return F.dropout1d(x, self.p, self.training)


class Dropout2d(_Dropout):
    """Drop whole channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channels dropped."""
        return F.dropout2d(x, self.p, self.training)


class Dropout3d(_Dropout):
    """Drop whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channels dropped."""
        return F.dropout3d(x, self.p, self.training)


class AlphaDropout(_Dropout):
    """Drop elements to SELU's lower limit, keeping mean and variance (Klambauer et al. 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with elements dropped."""
        return F.alpha_dropout(x, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """Drop whole channels of (N, C, ...) as AlphaDropout does elements."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channels dropped."""
        return F.feature_alpha_dropout(x, self.p, self.training)
