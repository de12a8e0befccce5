"""Activation functions along an axis as layers: gates and softmax."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ShapeError
from ..core.shape import as_int
from ..core.tensor import Tensor
from .calls import F
from .module import Module


class GLU(Module):
    """Return a * sigmoid(b), with a and b the halves of x along `dim` (Dauphin et al. 2017)."""

    _printed = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = as_int(dim, "GLU: dim")

    def forward(self, x: Tensor) -> Tensor:
        """Return the gated half."""
        return F.glu(x, self.dim)


class _AlongAxis(Module):
    _function: ClassVar[str]
    _printed = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = None if dim is None else as_int(dim, f"{type(self).__name__}: dim")

    def _axis(self, x: Any) -> int:
        """Return the axis; without one, that of the classes as PyTorch guesses it."""
        if self.dim is not None:
            return self.dim
        return 0 if x.ndim in (0, 1, 3) else 1

    def forward(self, x: Tensor) -> Any:
        """Return the function of x along the axis."""
        return getattr(F, self._function)(x, self._axis(x))


class Softmax(_AlongAxis):
    """Return e**x divided by its sum along `dim`.

    Without dim it is axis 1, or axis 0 of tensors with 1 or 3 dimensions: better name it.

    >>> import weft as wf
    >>> wf.nn.Softmax(dim=0)(wf.tensor([0.0, 0.0]))
    tensor([0.5, 0.5])
    """

    _function = "softmax"


class LogSoftmax(_AlongAxis):
    """Return the logarithm of the softmax along `dim`; see Softmax."""

    _function = "log_softmax"


class Softmin(_AlongAxis):
    """Return the softmax of -x along `dim`; see Softmax."""

    _function = "softmin"


class Softmax2d(Module):
    """Return the softmax over the channels of (N, C, H, W) or (C, H, W), at each position."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the softmax over channels."""
        if x.ndim not in (3, 4):
            raise ShapeError(
                "Softmax2d: the input must have the shape (N, C, H, W) or (C, H, W). "
                f"Received: {tuple(x.shape)}"
            )
        return F.softmax(x, -3)
