"""torch.amp: mixed precision. On the CPU everything is computed in the dtypes that it has."""

from __future__ import annotations

import functools
from typing import Any

from ..absent import absent

__all__ = ["GradScaler", "autocast"]


class autocast:  # noqa: N801  (PyTorch's name)
    """A context that lets operations choose their precision: here they keep that of operands."""

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        self.device_type, self.dtype, self.enabled = device_type, dtype, enabled

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave the context."""

    def __call__(self, function: Any) -> Any:
        """Return a function that runs inside of the context."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


class GradScaler:
    """Scales losses where gradients would vanish in half precision; here it does not."""

    def __init__(self, device: Any = "cuda", *args: Any, enabled: bool = True, **_: Any) -> None:
        self._enabled = False

    def is_enabled(self) -> bool:
        """Tell whether losses are scaled: they are not."""
        return False

    def scale(self, outputs: Any) -> Any:
        """Return a loss as it is."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Leave gradients as they are."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Take a step of an optimizer."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """Leave the scale as it is."""

    def get_scale(self) -> float:
        """Return the scale."""
        return 1.0

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: there is no state."""
        return {}

    def load_state_dict(self, state_dict: Any) -> None:
        """Take no state."""


__getattr__ = absent(globals(), {})
