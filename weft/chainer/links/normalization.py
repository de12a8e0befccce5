"""Normalisation with trained scales and moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.modes import no_grad
from ...core.op import F
from ...core.tensor import Tensor, wrap
from .. import initializers as init
from ..configuration import config, get_dtype
from ..functions import normalization
from ..link import Link
from ..utils.type_check import expect
from ..variable import Parameter, Variable, as_tensor, wrapped


class BatchNormalization(Link):
    """Normalise by statistics of the batch in training, and by those of the past otherwise.

    The running mean and variance are `avg_mean` and `avg_var`; `decay` is the share of the old.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (Chainer's arguments, in its order)
        self,
        size: Any = None,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: Any = None,
        use_gamma: bool = True,
        use_beta: bool = True,
        initial_gamma: Any = None,
        initial_beta: Any = None,
        axis: Any = None,
        initial_avg_mean: Any = None,
        initial_avg_var: Any = None,
    ) -> None:
        super().__init__()
        if size is None and axis is None:
            raise RuntimeError("size or axis is required")
        self.decay, self.eps, self.N = decay, eps, 0
        self.axis = (axis,) if isinstance(axis, int) else axis
        self._dtype = get_dtype(dtype)
        self._starts = initial_avg_mean, initial_avg_var
        with self.init_scope():
            self.gamma = Parameter(init.chosen(initial_gamma, 1.0)) if use_gamma else None
            self.beta = Parameter(init.chosen(initial_beta, 0.0)) if use_beta else None
        self._mean = self._var = wrap(np.zeros(0, self._dtype))
        self._persistent.update(dict.fromkeys(("avg_mean", "avg_var", "N")))
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, shape: Any) -> None:
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        self._shape = shape
        for parameter in (self.gamma, self.beta):
            if parameter is not None:
                parameter.initialize(shape)
        mean, var = self._starts
        self._mean = wrap(init.initial_array(init.chosen(mean, 0.0), shape).astype(self._dtype))
        self._var = wrap(init.initial_array(init.chosen(var, 1.0), shape).astype(self._dtype))

    @property
    def avg_mean(self) -> Any:
        """The running mean."""
        return self._mean._read()

    @property
    def avg_var(self) -> Any:
        """The running variance."""
        return self._var._read()

    def _set_persistent(self, name: str, value: Any) -> None:
        if name == "N":
            self.N = int(value)
        else:
            array = wrap(np.array(value, self._dtype))
            object.__setattr__(self, "_mean" if name == "avg_mean" else "_var", array)
            self._shape = array.shape

    def serialize(self, serializer: Any) -> None:
        """Write parameters and statistics to a serializer, or read them from one."""
        kept, self._persistent = self._persistent, {}
        try:
            super().serialize(serializer)
        finally:
            self._persistent = kept
        for name, value in (
            ("avg_mean", self._mean.numpy()),
            ("avg_var", self._var.numpy()),
            ("N", self.N),
        ):
            found = serializer(name, value)
            if found is not None and found is not value:
                self._set_persistent(name, found)

    def copyparams(self, link: Any, copy_persistent: bool = True) -> None:
        """Take over parameters and statistics of another."""
        super().copyparams(link, copy_persistent=False)
        if copy_persistent:
            for name in ("avg_mean", "avg_var", "N"):
                self._set_persistent(name, getattr(link, name))

    def forward(self, x: Any, **kwargs: Any) -> Variable:
        """Return x normalised."""
        tensor = as_tensor(x)
        axes = self._reduced_axes(tensor)
        if not self._mean.shape:
            self._initialize_params([tensor.shape[i] for i in range(tensor.ndim) if i not in axes])
        if not self._mean.numel():
            self._initialize_params([tensor.shape[i] for i in range(tensor.ndim) if i not in axes])
        self._check(tensor, axes)
        gamma, beta = self._scale(tensor), self._move(tensor)
        if not config.train:
            return normalization.fixed_batch_normalization(
                x,
                wrapped(gamma),
                wrapped(beta),
                wrapped(self._mean),
                wrapped(self._var),
                self.eps,
                axes,
            )
        decay = self.decay
        if kwargs.pop("finetune", False):
            self.N += 1
            decay = 1.0 - 1.0 / self.N
        return wrapped(self._trained(tensor, gamma, beta, axes, decay))

    def _trained(
        self, x: Tensor, gamma: Tensor, beta: Tensor, axes: tuple[int, ...], decay: float
    ) -> Tensor:
        if axes == (0, *range(2, x.ndim)):
            return F.batch_norm(x, self._mean, self._var, gamma, beta, True, 1.0 - decay, self.eps)
        with no_grad():
            count = int(np.prod([x.shape[i] for i in axes]))
            mean, var = (
                F.mean(x.detach(), axes),
                F.var(x.detach(), axes) * (count / max(count - 1, 1)),
            )
            self._mean.copy_(self._mean * decay + mean * (1 - decay))
            self._var.copy_(self._var * decay + var * (1 - decay))
        return as_tensor(
            normalization.batch_normalization(
                wrapped(x), wrapped(gamma), wrapped(beta), self.eps, axis=axes
            )
        )

    def _reduced_axes(self, x: Tensor) -> tuple[int, ...]:
        if self.axis is not None:
            return tuple(self.axis)
        return (0, *range(len(self._shape) + 1, x.ndim))

    def _check(self, x: Tensor, axes: tuple[int, ...]) -> None:
        kept = tuple(x.shape[i] for i in range(x.ndim) if i not in axes)
        expect(
            "BatchNormalization",
            kept == self._mean.shape,
            "x.shape without axes == gamma.shape",
            f"{kept} != {self._mean.shape}",
        )

    def _scale(self, x: Tensor) -> Any:
        return self.gamma._tensor if self.gamma is not None else F.ones_like(self._mean)

    def _move(self, x: Tensor) -> Any:
        return self.beta._tensor if self.beta is not None else F.zeros_like(self._mean)

    def start_finetuning(self) -> None:
        """Begin to collect statistics anew."""
        self.N = 0


class LayerNormalization(Link):
    """Normalise the units of each example."""

    def __init__(
        self,
        size: int | None = None,
        eps: float = 1e-6,
        initial_gamma: Any = None,
        initial_beta: Any = None,
    ) -> None:
        super().__init__()
        self.eps = eps
        with self.init_scope():
            self.gamma = Parameter(init.chosen(initial_gamma, 1.0))
            self.beta = Parameter(init.chosen(initial_beta, 0.0))
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int) -> None:
        self.gamma.initialize((size,))
        self.beta.initialize((size,))

    def forward(self, x: Any) -> Variable:
        """Return x normalised."""
        if not self.gamma.is_initialized:
            self._initialize_params(int(np.prod(x.shape[1:])))
        return normalization.layer_normalization(x, self.gamma, self.beta, self.eps)


class GroupNormalization(Link):
    """Normalise groups of channels of each example."""

    def __init__(
        self,
        groups: int,
        size: int | None = None,
        eps: float = 1e-5,
        initial_gamma: Any = None,
        initial_beta: Any = None,
    ) -> None:
        super().__init__()
        self.groups, self.eps = groups, eps
        with self.init_scope():
            self.gamma = Parameter(init.chosen(initial_gamma, 1.0))
            self.beta = Parameter(init.chosen(initial_beta, 0.0))
        if size is not None:
            self._initialize_params(size)

    def _initialize_params(self, size: int) -> None:
        self.gamma.initialize((size,))
        self.beta.initialize((size,))

    def forward(self, x: Any) -> Variable:
        """Return x normalised."""
        if not self.gamma.is_initialized:
            self._initialize_params(x.shape[1])
        return normalization.group_normalization(x, self.groups, self.gamma, self.beta, self.eps)
