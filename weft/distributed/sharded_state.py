"""Checkpoints of models whose parameters are spread over processes (ZeRO), for any number of them.

Each process has a part of a vector of all parameters of a unit, filled up with zeros so that parts
are equal. A checkpoint holds the vector without the filling, so that another number of processes
can divide it anew; the same goes for what the optimizer keeps of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tensor import Tensor, wrap
from ..io import ArrayPart
from ..nn import Module
from ..optim import Optimizer
from .checkpoints import load_checkpoint, save_checkpoint
from .sharded import ShardedUnit
from .world import group_numbered


def sharded_state(model: Module, optimizer: Optimizer | None = None) -> dict[str, Any]:
    """Return the states of a model and its optimizer, with parts where parameters are spread.

    `save_checkpoint` takes it; `load_sharded_state` reads it on any number of processes.

    >>> import weft as wf
    >>> model = wf.distributed.shard_parameters(wf.nn.Sequential(wf.nn.Linear(2, 1)))
    >>> sharded_state(model)["model"]
    {'0.shard': ArrayPart(values=tensor([...]), shape=(3,), start=(0,))}
    """
    places = _places(model)
    state: dict[str, Any] = {
        "model": {
            name: _part(tensor, places[name]) if name in places else tensor
            for name, tensor in model.state_dict().items()
        }
    }
    if optimizer is not None:
        kept, numbered = optimizer.state_dict(), _numbered(model, optimizer, places)
        slots = {
            number: {slot: _slot(value, numbered.get(int(number))) for slot, value in some.items()}
            for number, some in kept["state"].items()
        }
        state["optimizer"] = {**kept, "state": slots}
    return state


def save_sharded_state(
    directory: Any, model: Module, optimizer: Optimizer | None = None, metadata: Any = None
) -> None:
    """Write a model whose parameters are spread, and its optimizer; all processes call it."""
    save_checkpoint(directory, sharded_state(model, optimizer), metadata)


def load_sharded_state(directory: Any, model: Module, optimizer: Optimizer | None = None) -> None:
    """Take over what any number of processes wrote; all processes call it."""
    found = load_checkpoint(directory, like=sharded_state(model, optimizer))
    take_sharded_state(found, model, optimizer)


def take_sharded_state(
    found: Mapping[str, Any], model: Module, optimizer: Optimizer | None = None
) -> None:
    """Take over the states of a model and its optimizer, of which parts or wholes were read."""
    places = _places(model)
    model.load_state_dict(
        {
            name: _own(value, places[name]) if name in places else value
            for name, value in found["model"].items()
        }
    )
    if optimizer is None:
        return
    numbered = _numbered(model, optimizer, places)
    kept = found["optimizer"]
    slots = {
        number: {slot: _own_slot(v, numbered.get(int(number))) for slot, v in values.items()}
        for number, values in kept["state"].items()
    }
    optimizer.load_state_dict({**kept, "state": slots})


class _Place:
    """Where this process's part of a vector stands."""

    def __init__(self, unit: ShardedUnit) -> None:
        group = group_numbered(unit.group_number)
        self.length = int(unit.shard.size)
        self.total = unit.total
        self.start = min((group.rank or 0) * self.length, self.total)
        self.valid = min(self.length, self.total - self.start)


def _places(model: Module) -> dict[str, _Place]:
    units = ((n, m) for n, m in model.named_modules() if isinstance(m, ShardedUnit))
    return {f"{name}.shard" if name else "shard": _Place(unit) for name, unit in units}


def _numbered(model: Module, optimizer: Optimizer, places: dict[str, _Place]) -> dict[int, _Place]:
    """Return the places by the numbers that the optimizer gives to parameters."""
    named = {id(p): places[name] for name, p in model.named_parameters() if name in places}
    return {i: named[id(p)] for i, p in enumerate(optimizer.parameters()) if id(p) in named}


def _part(tensor: Any, place: _Place) -> ArrayPart:
    return ArrayPart(tensor[: place.valid], (place.total,), (place.start,))


def _slot(value: Any, place: _Place | None) -> Any:
    is_part = place is not None and getattr(value, "shape", None) == (place.length,)
    return _part(value, place) if is_part and place is not None else value


def _own_slot(value: Any, place: _Place | None) -> Any:
    if place is None or getattr(value, "shape", None) not in ((place.valid,), (place.total,)):
        return value
    return _own(value, place)


def _own(value: Any, place: _Place) -> Any:
    """Return this process's part, filled up, of that part or of the whole vector."""
    array = np.asarray(value.numpy() if isinstance(value, Tensor) else value)
    if array.size == place.total:
        array = array[place.start : place.start + place.valid]
    filled = np.zeros(place.length, array.dtype)
    filled[: place.valid] = array
    return wrap(filled) if isinstance(value, Tensor) else filled
