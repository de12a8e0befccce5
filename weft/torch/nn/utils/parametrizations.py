"""Weights that are computed from others: weight_norm, spectral_norm, orthogonal."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....core.modes import no_grad
from ....core.op import F
from ....nn.reparametrize import SpectralNorm, WeightNorm
from ...absent import absent
from ...adoption import adopt
from ..layers import CLASSES
from ..module import Module
from .orthogonality import orthogonal
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """A direction times a magnitude."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def _record(self, weight: Any) -> WeightNorm:
        axis = None if self.dim == -1 else range(weight.ndim)[self.dim]
        return WeightNorm("weight", axis)

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """Return the weight."""
        return adopt(self._record(weight_v).joined(weight_g, weight_v))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Return a weight's magnitude, and the weight as its direction."""
        return adopt(self._record(weight).norm(weight)), weight.clone()


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a weight be a direction times a magnitude.

    >>> from weft import torch
    >>> list(weight_norm(torch.nn.Linear(2, 3)).state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(partial(_rename, name))
    return module


def _rename(name: str, module: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Take what the older torch.nn.utils.weight_norm has saved."""
    names = {f"{prefix}{name}_g": "original0", f"{prefix}{name}_v": "original1"}
    if all(old in state for old in names):
        for old, new in names.items():
            state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(old)


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iterations follow in training."""

    def __init__(self, weight: Any, n_power_iterations: int, eps: float, dim: int) -> None:
        super().__init__()
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations, self.eps = n_power_iterations, eps
        self.dim = range(weight.ndim)[dim]
        if weight.ndim > 1:
            matrix = self._matrix(weight)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                start = F.normalize(weight.new_empty(size).normal_(), axis=0, eps=eps)
                self.register_buffer(name, start)
            self._iterate(matrix, 15)

    def _matrix(self, weight: Any) -> Any:
        return SpectralNorm("weight", self.n_power_iterations, self.eps, self.dim).matrix(weight)

    def _iterate(self, matrix: Any, steps: int) -> None:
        """Bring u and v closer to the singular vectors."""
        with no_grad():
            u, v = self._u, self._v
            for _ in range(steps):
                u = F.normalize(F.matmul(matrix, v), axis=0, eps=self.eps)
                v = F.normalize(F.matmul(u, matrix), axis=0, eps=self.eps)
            self._u.copy_(u)
            self._v.copy_(v)

    def forward(self, weight: Any) -> Any:
        """Return the weight; u and v count as constants."""
        if weight.ndim == 1:
            return adopt(F.normalize(weight, axis=0, eps=self.eps))
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        return adopt(weight / F.matmul(u, F.matmul(matrix, v)))

    def right_inverse(self, value: Any) -> Any:
        """Return the value: there is no better one."""
        return value


_TRANSPOSED = tuple(CLASSES[f"ConvTranspose{n}d"] for n in (1, 2, 3))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Let a weight be divided by its largest singular value.

    >>> from weft import torch
    >>> layer = spectral_norm(torch.nn.Linear(2, 3))
    >>> [name for name in layer.state_dict() if "weight" in name]  # doctest: +NORMALIZE_WHITESPACE
    ['parametrizations.weight.original', 'parametrizations.weight.0._u',
     'parametrizations.weight.0._v']
    """
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = int(isinstance(module, _TRANSPOSED))
    norm = _SpectralNorm(weight.detach(), n_power_iterations, eps, dim)
    return register_parametrization(module, name, norm)


__getattr__ = absent(globals(), {})
