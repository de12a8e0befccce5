"""Activation functions as layers.

`inplace` is taken for PyTorch's sake: tensors are values, so the input never changes.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ArgumentError
from ..core.tensor import Tensor
from ..ops.random.draw import uniform
from . import init
from .arguments import as_choice, as_flag, as_number, as_size
from .calls import F
from .module import Module
from .parameter import Parameter, new_parameter
from .printing import format_options


class _Activation(Module):
    """Base of layers that apply one function to each element."""

    _function: ClassVar[str]

    def forward(self, x: Tensor) -> Any:
        """Return the function of x."""
        return getattr(F, self._function)(x)


class _MaybeInPlace(_Activation):
    _prints_inplace: ClassVar[bool] = True

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = as_flag(self, "inplace", inplace)

    def extra_repr(self) -> str:
        """Return the options; `inplace` only where it is set."""
        names = (*self._printed, "inplace") if self.inplace else self._printed
        return format_options(self, names if self._prints_inplace else ())


# -- rectifiers ----------------------------------------------------------------------------------


class ReLU(_MaybeInPlace):
    """Return max(x, 0).

    >>> import weft as wf
    >>> wf.nn.ReLU()(wf.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    _function = "relu"


class ReLU6(_MaybeInPlace):
    """Return min(max(x, 0), 6)."""

    _function = "relu6"


class LeakyReLU(_MaybeInPlace):
    """Return x above 0 and negative_slope * x below."""

    _printed = ("negative_slope",)

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = as_number(self, "negative_slope", negative_slope)

    def forward(self, x: Tensor) -> Tensor:
        """Return x above 0 and negative_slope * x below."""
        return F.leaky_relu(x, self.negative_slope)


class PReLU(Module):
    """Return x above 0 and weight * x below, with a trained weight, one or one per channel.

    He et al. 2015. Channels are axis 1 of x.
    """

    _printed = ("num_parameters",)
    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, *, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = as_size(self, "num_parameters", num_parameters)
        self.init = as_number(self, "init", init)
        self.weight = new_parameter((self.num_parameters,), dtype, device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its first value."""
        init.constant_(self.weight, self.init)

    def forward(self, x: Tensor) -> Tensor:
        """Return x above 0 and weight * x below."""
        return F.prelu(x, self.weight)


class RReLU(_MaybeInPlace):
    """Return x above 0 and a * x below, a drawn from U(lower, upper) for each element.

    In evaluation a is the mean of the two (Xu et al. 2015).
    """

    _printed = ("lower", "upper")

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__(inplace)
        self.lower = as_number(self, "lower", lower)
        self.upper = as_number(self, "upper", upper)
        if self.lower > self.upper:
            raise ArgumentError(
                f"RReLU: lower must not exceed upper. Received: lower={lower}, upper={upper}"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return x above 0 and a * x below."""
        if not self.training or self.lower == self.upper:
            return F.leaky_relu(x, (self.lower + self.upper) / 2)
        slope = uniform(self.lower, self.upper, tuple(x.shape), dtype=x.dtype)
        return F.where(x >= 0, x, x * slope)


class Threshold(_MaybeInPlace):
    """Return x where it exceeds the threshold, and `value` elsewhere."""

    _printed = ("threshold", "value")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.threshold = as_number(self, "threshold", threshold)
        self.value = as_number(self, "value", value)

    def forward(self, x: Tensor) -> Tensor:
        """Return x or `value`."""
        return F.threshold(x, self.threshold, self.value)


# -- exponential and smooth ----------------------------------------------------------------------


class ELU(_MaybeInPlace):
    """Return x above 0 and alpha * (e**x - 1) below (Clevert et al. 2016)."""

    _printed = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = as_number(self, "alpha", alpha)

    def forward(self, x: Tensor) -> Tensor:
        """Return x above 0 and alpha * (e**x - 1) below."""
        return F.elu(x, self.alpha)


class CELU(ELU):
    """Return max(0, x) + min(0, alpha * (e**(x / alpha) - 1)) (Barron 2017)."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the continuously differentiable ELU."""
        return F.celu(x, self.alpha)


class SELU(_MaybeInPlace):
    """Return the scaled ELU that keeps mean 0 and variance 1 (Klambauer et al. 2017)."""

    _function = "selu"


class GELU(Module):
    """Return x times the normal distribution function of x (Hendrycks and Gimpel 2016).

    approximate="tanh" takes the approximation by tanh.
    """

    _printed = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = as_choice(self, "approximate", approximate, ("none", "tanh"))

    def forward(self, x: Tensor) -> Tensor:
        """Return x times the normal distribution function of x."""
        return F.gelu(x, approximate=self.approximate)


class SiLU(_MaybeInPlace):
    """Return x * sigmoid(x), also called swish."""

    _function = "silu"


class Mish(_MaybeInPlace):
    """Return x * tanh(softplus(x)) (Misra 2019)."""

    _function = "mish"


class Softplus(Module):
    """Return log(1 + e**(beta * x)) / beta, and x itself where beta * x exceeds the threshold."""

    _printed = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = as_number(self, "beta", beta)
        self.threshold = as_number(self, "threshold", threshold)

    def forward(self, x: Tensor) -> Tensor:
        """Return the softplus."""
        return F.softplus(x, self.beta, self.threshold)


class Softsign(_Activation):
    """Return x / (1 + |x|)."""

    _function = "softsign"


class Sigmoid(_Activation):
    """Return 1 / (1 + e**-x)."""

    _function = "sigmoid"


class LogSigmoid(_Activation):
    """Return log(1 / (1 + e**-x))."""

    _function = "log_sigmoid"


class Tanh(_Activation):
    """Return tanh(x)."""

    _function = "tanh"


class Tanhshrink(_Activation):
    """Return x - tanh(x)."""

    _function = "tanhshrink"


# -- piecewise linear ----------------------------------------------------------------------------


class Hardtanh(_MaybeInPlace):
    """Return x limited to [min_val, max_val]."""

    _printed = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.min_val = as_number(self, "min_val", min_val)
        self.max_val = as_number(self, "max_val", max_val)
        if not self.min_val < self.max_val:
            raise ArgumentError(
                "Hardtanh: min_val must be less than max_val. "
                f"Received: min_val={min_val}, max_val={max_val}"
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return x limited to [min_val, max_val]."""
        return F.hardtanh(x, self.min_val, self.max_val)


class Hardsigmoid(_MaybeInPlace):
    """Return x / 6 + 1 / 2 limited to [0, 1]."""

    _function = "hardsigmoid"
    _prints_inplace = False


class Hardswish(_MaybeInPlace):
    """Return x * hardsigmoid(x) (Howard et al. 2019)."""

    _function = "hardswish"
    _prints_inplace = False


class Hardshrink(Module):
    """Return x where |x| exceeds lambd, and 0 elsewhere."""

    _printed = ("*lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = as_number(self, "lambd", lambd)

    def forward(self, x: Tensor) -> Tensor:
        """Return x or 0."""
        return F.hardshrink(x, self.lambd)


class Softshrink(Module):
    """Return x moved towards 0 by lambd, and 0 where |x| is less."""

    _printed = ("*lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = as_number(self, "lambd", lambd, 0)

    def forward(self, x: Tensor) -> Tensor:
        """Return x moved towards 0."""
        return F.softshrink(x, self.lambd)
