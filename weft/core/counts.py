"""The number of elements of a tensor, which can be called: NumPy's x.size and PyTorch's x.size().

    x.size        6          an int, as in NumPy
    x.size()      (2, 3)     the shape, as in PyTorch
    x.size(0)     2          one of its sizes

A graph may not know sizes yet; then the number is a Dim, which can be called in the same way.
"""

from __future__ import annotations

from typing import Any

from .dim import Dim, size_in


class Count(int):
    """A number of elements that knows the shape it comes from. It prints and pickles as an int."""

    sizes: tuple[Any, ...]

    def __call__(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of one of its axes."""
        return size_in(self.sizes, dim)

    def __reduce__(self) -> tuple[Any, ...]:
        return (int, (int(self),))


def count_elements(number: Any, shape: tuple[Any, ...]) -> Any:
    """Return the number of elements of a shape as something that can be called."""
    count: Any = number.renewed() if isinstance(number, Dim) else Count(number)
    count.sizes = shape
    return count
