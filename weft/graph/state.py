"""State: what a graph reads when a run starts and writes when it ends.

Parameters, buffers, the slots of optimizers and random generators live outside of graphs and are
shared with eager mode. A graph refers to each by a State, which knows how to read and to write it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core.rng import STATE_SHAPE, Generator, make_state
from ..core.shape import TensorType, type_of
from ..core.tensor import Tensor

Array = np.ndarray[Any, Any]
NUMBER_DTYPES: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
}


class Number(NamedTuple):
    """Access to a state that is a Python number, not an array."""

    get: Callable[[], bool | int | float]
    put: Callable[[Any], None] | None


class State:
    """Something that keeps its value between the runs of a graph.

    owner   what it belongs to; two states of one owner and label are the same
    label   tells several states of one owner apart
    type    its shape and dtype, which never change
    number  how to get and set it if it is a Python number, which takes the dtype of what it meets
    held    whether what it reads is the very array it keeps, which may then be changed in place
    """

    __slots__ = ("_write", "held", "label", "name", "number", "owner", "read", "type")

    def __init__(
        self,
        owner: Any,
        type: TensorType,
        read: Callable[[], Array],
        write: Callable[[Array], None] | None,
        *,
        name: str,
        label: str = "",
        number: Number | None = None,
        held: bool = False,
    ) -> None:
        self.owner = owner
        self.label = label
        self.type = type
        self.name = name
        self.number = number
        self.held = held
        self.read = read  # return its value now
        self._write = write

    @property
    def key(self) -> tuple[int, str]:
        """Return what tells this state from others."""
        return id(self.owner), self.label

    @property
    def writable(self) -> bool:
        """Tell whether a run may change it."""
        return self._write is not None

    def write(self, value: Array) -> None:
        """Give it a new value."""
        assert self._write is not None, f"{self.name} is read-only"
        self._write(value)

    def __repr__(self) -> str:
        return f"<state {self.name}>"


def number_state(
    owner: Any,
    kind: type,
    get: Callable[[], bool | int | float],
    put: Callable[[Any], None] | None,
    *,
    name: str,
    label: str = "",
) -> State:
    """Return the state that a Python number is: a bool, an int or a float."""
    dtype = NUMBER_DTYPES[kind]

    def read() -> Array:
        return np.array(get(), dtype)

    def write(array: Array) -> None:
        assert put is not None
        put(array.item())

    return State(
        owner,
        TensorType((), dtype),
        read,
        None if put is None else write,
        name=name,
        label=label,
        number=Number(get, put),
    )


def tensor_state(tensor: Tensor, name: str) -> State:
    """Return the state that a tensor outside of the graph is."""

    def read() -> Array:
        return tensor._value

    def write(value: Array) -> None:
        tensor._value = value

    return State(tensor, type_of(tensor), read, write, name=name, held=True)


def generator_state(generator: Generator) -> State:
    """Return the state of a random generator: its key and its counter."""

    def read() -> Array:
        return make_state(*generator.position())

    def write(value: Array) -> None:
        generator.move_to(int(value[2]))

    kind = TensorType(STATE_SHAPE, np.dtype(np.uint64))
    return State(generator, kind, read, write, name="rng")
