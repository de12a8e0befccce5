"""Snapshots: the tensors of a `state_dict()`, which can be read and copied but not written.

Writing into one would change neither the module nor the optimizer that it was taken from, which is
what people who write `state["weight"].zero_()` expect; so it is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from .errors import LostWriteError
from .modes import current_recorder
from .tensor import PLAIN, Tensor, wrap


class Snapshot(Tensor):
    """A tensor of a state dictionary: a value at one moment, not to be written."""

    __slots__ = ()

    def _rebind(self, result: Tensor) -> NoReturn:
        raise LostWriteError(
            "this tensor is a read-only snapshot from state_dict(): writing into it would not "
            "change what it was taken from. Write into a copy, x.clone(), and give that to "
            "load_state_dict(...), or write into the parameter itself inside `with wf.no_grad():`"
        )

    def _exclusive(self) -> None:
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        memo[id(self)] = copy = wrap(self._value)
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return wrap(self._value).__reduce__()


def snapshot(value: np.ndarray[Any, Any]) -> Tensor:
    """Return a read-only tensor around an array."""
    return wrap(value, Snapshot)


def snapshot_of(tensor: Tensor) -> Tensor:
    """Return the value that a tensor has now, read-only; of a symbol, the symbol detached."""
    if (recorder := current_recorder()) is not None:
        recorded: Tensor = recorder.snapshot(tensor)
        return recorded
    detached = tensor.detach()
    return snapshot(detached._value) if detached.__class__ in PLAIN else detached
