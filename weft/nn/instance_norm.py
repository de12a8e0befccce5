"""Instance normalisation: each channel of each sample over its positions."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .batch_norm import RunningNorm
from .calls import F
from .lazy import LazySize


class _InstanceNorm(RunningNorm):
    """Normalise each channel of each sample over its positions."""

    def __init__(
        self,
        num_features: int | None,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        super().__init__(num_features, eps, momentum, affine, track_running_stats, **options)

    def _input_size(self, x: Any) -> int:
        self._check(x)
        return int(x.shape[x.ndim - self._dims[0]])

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised: by its own statistics, or by running ones if tracked and in eval."""
        if x.ndim == self._dims[0]:
            return F.reshape(self.forward(F.reshape(x, (1, *x.shape))), x.shape)
        self._check(x)
        own = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        statistics = (self.running_mean, self.running_var)
        return F.instance_norm(x, *statistics, self.weight, self.bias, own, momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of (N, C, L) or (C, L) over L (Ulyanov et al. 2016).

    By default without scale and shift (`affine`) and without running statistics.
    """

    _dims = (2, 3)
    _layout = "(N, C, L) or (C, L)"


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of (N, C, H, W) or (C, H, W) over H and W; see InstanceNorm1d."""

    _dims = (3, 4)
    _layout = "(N, C, H, W) or (C, H, W)"


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of (N, C, D, H, W) or (C, D, H, W); see InstanceNorm1d."""

    _dims = (4, 5)
    _layout = "(N, C, D, H, W) or (C, D, H, W)"


class LazyInstanceNorm1d(LazySize, InstanceNorm1d):
    """An InstanceNorm1d whose num_features the first input tells."""


class LazyInstanceNorm2d(LazySize, InstanceNorm2d):
    """An InstanceNorm2d whose num_features the first input tells."""


class LazyInstanceNorm3d(LazySize, InstanceNorm3d):
    """An InstanceNorm3d whose num_features the first input tells."""
