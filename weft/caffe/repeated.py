"""Repeated fields: lists of checked values, of messages, and the numbers of blobs as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .scalars import scalar
from .schema import Field

Touch = Callable[[], None]


class _Listed(MutableSequence[Any]):
    """A list that tells its message when something is put into it."""

    def __init__(self, touch: Touch) -> None:
        self._items: list[Any] = []
        self._touch = touch

    def _checked(self, value: Any) -> Any:
        raise NotImplementedError

    def insert(self, index: int, value: Any) -> None:
        """Put a value before another."""
        self._items.insert(index, self._checked(value))
        self._touch()

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._items[index]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            self._items[index] = [self._checked(item) for item in value]
        else:
            self._items[index] = self._checked(value)
        self._touch()

    def __delitem__(self, index: int | slice) -> None:
        del self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Iterable) and self._items == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return repr(self._items)


class Items(_Listed):
    """Numbers, strings, booleans or values of an enumeration."""

    def __init__(self, field: Field, owner: str, touch: Touch) -> None:
        super().__init__(touch)
        self._field, self._owner = field, owner

    def _checked(self, value: Any) -> Any:
        return scalar(self._field, value, self._owner)


class Messages(_Listed):
    """Messages of one type."""

    def __init__(self, kind: type[Any], touch: Touch) -> None:
        super().__init__(touch)
        self._kind = kind

    def add(self, **fields: Any) -> Any:
        """Append a new message with these fields, and return it."""
        made = self._kind(**fields)
        self._items.append(made)
        self._touch()
        return made

    def _checked(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._kind(**value)
        if not isinstance(value, self._kind):
            raise TypeError(f"takes messages {self._kind.__name__}. Received: {value!r:.80}")
        return value.copy()


class Numbers:
    """The numbers of a blob, in one array: `append` and `extend` as of a list."""

    def __init__(self, field: Field, touch: Touch) -> None:
        self.array: NDArray[Any] = np.empty(0, np.float32 if field.kind == "float" else np.float64)
        self._touch = touch

    def extend(self, values: Any) -> None:
        """Append numbers: a sequence, an array of any shape, an iterator."""
        more = values.array if isinstance(values, Numbers) else _flat(values, self.array.dtype)
        self.array = more.copy() if self.array.size == 0 else np.concatenate([self.array, more])
        self._touch()

    def append(self, value: float) -> None:
        """Append a number."""
        self.extend([value])

    def __len__(self) -> int:
        return int(self.array.size)

    def __iter__(self) -> Iterator[float]:
        return iter(self.array.tolist())

    def __getitem__(self, index: int | slice) -> Any:
        found = self.array[index]
        return found.tolist() if isinstance(index, slice) else float(found)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            items = self.array.tolist()
            items[index] = _flat(value, self.array.dtype).tolist()
            self.array = np.asarray(items, self.array.dtype)
        else:
            self.array[index] = value
        self._touch()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.array, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Numbers):
            return bool(np.array_equal(self.array, other.array, equal_nan=True))
        return isinstance(other, Iterable) and self.array.tolist() == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"<{self.array.size} numbers>"


def _flat(values: Any, dtype: Any) -> NDArray[Any]:
    if not isinstance(values, np.ndarray | list | tuple):
        values = list(values)
    return np.asarray(values, dtype).reshape(-1)
