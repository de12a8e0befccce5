"""Layers that multiply by a matrix, and the layer that does nothing."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import ShapeError
from ..core.shape import Shape
from ..core.tensor import Tensor
from . import init
from .arguments import as_flag, as_size
from .calls import F
from .lazy import LazySize, OpenInput
from .module import Module
from .parameter import Parameter, new_parameter


class Identity(Module):
    """Return the input; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return x."""
        return x


class Linear(OpenInput):
    """Return x @ weight.T + bias over the last axis; weight is (out_features, in_features).

    in_features=None leaves the input size open until the first call. Weight and bias start uniform
    within 1 / sqrt(in_features), as in PyTorch.

    >>> import weft as wf
    >>> wf.nn.Linear(3, 5)(wf.zeros(2, 3)).shape
    (2, 5)
    """

    _printed = ("in_features", "out_features", "bias")
    _size_name = "in_features"
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        size = None if in_features is None else as_size(self, "in_features", in_features, 0)
        self.in_features = size
        self.out_features = as_size(self, "out_features", out_features, 0)
        self.weight = self._new_parameter("weight", size, dtype, device)
        has_bias = as_flag(self, "bias", bias)
        made = new_parameter((self.out_features,), dtype, device) if has_bias else None
        self.register_parameter("bias", made)
        self._begin(size)

    def reset_parameters(self) -> None:
        """Draw weight and bias anew."""
        # kaiming_uniform_ with a = sqrt(5) has the bound 1 / sqrt(fan_in)
        bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return the products; x is (..., in_features)."""
        return F.linear(x, self.weight, self.bias)

    def _shapes(self, size: int) -> dict[str, Shape]:
        return {"weight": (self.out_features, size)}

    def _size_of(self, name: str, shape: Shape) -> int | None:
        size: int = shape[1]
        return size

    def _input_size(self, x: Any) -> int:
        if x.ndim == 0:
            raise ShapeError("Linear: the input must have the shape (..., features). Received: ()")
        return int(x.shape[-1])


class LazyLinear(LazySize, Linear):
    """A Linear whose in_features the first input tells."""

    def __init__(
        self, out_features: int, bias: bool = True, *, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(out_features, bias, device=device, dtype=dtype)


class Bilinear(Module):
    """Return x1 @ weight[k] @ x2 + bias[k] for each output k; weight is (out, in1, in2)."""

    _printed = ("in1_features", "in2_features", "out_features", "bias")
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = as_size(self, "in1_features", in1_features)
        self.in2_features = as_size(self, "in2_features", in2_features)
        self.out_features = as_size(self, "out_features", out_features)
        shape = (self.out_features, self.in1_features, self.in2_features)
        self.weight = new_parameter(shape, dtype, device)
        has_bias = as_flag(self, "bias", bias)
        made = new_parameter((self.out_features,), dtype, device) if has_bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew, uniform within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the forms; x1 is (..., in1_features) and x2 (..., in2_features)."""
        self._check(x1, x2)
        products = F.matmul(x1[..., None, None, :], self.weight)  # (..., out, 1, in2)
        out = F.sum(products[..., 0, :] * x2[..., None, :], axis=-1)
        return out if self.bias is None else out + self.bias

    def _check(self, x1: Any, x2: Any) -> None:
        sizes = (self.in1_features, self.in2_features)
        same = tuple(x1.shape[:-1]) == tuple(x2.shape[:-1])
        if not same or (*x1.shape[-1:], *x2.shape[-1:]) != sizes:
            raise ShapeError(
                f"Bilinear: the inputs must have the shapes (..., {sizes[0]}) and "
                f"(..., {sizes[1]}). Received: {tuple(x1.shape)} and {tuple(x2.shape)}"
            )
