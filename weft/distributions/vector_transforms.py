"""Transforms of vectors and matrices, and transforms side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.op import F
from ..core.shape import Shape
from . import constraints
from ._shared import clamp_probs
from .transforms import Transform


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last axis; it is not one to one: going back gives logarithms."""

    bijective = False
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return F.softmax(x, -1)

    def _inverse(self, y: Any) -> Any:
        return F.log(y)


class StickBreakingTransform(Transform):
    """Vectors of n - 1 numbers as n probabilities: each takes a part of what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        z = clamp_probs(F.sigmoid(x - F.log(self._left(x))))
        rest = F.cumprod(1 - z, -1)
        one = F.ones_like(x[..., :1])
        return F.concat([z, one], -1) * F.concat([one, rest], -1)

    def _inverse(self, y: Any) -> Any:
        first = y[..., :-1]
        rest = F.maximum(1 - F.cumsum(first, -1), 1e-30)
        return F.log(first) - F.log(rest) + F.log(self._left(first))

    def _left(self, x: Any) -> Any:
        """Return how many parts are left at each place."""
        n = x.shape[-1]
        return F.cast(n - F.iota(n), x.dtype)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        moved = x - F.log(self._left(x))
        return F.sum(-moved + F.log_sigmoid(moved) + F.log(y[..., :-1]), -1)

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand."""
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Square matrices as lower triangles with a positive diagonal: its exponential."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return F.tril(x, -1) + F.diag_embed(F.exp(F.diagonal(x, 0, -2, -1)))

    def _inverse(self, y: Any) -> Any:
        return F.tril(y, -1) + F.diag_embed(F.log(F.diagonal(y, 0, -2, -1)))


class PositiveDefiniteTransform(Transform):
    """Square matrices as positive definite ones: L @ L.T of LowerCholeskyTransform's L."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return F.matmul(factor, F.swapaxes(factor, -1, -2))

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform()._inverse(F.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers as Cholesky factors of correlation matrices.

    tanh of a number is a partial correlation (Lewandowski, Kurowicka and Joe 2009): the part that
    an element takes of what the squares before it left of its row's length 1.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky

    def _call(self, x: Any) -> Any:
        n = self._side(x.shape[-1])
        lower = self._filled(F.tanh(x), n)
        left = F.cumprod(F.sqrt(1 - lower * lower), -1)
        # Row i ends in what is left of its length, on the diagonal.
        shifted = F.concat([F.ones_like(left[..., :1]), left[..., :-1]], -1)
        unit = F.cast(F.iota(n)[:, None] == F.iota(n), x.dtype)
        return F.tril((lower + unit) * shifted)

    def _inverse(self, y: Any) -> Any:
        n = y.shape[-1]
        squares = F.cumsum(y * y, -1)
        left = 1 - F.concat([F.zeros_like(y[..., :1]), squares[..., :-1]], -1)
        rows, columns = self._places(n)
        part = y / F.sqrt(F.maximum(left, 1e-30))
        return F.atanh(part[..., rows, columns])

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        n = y.shape[-1]
        rows, columns = self._places(n)
        left = 1 - F.cumsum(y * y, -1)
        taken = F.log(F.maximum(left[..., rows, columns], 1e-30))
        inside = (columns < rows - 1).astype(y.dtype)
        stretch = F.sum(taken * inside, -1) * 0.5
        return stretch + F.sum(-2 * (x + F.softplus(-2 * x) - math.log(2)), -1)

    def _filled(self, values: Any, n: int) -> Any:
        rows, columns = self._places(n)
        shape = (*values.shape[:-1], n, n)
        empty = F.full_like(F.broadcast_to(F.sum(values, -1)[..., None, None], shape), 0.0)
        return F.index_set(empty, (..., rows, columns), values)

    def _places(self, n: int) -> tuple[Any, Any]:
        rows, columns = np.tril_indices(n, -1)
        return rows, columns

    def _side(self, count: int) -> int:
        side = round((1 + math.sqrt(1 + 8 * count)) / 2)
        if side * (side - 1) // 2 != count:
            raise ValueError(
                "CorrCholeskyTransform: the last axis must have n (n - 1) / 2 elements. "
                f"Received: {count}"
            )
        return side

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result."""
        side = self._side(shape[-1])
        return (*shape[:-1], side, side)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand."""
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class CumulativeDistributionTransform(Transform):
    """Values as the probabilities of at most them."""

    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution
        self.domain = distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return self.distribution.log_prob(x)

    def _key(self) -> tuple[Any, ...]:
        return (id(self.distribution),)


class CatTransform(Transform):
    """Transforms on successive parts of an axis."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain = constraints.cat([t.domain for t in self.transforms], dim, self.lengths)
        self.codomain = constraints.cat([t.codomain for t in self.transforms], dim, self.lengths)

    def _parts(self, x: Any) -> Any:
        return zip(self.transforms, F.split(x, self.lengths, self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return F.concat([t(part) for t, part in self._parts(x)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return F.concat([t._back(part) for t, part in self._parts(y)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        images = F.split(y, self.lengths, self.dim)
        parts = zip(self._parts(x), images, strict=True)
        return F.concat([t.log_abs_det_jacobian(a, b) for (t, a), b in parts], self.dim)


class StackTransform(Transform):
    """Transforms of the places of an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(t.bijective for t in self.transforms)
        self.domain = constraints.stack([t.domain for t in self.transforms], dim)
        self.codomain = constraints.stack([t.codomain for t in self.transforms], dim)

    def _parts(self, x: Any) -> Any:
        return zip(self.transforms, F.unstack(x, axis=self.dim), strict=True)

    def _call(self, x: Any) -> Any:
        return F.stack([t(part) for t, part in self._parts(x)], self.dim)

    def _inverse(self, y: Any) -> Any:
        return F.stack([t._back(part) for t, part in self._parts(y)], self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        parts = zip(self._parts(x), F.unstack(y, axis=self.dim), strict=True)
        return F.stack([t.log_abs_det_jacobian(a, b) for (t, a), b in parts], self.dim)
