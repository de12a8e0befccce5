"""Normalisation without running statistics: by layer, group, root mean square, across channels."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..core.shape import Shape, as_shape
from ..core.tensor import Tensor
from . import init
from .arguments import as_flag, as_number, as_size
from .calls import F
from .module import Module
from .parameter import Parameter, new_parameter


def reset_affine(norm: Module) -> None:
    """Set the scale of a normalisation to 1 and its shift to 0, where it has them."""
    for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
        parameter = getattr(norm, name, None)
        if parameter is not None:
            fill(parameter)


class AffineNorm(Module):
    """Base of normalisations: a scale that starts at 1 and a shift that starts at 0, or none."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(self, shape: Shape, wanted: dict[str, bool], **place: Any) -> None:
        for name, is_wanted in wanted.items():
            self.register_parameter(name, new_parameter(shape, **place) if is_wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to 1 and the shift to 0."""
        reset_affine(self)


class LayerNorm(AffineNorm):
    """Normalise over the trailing dimensions `normalized_shape` (Ba et al. 2016).

    weight and bias, of that shape, start at 1 and 0; elementwise_affine=False leaves both out.

    >>> import weft as wf
    >>> wf.nn.LayerNorm(2)(wf.tensor([[1.0, 3.0]])).detach().round(decimals=3)
    tensor([[-1.,  1.]])
    """

    _printed = ("*normalized_shape", "eps", "elementwise_affine", "bias")

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape, "LayerNorm: normalized_shape")
        self.eps = as_number(self, "eps", eps, 0)
        self.elementwise_affine = as_flag(self, "elementwise_affine", elementwise_affine)
        shift = self.elementwise_affine and as_flag(self, "bias", bias)
        wanted = {"weight": self.elementwise_affine, "bias": shift}
        self._make_parameters(self.normalized_shape, wanted, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; its shape ends in normalized_shape."""
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(AffineNorm):
    """Divide by the root mean square over the trailing dimensions (Zhang and Sennrich 2019).

    eps=None takes the machine epsilon of the input's dtype.
    """

    _printed = ("*normalized_shape", "eps", "elementwise_affine")

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_shape(normalized_shape, "RMSNorm: normalized_shape")
        self.eps = None if eps is None else as_number(self, "eps", eps, 0)
        self.elementwise_affine = as_flag(self, "elementwise_affine", elementwise_affine)
        wanted = {"weight": self.elementwise_affine}
        self._make_parameters(self.normalized_shape, wanted, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; its shape ends in normalized_shape."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(AffineNorm):
    """Normalise each sample of (N, C, ...) over groups of channels (Wu and He 2018)."""

    _printed = ("*num_groups", "*num_channels", "eps", "affine", "bias")
    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_groups = as_size(self, "num_groups", num_groups)
        self.num_channels = as_size(self, "num_channels", num_channels)
        if self.num_channels % self.num_groups:
            raise ArgumentError(
                "GroupNorm: num_groups must divide num_channels. "
                f"Received: num_groups={num_groups}, num_channels={num_channels}"
            )
        self.eps = as_number(self, "eps", eps, 0)
        self.affine = as_flag(self, "affine", affine)
        shift = self.affine and as_flag(self, "bias", bias)
        wanted = {"weight": self.affine, "bias": shift}
        self._make_parameters((self.num_channels,), wanted, dtype=dtype, device=device)

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; it has the shape (N, num_channels, ...)."""
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class LocalResponseNorm(Module):
    """Divide by a power of the mean square over neighbouring channels (Krizhevsky et al. 2012)."""

    _printed = ("*size", "alpha", "beta", "k")

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = as_size(self, "size", size)
        self.alpha = as_number(self, "alpha", alpha)
        self.beta = as_number(self, "beta", beta)
        self.k = as_number(self, "k", k)

    def forward(self, x: Tensor) -> Tensor:
        """Return x normalised; it has the shape (N, C, ...)."""
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
