"""Where a module is, and batches beside it: what loops over data do for their models."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ..core.device import device
from ..core.device_array import is_placed
from ..core.modes import modes
from ..core.placing import moved_tensors
from .module import Module


def device_of(model: Any) -> device | None:
    """Return the device in whose memory the tensors of a module are; None if they are arrays."""
    if modes.base is None or not isinstance(model, Module):
        return None
    for tensor in chain(model.parameters(), model.buffers()):
        return tensor.device if is_placed(tensor._value) else None
    return None


def beside(model: Any, batch: Any) -> Any:
    """Return a batch with its tensors where the model is."""
    where = device_of(model)
    return batch if where is None else moved_tensors(batch, where)
