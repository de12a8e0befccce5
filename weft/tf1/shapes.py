"""Static shapes, of sizes that are known, unknown, or not even counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..core.dim import Dim

__all__ = ["Dimension", "TensorShape", "dimension_value"]


class Dimension:
    """A size: a number, or None if it is not known."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        if isinstance(value, Dimension):
            value = value.value
        self.value: int | None = None if value is None else int(value)
        if self.value is not None and self.value < 0:
            raise ValueError(f"Dimension {value} must be >= 0")

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether both can be the same size."""
        other = Dimension(other)
        return self.value is None or other.value is None or self.value == other.value

    def merge_with(self, other: Any) -> Dimension:
        """Return what both together say."""
        other = Dimension(other)
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")
        return other if self.value is None else self

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self.value is None:
            raise TypeError("the size is not known (None); use tf.shape(x) for it in the graph")
        return self.value

    def __eq__(self, other: object) -> Any:
        try:
            theirs = Dimension(other)
        except (TypeError, ValueError):
            return NotImplemented
        if self.value is None or theirs.value is None:
            return None
        return self.value == theirs.value

    def __hash__(self) -> int:
        return hash(self.value)

    def _with(self, other: Any, compute: Any) -> Dimension:
        theirs = Dimension(other)
        if self.value is None or theirs.value is None:
            return Dimension(None)
        return Dimension(compute(self.value, theirs.value))

    def __add__(self, other: Any) -> Dimension:
        return self._with(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dimension:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Dimension:
        return Dimension(other) - self

    def __mul__(self, other: Any) -> Dimension:
        return self._with(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Dimension:
        return self._with(other, lambda a, b: a // b)

    __truediv__ = __div__ = __floordiv__

    def __mod__(self, other: Any) -> Dimension:
        return self._with(other, lambda a, b: a % b)

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, lambda a, b: a >= b)

    def _compared(self, other: Any, compute: Any) -> Any:
        theirs = Dimension(other)
        if self.value is None or theirs.value is None:
            return None
        return compute(self.value, theirs.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)


def dimension_value(size: Any) -> int | None:
    """Return a size as a number or None."""
    return size.value if isinstance(size, Dimension) else size


class TensorShape:
    """The sizes of a tensor as far as they are known before it runs.

    dims   the sizes, or None if not even their number is known
    """

    __slots__ = ("_sizes",)

    def __init__(self, dims: Any) -> None:
        self._sizes: tuple[int | None, ...] | None = None
        if isinstance(dims, TensorShape):
            self._sizes = dims._sizes
        elif dims is not None:
            whole = dims if isinstance(dims, Sequence) or hasattr(dims, "__iter__") else (dims,)
            self._sizes = tuple(Dimension(_plain(size)).value for size in whole)

    @property
    def sizes(self) -> tuple[int | None, ...] | None:
        """Return the sizes as numbers and None."""
        return self._sizes

    @property
    def dims(self) -> list[Dimension] | None:
        """Return the sizes."""
        return None if self._sizes is None else [Dimension(size) for size in self._sizes]

    @property
    def ndims(self) -> int | None:
        """Return the number of sizes."""
        return None if self._sizes is None else len(self._sizes)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list of numbers and None."""
        if self._sizes is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._sizes)

    def num_elements(self) -> int | None:
        """Return the number of elements, None if a size is not known."""
        if not self.is_fully_defined():
            return None
        count = 1
        for size in self._sizes or ():
            count *= size or 0
        return count

    def is_fully_defined(self) -> bool:
        """Tell whether all sizes are known."""
        return self._sizes is not None and None not in self._sizes

    def assert_is_fully_defined(self) -> None:
        """Raise if a size is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """Tell whether one tensor can have both shapes."""
        mine, theirs = self._sizes, TensorShape(other)._sizes
        if mine is None or theirs is None:
            return True
        return len(mine) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise unless one tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """Return what both shapes together say."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        mine, theirs = self._sizes, other._sizes
        if mine is None or theirs is None:
            return other if mine is None else self
        return TensorShape([b if a is None else a for a, b in zip(mine, theirs, strict=True)])

    def assert_has_rank(self, rank: int) -> None:
        """Raise unless the number of sizes can be this."""
        self.with_rank(rank)

    def with_rank(self, rank: int) -> TensorShape:
        """Return the shape with this number of sizes."""
        if self._sizes is None:
            return TensorShape([None] * rank)
        if len(self._sizes) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return the shape; raise if it has fewer sizes."""
        if self._sizes is not None and len(self._sizes) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def concatenate(self, other: Any) -> TensorShape:
        """Return the sizes of both, one after another."""
        other = TensorShape(other)
        if self._sizes is None or other._sizes is None:
            return TensorShape(None)
        return TensorShape((*self._sizes, *other._sizes))

    def __len__(self) -> int:
        if self._sizes is None:
            raise ValueError("Cannot take the length of Shape with unknown rank.")
        return len(self._sizes)

    def __bool__(self) -> bool:
        return self._sizes is not None

    def __iter__(self) -> Iterator[Dimension]:
        if self._sizes is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return map(Dimension, self._sizes)

    def __getitem__(self, key: Any) -> Any:
        if self._sizes is None:
            return TensorShape(None) if isinstance(key, slice) else Dimension(None)
        found = self._sizes[key]
        return TensorShape(found) if isinstance(key, slice) else Dimension(found)

    def __eq__(self, other: object) -> bool:
        try:
            return self._sizes == TensorShape(other)._sizes
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._sizes)

    def __repr__(self) -> str:
        return f"TensorShape({None if self.dims is None else self.dims})"

    def __str__(self) -> str:
        if self._sizes is None:
            return "<unknown>"
        shown = ", ".join("?" if size is None else str(size) for size in self._sizes)
        return f"({shown},)" if len(self._sizes) == 1 else f"({shown})"


def _plain(size: Any) -> Any:
    if isinstance(size, Dim):
        return None
    if isinstance(size, int) and size == -1:
        return None
    return size


def listed(shape: TensorShape) -> str:
    """Return a shape as the messages of operations show it: `[2,3]`, `[?,3]`, `<unknown>`."""
    if shape.sizes is None:
        return "<unknown>"
    return "[" + ",".join("?" if size is None else str(size) for size in shape.sizes) + "]"
