"""Give the memory of what is fed to a program, so that results may take it.

    session.run(new, {x: values}, donate=[x])

A tensor that was given away has no elements any more: whoever looks at them afterwards is told
which call took it, and at which line. A NumPy array cannot be emptied: it is written over, as an
array is that is given to NumPy as `out`. Whether a result takes the memory of a feed the plan
decides, by type and time; the feed is given away in either case.

What others hold as well is refused, since they would see it change.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from ..core.device_array import is_placed
from ..core.donation import DonatedMemory
from ..core.dtype import Array
from ..core.errors import (
    ArgumentError,
    ArgumentTypeError,
    format_site,
    is_committed,
    is_from_signal,
    user_site,
)
from ..core.tensor import Tensor
from .graph import Graph
from .members import fed_member
from .node import Value
from .state import State
from .symbol import Symbol


class Donated(NamedTuple):
    """A value that is given away, and what it is called."""

    name: str
    given: Any


def donated_feeds(what: str, graph: Graph, feeds: Sequence[Value], donate: Any) -> tuple[int, ...]:
    """Return which feeds of a graph are given away, by symbols, names or places."""
    found: set[int] = set()
    for key in _several(donate):
        if isinstance(key, int) and not isinstance(key, bool):
            found.add(_place(what, key, len(feeds), "feeds"))
            continue
        value = fed_member(graph, key, what, "donate")
        if value not in feeds:
            raise ArgumentError(
                f"{what}: donate names {value.name}, which is not fed; there are {len(feeds)} "
                f"feeds: {', '.join(feed.name for feed in feeds)}"
            )
        found.add(feeds.index(value))
    return tuple(sorted(found))


def donated_arguments(what: str, function: Callable[..., Any], donate: Any, count: int) -> set[int]:
    """Return which of so many arguments of a function are given away, by positions or names."""
    names = _parameters(function)
    found: set[int] = set()
    for key in _several(donate):
        if isinstance(key, int) and not isinstance(key, bool):
            found.add(_place(what, key, count, "arguments"))
        elif isinstance(key, str) and key in names:
            found.add(_place(what, names.index(key), count, "arguments"))
        else:
            raise ArgumentError(
                f"{what}: donate must name arguments by position or name: {', '.join(names)}. "
                f"Received: {key!r:.60}"
            )
    return found


def _several(donate: Any) -> Iterable[Any]:
    return donate if isinstance(donate, (list, tuple, set, frozenset)) else [donate]


def _place(what: str, place: int, count: int, kind: str) -> int:
    if not -count <= place < count:
        raise ArgumentError(f"{what}: donate names place {place} of {count} {kind}")
    return place % count


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(signature(function).parameters)
    except (TypeError, ValueError):  # a function without a signature
        return []


def check_donated(
    what: str, donated: Sequence[Donated], others: Iterable[Any], states: Iterable[State] = ()
) -> None:
    """Raise unless values may be given away; `others` are fed as well, `states` are read too."""
    arrays = [_own_array(what, value) for value in donated]
    kept = [array for array in map(_array_of, others) if array is not None]
    for i, (value, array) in enumerate(zip(donated, arrays, strict=True)):
        again = [*arrays[:i], *kept]
        if any(array is other or other.base is array for other in again):
            raise ArgumentError(
                f"{what}: {value.name} is donated and given a second time, itself or a view of it; "
                "donate a copy (x.copy()), or do not donate it"
            )
    read = [state for state in states if not state.number]
    for state in read if arrays else ():
        if any(state.read() is array for array in arrays):
            raise ArgumentError(
                f"{what}: what is donated is {state.name}, a state that the program reads; its "
                "memory is the program's to change already"
            )


class Taking:
    """Checks what is given away, and empties it when a call has ended.

    A call that fails has taken nothing.
    """

    def __init__(
        self,
        what: str,
        donated: Sequence[Donated],
        others: Iterable[Any],
        states: Iterable[State] = (),
    ) -> None:
        check_donated(what, donated, others, states)
        self.what, self.donated = what, donated

    def __enter__(self) -> Taking:
        """Begin the call."""
        return self

    def __exit__(self, _: Any, error: BaseException | None, traceback: Any) -> None:
        """End it."""
        if error is None or may_have_taken(error):
            take_donated(self.what, self.donated)


def may_have_taken(error: BaseException) -> bool:
    """Tell whether a call that ended in an error may have come so far as to write over memory.

    It was interrupted, or failed when all was computed; nobody could tell how far it came.
    """
    late = isinstance(error, MemoryError) or is_committed(error)
    return late or not isinstance(error, Exception) or is_from_signal(error)


def take_donated(what: str, donated: Iterable[Donated], kept: Iterable[Any] = ()) -> None:
    """Empty the tensors that a call took; not those that it returned as they are."""
    returned = {id(leaf) for leaf in kept}
    line = format_site(user_site())
    for name, given in donated:
        if isinstance(given, Tensor) and id(given) not in returned:
            where = f" at {line}" if line else ""
            given._value = DonatedMemory(  # type: ignore[assignment]  # in an array's place
                given._value,
                f"this tensor was donated: {what}{where} took the memory of {name}, and its "
                "elements are gone. Use what the call returned, donate a copy (x.copy()), or "
                "leave it out of donate=",
            )


def _array_of(given: Any) -> Array | None:
    value = given._value if isinstance(given, Tensor) else given
    return value if isinstance(value, np.ndarray) or is_placed(value) else None


def _own_array(what: str, donated: Donated) -> Array:
    """Return the array of what is given away; raise if others would see it change."""
    name, given = donated
    if isinstance(given, Symbol) or not isinstance(given, (Tensor, np.ndarray)):
        raise ArgumentTypeError(
            f"{what}: {name} is donated and must be a tensor or a NumPy array. "
            f"Received: {type(given).__name__}"
        )
    if isinstance(given, Tensor):
        _check_tensor(what, name, given)
    array = given._value if isinstance(given, Tensor) else given
    if isinstance(array, DonatedMemory):
        array.refuse()
    if is_placed(array):
        return array
    flags = array.flags
    usual = flags.owndata and flags.writeable and flags.aligned and flags.c_contiguous
    if not usual or array.__class__ is not np.ndarray:
        raise ArgumentError(
            f"{what}: {name} cannot be donated: its array must own its memory, be writeable and "
            "lie in C order. Received: " + _unusual(array) + "; donate a copy (x.copy())"
        )
    return array


def _check_tensor(what: str, name: str, tensor: Tensor) -> None:
    if tensor.requires_grad:
        kind = "a leaf that requires a gradient" if tensor.is_leaf else "part of a history"
        raise ArgumentError(
            f"{what}: {name} cannot be donated: it is {kind}, which backward needs; donate "
            "x.detach().copy(), or do not donate it"
        )
    if not isinstance(tensor._value, DonatedMemory) and _is_shared(tensor):
        raise ArgumentError(
            f"{what}: {name} cannot be donated: something else holds its memory: a view of it, an "
            "array that .numpy() returned or it was made from, or a saved value of a history; "
            "donate a copy (x.copy())"
        )


def _is_shared(tensor: Tensor) -> bool:
    if getrefcount(tensor._value) <= _ALONE:
        return False
    gc.collect()  # what holds it may be garbage: the frames of an error that was caught
    return getrefcount(tensor._value) > _ALONE


def _seen_alone() -> int:
    tensor = Tensor.__new__(Tensor)
    tensor._value = np.zeros(1)
    return getrefcount(tensor._value)


_ALONE = _seen_alone()  # references to the array of a tensor that nobody else holds


def _unusual(array: Array) -> str:
    if array.__class__ is not np.ndarray:
        return f"a {type(array).__name__}"
    if not array.flags.owndata:
        return "a view of other memory"
    if not array.flags.writeable:
        return "an array that is read only"
    return "an array that is not aligned or not in C order"
