"""Functional updates in JAX's spelling: `x.at[index].set(value)` and its like.

Each returns a new tensor; x stays as it is. Where an index names an element several times, every
value counts for `add`, `multiply`, `min` and `max`, and the last one for `set`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import F
from ...core.shape import size_of
from ...core.tensor import Tensor
from .setitem import as_value


class At:
    """What `x.at` is: to be indexed.

    >>> import weft as wf
    >>> x = wf.zeros(3)
    >>> x.at[1].set(5.0)
    tensor([0., 5., 0.])
    >>> x.at[wf.tensor([0, 0])].add(1.0)
    tensor([2., 0., 0.])
    """

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> PartOf:
        return PartOf(self._x, index)

    def __repr__(self) -> str:
        return f"At({self._x!r})"


class PartOf:
    """Part of a tensor, from which copies with that part changed are made."""

    __slots__ = ("_index", "_x")

    def __init__(self, x: Tensor, index: Any) -> None:
        self._x, self._index = x, index

    def get(self) -> Any:
        """Return x[index]."""
        return self._x[self._index]

    def set(self, value: Any) -> Any:
        """Return x with a value at the place."""
        return F.index_set(self._x, self._index, value)

    def apply(self, fn: Callable[[Any], Any]) -> Any:
        """Return x with a function of the part in its place."""
        return self.set(fn(self.get()))

    def add(self, value: Any) -> Any:
        """Return x with a value added at the place."""
        index = self._index if isinstance(self._index, tuple) else (self._index,)
        return F.index_put(self._x, index, value, accumulate=True)

    def subtract(self, value: Any) -> Any:
        """Return x with a value subtracted at the place."""
        return self.add(-as_value(value, self._x.dtype))

    def multiply(self, value: Any) -> Any:
        """Return x multiplied by a value at the place."""
        return self._reduced(value, "prod")

    mul = multiply

    def divide(self, value: Any) -> Any:
        """Return x divided by a value at the place."""
        return self._reduced(1 / as_value(value, self._x.dtype), "prod")

    def power(self, value: Any) -> Any:
        """Return x to a power at the place."""
        return self.apply(lambda part: part**value)

    def min(self, value: Any) -> Any:
        """Return x with the smaller of a value and its own at the place."""
        return self._reduced(value, "amin")

    def max(self, value: Any) -> Any:
        """Return x with the larger of a value and its own at the place."""
        return self._reduced(value, "amax")

    def _reduced(self, value: Any, how: str) -> Any:
        x = self._x
        shape = tuple(x.shape)
        places = F.reshape(F.iota(size_of(shape)), shape)[self._index]
        values = as_value(value, x.dtype)
        values = values if values.dtype == x.dtype else F.cast(values, x.dtype)
        spread = F.broadcast_to(values, tuple(places.shape))
        flat = F.reshape(x, (-1,))
        line = (F.reshape(places, (-1,)), F.reshape(spread, (-1,)))
        return F.reshape(F.scatter_reduce(flat, 0, *line, how), shape)


Tensor.at = property(At)  # type: ignore[attr-defined]  # writing is the operators' part
