"""Weights that stay orthogonal while they are trained.

A matrix (or its transpose, where that is the tall one) is an orthogonal function of an
unconstrained one: the exponential or the Cayley map of a skew-symmetric matrix, or a product of
Householder reflections. With `use_trivialization` it is multiplied by a fixed orthogonal matrix,
so that training starts from the weight that was there (Lezcano-Casado 2019, arXiv:1909.09501).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core import tensor as core
from ....core.modes import no_grad
from ....core.op import F
from ....ops.creation import eye, zeros
from ....ops.random.draw import randn
from ...adoption import adopt
from ..module import Module
from .parametrize import register_parametrization

__all__ = ["orthogonal"]


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Let a weight be orthogonal: its columns orthonormal, or its rows if these are fewer.

    >>> from weft import torch
    >>> layer = orthogonal(torch.nn.Linear(2, 3))
    >>> torch.allclose(layer.weight.T @ layer.weight, torch.eye(2), atol=1e-6)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, core.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    rows, columns = weight.shape[-2:]
    chosen = orthogonal_map or ("matrix_exp" if rows == columns else "householder")
    if chosen not in _MAPS:
        known = ", ".join(f'"{known}"' for known in _MAPS)
        raise ValueError(f"orthogonal_map has to be one of {known}. Got: {chosen}")
    computed = _Orthogonal(tuple(weight.shape), chosen, use_trivialization)
    return register_parametrization(module, name, computed, unsafe=True)


class _Orthogonal(Module):
    """An orthogonal matrix, computed from one without constraints.

    base   the orthogonal matrix that it is a multiple of, if there is one
    """

    def __init__(self, shape: tuple[int, ...], orthogonal_map: str, with_base: bool) -> None:
        super().__init__()
        self.shape, self.orthogonal_map = shape, orthogonal_map
        self.with_base = with_base
        if with_base:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        """Return the orthogonal matrix."""
        tall = _tall(x)
        found = _MAPS[self.orthogonal_map](tall)
        if self.with_base:
            found = F.matmul(self.base, found)
        return adopt(_turned_as(x, found))

    def right_inverse(self, weight: Any) -> Any:
        """Return what gives a weight, or the orthogonal matrix that its QR factors have."""
        if tuple(weight.shape) != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {_size(self.shape)}. "
                f"Got a tensor of shape {_size(weight.shape)}."
            )
        with no_grad():
            return self._inverse_with_base(weight) if self.with_base else self._inverse(weight)

    def _inverse_with_base(self, weight: Any) -> Any:
        """Let the base be the weight; return what every map makes the identity of."""
        self.base = _square(_tall(weight))
        start = np.zeros(self.shape, weight.dtype)
        places = np.arange(min(self.shape[-2:]))
        start[..., places, places] = -1  # signs that Householder's map reads; others read none
        return adopt(core.wrap(start))

    def _inverse(self, weight: Any) -> Any:
        """Return the reflections of a weight, with their signs on the diagonal."""
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        reflections, scales = F.geqrf(_tall(weight))
        signs = F.sign(F.diagonal(reflections, 0, -2, -1))
        signs = F.where(F.equal(scales, 0), -signs, signs)  # there was nothing to reflect
        return adopt(_turned_as(weight, F.tril(reflections, -1) + _on_diagonal(signs, reflections)))


def _size(shape: Any) -> str:
    return f"torch.Size({list(shape)})"


def _tall(x: Any) -> Any:
    """Return a matrix as it is, or transposed if it is wider than tall."""
    return F.matrix_transpose(x) if x.shape[-2] < x.shape[-1] else x


def _turned_as(x: Any, found: Any) -> Any:
    """Return a tall matrix, transposed if x is wide."""
    return F.matrix_transpose(found) if x.shape[-2] < x.shape[-1] else found


def _on_diagonal(values: Any, like: Any) -> Any:
    """Return a matrix of the shape of another that is zero beside its diagonal."""
    rows, columns = like.shape[-2:]
    return eye(rows, columns, dtype=like.dtype) * F.expand_dims(values, -2)


def _square(tall: Any) -> Any:
    """Return a matrix with orthonormal columns as one that is square: these come first."""
    rows, columns = tall.shape[-2:]
    if rows == columns and _is_orthogonal(tall):
        return tall.clone()
    free = randn(*tall.shape[:-2], rows, rows - columns, dtype=tall.dtype)
    q, r = F.qr(F.concat([tall, free], -1))
    signs = F.sign(F.diagonal(r, 0, -2, -1))  # so that an orthogonal matrix is its own factor
    return adopt(q * F.expand_dims(signs, -2))


def _is_orthogonal(square: Any) -> bool:
    size = square.shape[-1]
    tolerance = 10.0 * size * float(np.finfo(square.dtype).eps)
    product = F.matmul(F.matrix_transpose(square), square)
    return bool(F.allclose(product, eye(size, dtype=square.dtype), atol=tolerance))


# -- maps: of a tall matrix without constraints to one whose columns are orthonormal --------------


def _skew(tall: Any) -> Any:
    """Return the square skew-symmetric matrix whose lower half is that of a tall matrix."""
    rows, columns = tall.shape[-2:]
    free = zeros((*tall.shape[:-2], rows, rows - columns), dtype=tall.dtype)
    lower = F.concat([F.tril(tall), free], -1) if rows != columns else F.tril(tall)
    return lower - F.matrix_transpose(lower)


def _first_columns(square: Any, tall: Any) -> Any:
    return square[..., : tall.shape[-1]]


def _exponential(tall: Any) -> Any:
    return _first_columns(F.matrix_exp(_skew(tall)), tall)


def _cayley(tall: Any) -> Any:
    """Return (I + A/2) (I - A/2)^-1 of the skew-symmetric A."""
    half = 0.5 * _skew(tall)
    one = eye(half.shape[-1], dtype=half.dtype)
    return _first_columns(F.solve(one - half, one + half), tall)


def _householder(tall: Any) -> Any:
    """Return the product of reflections, whose vectors stand below the diagonal."""
    vectors = F.tril(tall, -1)
    scales = 2.0 / (1.0 + F.sum(vectors * vectors, -2))
    signs = F.cast(F.diagonal(tall, 0, -2, -1), "int32")  # whole numbers: they are not trained
    product = F.householder_product(vectors, scales)
    return product * F.cast(F.expand_dims(signs, -2), tall.dtype)


_MAPS: dict[str, Callable[[Any], Any]] = {
    "matrix_exp": _exponential,
    "cayley": _cayley,
    "householder": _householder,
}
