"""`chainerx`: programs import it to ask for it. It is not available."""

from __future__ import annotations

from typing import Any

from .backends.cuda import check_cuda_available


class ndarray:  # noqa: N801  (ChainerX's name)
    """A class that nothing is an instance of."""


def is_available() -> bool:
    """Tell that it is not available."""
    return False


def get_device(*_: Any) -> Any:
    """Refuse: there are no such devices."""
    check_cuda_available()
