"""What goes into a checkpoint of triggers, extensions and metrics: some of their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np


class Saved:
    """Base of what has a state; a subclass lists in `_saved` the attributes that hold it.

    An attribute that has a state of its own is saved by that.
    """

    _saved: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to know."""
        return {name.lstrip("_"): _state_of(getattr(self, name)) for name in self._saved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        for name in self._saved:
            held, value = getattr(self, name), state[name.lstrip("_")]
            if hasattr(held, "load_state_dict"):
                held.load_state_dict(value)
            else:  # arrays may come back as tensors
                setattr(self, name, np.array(value) if hasattr(value, "shape") else value)


def _state_of(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        return value.state_dict()
    return value.copy() if isinstance(value, np.ndarray) else value
