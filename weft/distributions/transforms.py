"""Invertible functions of samples, with the logarithm of how much they stretch.

`t(x)` transforms, `t.inv(y)` goes back, and `t.log_abs_det_jacobian(x, y)` is the logarithm of the
absolute determinant of the derivative; it has the shape of x without its last event axes.

Here is their base, and what is made of others: inverses, chains, more axes, other shapes. Those of
numbers are in number_transforms.py, those of vectors and matrices in vector_transforms.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from ..core.errors import ShapeError
from ..core.op import F
from ..core.shape import Shape, size_of
from . import constraints
from ._shared import as_tensor, sum_last


class Transform:
    """The base of transforms.

    bijective    whether it can be undone
    sign         1 or -1 where it is monotonous, in one dimension
    cache_size   1 to keep the last operand and its result: going back from that very tensor, as
                 `log_prob` of a draw does, gives the operand itself, also where rounding lost it
    """

    bijective = True
    cache_size = 0  # of those whose constructor does not come here
    _kept: tuple[Any, Any] = (None, None)
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self.cache_size = cache_size

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with a cache, or without one."""
        if self.cache_size == cache_size:
            return self
        made = copy(self)
        made.cache_size, made._kept = cache_size, (None, None)
        return made

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative."""
        raise NotImplementedError(f"{type(self).__name__} is not monotonous")

    @property
    def event_dim(self) -> int:
        """Return how many last axes it takes together."""
        return int(max(self.domain.event_dim, self.codomain.event_dim))

    @property
    def inv(self) -> Transform:
        """Return the inverse."""
        return _Inverse(self)

    def __call__(self, x: Any) -> Any:
        """Return the transformed values."""
        x = as_tensor(x)
        if not self.cache_size:
            return self._call(x)
        before, after = self._kept
        if x is not before:
            after = self._call(x)
            self._kept = x, after
        return after

    def _back(self, y: Any) -> Any:
        """Return what has been, or would be, transformed into y."""
        if not self.cache_size:
            return self._inverse(y)
        before, after = self._kept
        if y is not after:
            before = self._inverse(y)
            self._kept = before, y
        return before

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x, whose image is y."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result for an operand of a shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand for a result of a shape."""
        return tuple(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> tuple[Any, ...]:
        return ()


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__()
        self._inv = transform
        self.bijective = transform.bijective
        self.domain, self.codomain = transform.codomain, transform.domain

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def _call(self, x: Any) -> Any:
        return self._inv._back(x)

    def _inverse(self, y: Any) -> Any:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._inv.forward_shape(shape)

    def _key(self) -> tuple[Any, ...]:
        return (self._inv,)

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"


def _cached(part: Transform, cache_size: int) -> Transform:
    """Return a part of a transform with a cache, if the whole has one."""
    return part.with_cache(cache_size) if cache_size else part


class ComposeTransform(Transform):
    """Several transforms, one after the other."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [_cached(part, cache_size) for part in parts]
        self.bijective = all(part.bijective for part in self.parts)

    @property
    def domain(self) -> Any:
        """Return the domain of the first part, with as many axes as the others need."""
        if not self.parts:
            return constraints.real
        return self._around(self.parts[0].domain, [p.inv for p in reversed(self.parts)])

    @property
    def codomain(self) -> Any:
        """Return the codomain of the last part, with as many axes as the others need."""
        return self._around(self.parts[-1].codomain, self.parts) if self.parts else constraints.real

    def _around(self, constraint: Any, parts: list[Transform]) -> Any:
        dims = parts[-1].codomain.event_dim
        reached = 0
        for part in parts:
            reached = max(reached, part.domain.event_dim)
            reached += part.codomain.event_dim - part.domain.event_dim
        reached = max(reached, dims)
        extra = reached - constraint.event_dim
        return constraints.independent(constraint, extra) if extra > 0 else constraint

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative."""
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Transform:
        """Return the inverse."""
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._back(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        total: Any = 0.0
        event = self.domain.event_dim if self.parts else 0
        for part in self.parts:
            after = part(x)
            stretch = part.log_abs_det_jacobian(x, after)
            total = total + sum_last(stretch, event - part.domain.event_dim)
            event += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total if self.parts else F.zeros_like(x)

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return tuple(shape)

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.parts)

    def __repr__(self) -> str:
        return f"ComposeTransform([{', '.join(map(repr, self.parts))}])"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose batch axes count as event axes: their stretches are summed."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = (
            base_transform.with_cache(cache_size) if cache_size else base_transform
        )
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        count = reinterpreted_batch_ndims
        self.domain = constraints.independent(base_transform.domain, count)
        self.codomain = constraints.independent(base_transform.codomain, count)

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative."""
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform._back(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        stretch = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(stretch, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand."""
        return self.base_transform.inverse_shape(shape)

    def _key(self) -> tuple[Any, ...]:
        return self.base_transform, self.reinterpreted_batch_ndims


class ReshapeTransform(Transform):
    """Events of one shape as events of another."""

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if size_of(self.in_shape) != size_of(self.out_shape):
            raise ShapeError(
                f"ReshapeTransform: shapes of one size are needed. "
                f"Received: {self.in_shape} and {self.out_shape}"
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return F.reshape(x, self.forward_shape(x.shape))

    def _inverse(self, y: Any) -> Any:
        return F.reshape(y, self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return F.zeros_like(sum_last(x, len(self.in_shape)))

    def forward_shape(self, shape: Shape) -> Shape:
        """Return the shape of the result."""
        return (*self._batch(tuple(shape), self.in_shape), *self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        """Return the shape of the operand."""
        return (*self._batch(tuple(shape), self.out_shape), *self.in_shape)

    def _batch(self, shape: Shape, event: Shape) -> Shape:
        cut = len(shape) - len(event)
        if cut < 0 or shape[cut:] != event:
            raise ShapeError(f"ReshapeTransform: shape {shape} does not end in {event}")
        return shape[:cut]

    def _key(self) -> tuple[Any, ...]:
        return self.in_shape, self.out_shape
