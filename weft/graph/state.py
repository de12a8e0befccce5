"""State: what a graph reads when a run starts and writes when it ends.

Parameters, buffers, the slots of optimizers and random generators live outside of graphs and are
shared with eager mode. A graph refers to each by a State, which knows how to read and to write it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.device_array import held_like
from ..core.dtype import Array
from ..core.rng import STATE_SHAPE, Generator, make_state
from ..core.shape import TensorType, type_of
from ..core.tensor import Tensor

NUMBER_DTYPES: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
}


class Keeper(Protocol):
    """What keeps the values of states; of many, by their keys, at once.

    A training step reads and writes hundreds: a call for each would take as long as its kernels.
    Values are arrays, or Python numbers for states that are such. A keeper that only gets and sets
    what an attribute or a container holds says so by `path(key)`; code that is written for
    certain states then does the same without a call (see `StatePath`).
    """

    def read(self, keys: Sequence[Any]) -> list[Any]:
        """Return the values now."""
        ...

    def write(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Give them new values."""
        ...


class ItemStep(NamedTuple):
    """A step of a path into a container; one that is a string is an attribute."""

    key: Any


class StatePath(NamedTuple):
    """Where a value is kept: `root.attribute[key]`, with as many steps as it takes.

    Reading and assigning there is all that the keeper's own `read` and `write` do.
    """

    root: Any
    steps: tuple[str | ItemStep, ...]


class State:
    """Something that keeps its value between the runs of a graph.

    owner      what it belongs to; two states of one owner and label are the same
    label      tells several states of one owner apart
    type       its shape and dtype, which never change
    keeper     what keeps its value, with `place` as the key
    writable   whether a run may change it
    number     whether it is a Python number, which takes the dtype of what it meets
    held       whether what it reads is the very array it keeps, which may then be changed in place
    """

    __slots__ = (
        "held",
        "keeper",
        "label",
        "name",
        "number",
        "owner",
        "place",
        "type",
        "writable",
    )

    def __init__(
        self,
        owner: Any,
        type: TensorType,
        keeper: Keeper,
        place: Any = None,
        *,
        name: str,
        label: str = "",
        writable: bool = True,
        number: bool = False,
        held: bool = False,
    ) -> None:
        self.owner = owner
        self.label = label
        self.type = type
        self.name = name
        self.keeper = keeper
        self.place = place
        self.writable = writable
        self.number = number
        self.held = held

    @property
    def key(self) -> tuple[int, str]:
        """Return what tells this state from others."""
        return id(self.owner), self.label

    @property
    def device(self) -> str:
        """Return the name of the device that it is on."""
        return str(self.owner.device) if isinstance(self.owner, Tensor) else "cpu"

    def read(self) -> Array:
        """Return its value now."""
        (value,) = self.keeper.read([self.place])
        return np.array(value, self.type.dtype) if self.number else value

    def write(self, value: Array) -> None:
        """Give it a new value."""
        assert self.writable, f"{self.name} is read-only"
        self.keeper.write([self.place], [value.item() if self.number else value])

    @property
    def path(self) -> StatePath | None:
        """Return where its value can be read and assigned; None if only the keeper can."""
        path = getattr(self.keeper, "path", None)
        return None if path is None else path(self.place)

    def renamed(self, name: str) -> State:
        """Return the same state under another name."""
        return State(
            self.owner,
            self.type,
            self.keeper,
            self.place,
            name=name,
            label=self.label,
            writable=self.writable,
            number=self.number,
            held=self.held,
        )

    def __repr__(self) -> str:
        return f"<state {self.name}>"


@dataclass(frozen=True)
class KeptTogether:
    """Several states of one keeper, whose values are read and written at once."""

    keeper: Keeper
    places: list[Any]

    def read(self) -> list[Any]:
        """Return their values now."""
        return self.keeper.read(self.places)

    def write(self, values: Iterable[Any]) -> None:
        """Give them new values."""
        self.keeper.write(self.places, values)


def kept_together(states: Iterable[State]) -> list[KeptTogether]:
    """Return states in their order, with neighbours of the same keeper taken together."""
    groups = groupby(states, lambda state: state.keeper)
    return [KeptTogether(keeper, [state.place for state in some]) for keeper, some in groups]


def by_keeper(states: Iterable[State]) -> dict[State, int]:
    """Return the number of each state's keeper: a key that sorts those of one together."""
    keepers: dict[Keeper, int] = {}
    return {state: keepers.setdefault(state.keeper, len(keepers)) for state in states}


class _Tensors:
    """The keeper of tensors outside of the graph: each is its own key."""

    def read(self, keys: Sequence[Any]) -> list[Any]:
        return [tensor._value for tensor in keys]

    def write(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        for tensor, value in zip(keys, values, strict=True):
            tensor._value = held_like(tensor._value, value)

    def path(self, key: Any) -> StatePath:
        return StatePath(key, ("_value",))


_TENSORS = _Tensors()


@dataclass(frozen=True, eq=False)
class Alone:
    """The keeper of a single value, which two functions get and put."""

    get: Callable[[], Any]
    put: Callable[[Any], None] | None = None

    def read(self, keys: Sequence[Any]) -> list[Any]:
        """Return the value, in a list."""
        return [self.get()]

    def write(self, keys: Sequence[Any], values: Iterable[Any]) -> None:
        """Put the value that a list holds."""
        assert self.put is not None
        for value in values:
            self.put(value)


@dataclass(frozen=True, eq=False)
class AttributeKeeper:
    """The keeper of attributes of an object: a key is the name of one."""

    owner: Any

    def read(self, keys: Sequence[str]) -> list[Any]:
        """Return the attributes now."""
        return [getattr(self.owner, name) for name in keys]

    def write(self, keys: Sequence[str], values: Iterable[Any]) -> None:
        """Give attributes new values."""
        for name, value in zip(keys, values, strict=True):
            setattr(self.owner, name, value)

    def path(self, key: str) -> StatePath:
        """Return where an attribute is."""
        return StatePath(self.owner, (key,))


def number_state(
    owner: Any,
    kind: type,
    keeper: Keeper,
    place: Any = None,
    *,
    name: str,
    label: str = "",
    writable: bool = True,
) -> State:
    """Return the state that a Python number is: a bool, an int or a float."""
    kept = TensorType((), NUMBER_DTYPES[kind])
    return State(owner, kept, keeper, place, name=name, label=label, writable=writable, number=True)


def tensor_state(tensor: Tensor, name: str) -> State:
    """Return the state that a tensor outside of the graph is."""
    return State(tensor, type_of(tensor), _TENSORS, tensor, name=name, held=True)


def generator_state(generator: Generator) -> State:
    """Return the state of a random generator: its key and its counter."""

    def get() -> Array:
        return make_state(*generator.position())

    def put(value: Array) -> None:
        generator.move_to(int(value[2]))

    kind = TensorType(STATE_SHAPE, np.dtype(np.uint64))
    return State(generator, kind, Alone(get, put), name="rng")
