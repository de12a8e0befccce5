"""Size: the shape of a tensor, a tuple that counts its elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.shape import size_of


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions.

    >>> from weft import torch
    >>> torch.zeros(2, 3).size()
    torch.Size([2, 3])
    >>> torch.zeros(2, 3).size().numel()
    6
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements."""
        return size_of(tuple(self))

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Size:
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count: Any) -> Size:
        return Size(tuple(self) * count)

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (tuple(self),)


def sizes_of(given: Iterable[Any]) -> tuple[Any, ...]:
    """Return sizes that were given one by one, or as one sequence."""
    sizes = tuple(given)
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        return tuple(sizes[0])
    return sizes
