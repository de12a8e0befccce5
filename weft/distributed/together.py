"""What processes do together with names, numbers and errors: small things, and named arrays."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np

from ..core.dtype import as_dtype
from .world import ProcessGroup

Array = np.ndarray[Any, Any]
_Found = TypeVar("_Found")
_TAG: Final = 7919


def hand_arrays(
    members: ProcessGroup, arrays: Mapping[str, Array] | None, source: int, target: int = 0
) -> dict[str, Array] | None:
    """Move named arrays from one process to another; all call it. Others get nothing."""
    about = None
    if arrays is not None:
        about = [(name, array.dtype.name, array.shape) for name, array in arrays.items()]
    listed = everyone(members, about)[source]
    exchanges = members.exchanges
    if members.rank == source and arrays is not None:
        for name, _, _ in listed:
            array = np.ascontiguousarray(arrays[name])
            exchanges.run(partial(exchanges.transport.send, array, target, _TAG))
        return dict(arrays) if source == target else None
    if members.rank != target:
        return None
    received = {name: np.empty(shape, as_dtype(dtype)) for name, dtype, shape in listed}
    for array in received.values():
        exchanges.run(partial(exchanges.transport.receive, array, source, _TAG))
    return received


def broadcast_arrays(
    members: ProcessGroup, arrays: Mapping[str, Array] | None, source: int
) -> dict[str, Array]:
    """Return the named arrays of one process on all; all call it."""
    about = None
    if arrays is not None:
        about = [(name, array.dtype.name, array.shape) for name, array in arrays.items()]
    listed = everyone(members, about)[source]
    exchanges = members.exchanges
    received = {}
    for name, dtype, shape in listed:
        own = arrays[name] if arrays is not None else np.empty(shape, as_dtype(dtype))
        move = partial(exchanges.transport.broadcast, np.ascontiguousarray(own), source)
        received[name] = exchanges.run(move)
    return received


def everyone(members: ProcessGroup, item: Any) -> list[Any]:
    """Return a small Python object of each process of a group."""
    exchanges = members.exchanges
    found: list[Any] = exchanges.run(lambda: exchanges.transport.objects(item))
    return found


def attempt(act: Callable[[], _Found]) -> tuple[_Found | None, str | None]:
    """Return what a function returns, or what went wrong, which all processes are to know."""
    try:
        return act(), None
    except Exception as error:
        return None, f"on {platform.node()}: {type(error).__name__}: {error}"


def raise_any(members: ProcessGroup, error: str | None, kind: type[Exception]) -> None:
    """Raise on all processes what went wrong on any."""
    errors = {i: e for i, e in enumerate(everyone(members, error)) if e is not None}
    if errors:
        raise together(errors, kind)


def together(errors: Mapping[int, str], kind: type[Exception]) -> Exception:
    """Return one error for what went wrong on some processes."""
    text = "; ".join(f"rank {i} {e}" for i, e in sorted(errors.items())[:3])
    return kind(0, text) if issubclass(kind, OSError) else kind(text)
