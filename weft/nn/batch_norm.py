"""Normalisation with running statistics: over the batch, and over each instance."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..core.dtype import default_float, int64
from ..core.errors import ShapeError
from ..core.shape import Shape
from ..core.tensor import Tensor, wrap
from ..ops.creation import empty, zeros
from .arguments import as_flag, as_number, as_size
from .calls import F
from .lazy import LazySize, OpenInput
from .norm import reset_affine
from .parameter import Parameter

ONE = wrap(np.array(1, int64))


class RunningNorm(OpenInput):
    """What batch and instance normalisation share: scale, shift and running statistics."""

    _printed = ("*num_features", "eps", "momentum", "affine", "bias", "track_running_stats")
    _size_name = "num_features"
    _dims: ClassVar[tuple[int, ...]]  # allowed numbers of input dimensions
    _layout: ClassVar[str]
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int | None,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        size = None if num_features is None else as_size(self, "num_features", num_features)
        self.num_features = size or 0
        self.eps = as_number(self, "eps", eps, 0)
        self.momentum = None if momentum is None else as_number(self, "momentum", momentum)
        self.affine = as_flag(self, "affine", affine)
        self.track_running_stats = as_flag(self, "track_running_stats", track_running_stats)
        shift = self.affine and as_flag(self, "bias", bias)
        for name, wanted in (("weight", self.affine), ("bias", shift)):
            made = self._new_parameter(name, size, dtype, device) if wanted else None
            self.register_parameter(name, made)
        self._make_statistics(size or 0, dtype)
        self._begin(size)

    def _make_statistics(self, size: int, dtype: Any) -> None:
        tracked = self.track_running_stats
        dtype = default_float() if dtype is None else dtype
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, empty((size,), dtype=dtype) if tracked else None)
        count = zeros((), dtype=int64) if tracked else None
        self.register_buffer("num_batches_tracked", count)

    def reset_running_stats(self) -> None:
        """Forget all statistics: mean 0, variance 1."""
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget all statistics, and set the scale to 1 and the shift to 0."""
        self.reset_running_stats()
        reset_affine(self)

    def _shapes(self, size: int) -> dict[str, Shape]:
        names = ("weight", "bias", "running_mean", "running_var")
        return {name: (size,) for name in names if self.__dict__.get(name, size) is not None}

    def _size_of(self, name: str, shape: Shape) -> int | None:
        size: int = shape[0]
        return size

    def _input_size(self, x: Any) -> int:
        self._check(x)
        return int(x.shape[1])

    def _check(self, x: Any) -> None:
        if x.ndim not in self._dims:
            raise ShapeError(
                f"{type(self).__name__}: the input must have the shape {self._layout}. "
                f"Received: {tuple(x.shape)}"
            )


class _BatchNorm(RunningNorm):
    """Normalise each channel over the batch and all positions."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised: by its own statistics in training, else by the running ones."""
        if x.ndim not in self._dims:
            self._check(x)
        mean, var = self.running_mean, self.running_var
        momentum: float | None = 0.0
        if self.training and self.num_batches_tracked is not None:
            momentum = self._count_batch(self.num_batches_tracked)
        training = self.training or mean is None
        return F.batch_norm(x, mean, var, self.weight, self.bias, training, momentum, self.eps)

    def _count_batch(self, count: Tensor) -> float:
        """Count a batch; return how much of the running statistics it replaces."""
        count += ONE
        # Without a momentum the running statistics are the plain average over all batches.
        return 1.0 / count.item() if self.momentum is None else self.momentum


class BatchNorm1d(_BatchNorm):
    """Normalise the channels of (N, C) or (N, C, L) over the batch (Ioffe and Szegedy 2015).

    In training the batch's statistics are used, and move the running ones (`running_mean`,
    `running_var`) by `momentum`; None averages over all batches. Evaluation uses the running ones.
    num_features=None leaves the number of channels open until the first call.

    >>> import weft as wf
    >>> norm = wf.nn.BatchNorm1d(2)
    >>> norm(wf.tensor([[1.0, 5.0], [3.0, 5.0]])).detach().round(decimals=3)
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """

    _dims = (2, 3)
    _layout = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    """Normalise the channels of (N, C, H, W) over the batch; see BatchNorm1d."""

    _dims = (4,)
    _layout = "(N, C, H, W)"


class BatchNorm3d(_BatchNorm):
    """Normalise the channels of (N, C, D, H, W) over the batch; see BatchNorm1d."""

    _dims = (5,)
    _layout = "(N, C, D, H, W)"


class LazyBatchNorm1d(LazySize, BatchNorm1d):
    """A BatchNorm1d whose num_features the first input tells."""


class LazyBatchNorm2d(LazySize, BatchNorm2d):
    """A BatchNorm2d whose num_features the first input tells."""


class LazyBatchNorm3d(LazySize, BatchNorm3d):
    """A BatchNorm3d whose num_features the first input tells."""
