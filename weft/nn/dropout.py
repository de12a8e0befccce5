"""Dropout layers: they drop in training only, and return their input in evaluation.

`inplace` is taken for PyTorch's sake: tensors are values, so the input never changes.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.tensor import Tensor
from .arguments import as_flag, as_probability
from .calls import F
from .module import Module


class _Dropout(Module):
    _function: ClassVar[str]
    _printed = ("p", "inplace")

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p = as_probability(self, "p", p)
        self.inplace = as_flag(self, "inplace", inplace)

    def forward(self, x: Tensor) -> Any:
        """Return x with elements or channels dropped."""
        return getattr(F, self._function)(x, self.p, self.training)


class Dropout(_Dropout):
    """Set elements to zero with probability p, and scale the others by 1 / (1 - p).

    >>> import weft as wf
    >>> wf.nn.Dropout(0.5).eval()(wf.ones(3))
    tensor([1., 1., 1.])
    """

    _function = "dropout"


class Dropout1d(_Dropout):
    """Drop whole channels of (N, C, L) or (C, L)."""

    _function = "dropout1d"


class Dropout2d(_Dropout):
    """Drop whole channels of (N, C, H, W) or (C, H, W)."""

    _function = "dropout2d"


class Dropout3d(_Dropout):
    """Drop whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _function = "dropout3d"


class AlphaDropout(_Dropout):
    """Drop elements to SELU's lower limit, keeping mean and variance (Klambauer et al. 2017)."""

    _function = "alpha_dropout"


class FeatureAlphaDropout(_Dropout):
    """Drop whole channels of (N, C, ...) as AlphaDropout does elements."""

    _function = "feature_alpha_dropout"
