"""The few functions of `keras.backend` that programs still use."""

from __future__ import annotations

from ..core.dtype import default_float
from ..faces.absent import absent_names
from .naming import forget_names

__all__ = ["clear_session", "epsilon", "floatx", "image_data_format"]


def clear_session() -> None:
    """Begin to count the names of layers anew."""
    forget_names()


def floatx() -> str:
    """Return the default dtype."""
    return str(default_float())


def epsilon() -> float:
    """Return the small number that keeps logarithms finite."""
    return 1e-7


def image_data_format() -> str:
    """Return where channels are by default."""
    return "channels_last"


_REASONS = {
    name: f"use weft.{name} in a layer or a loss of your own"
    for name in ("mean", "sum", "square", "sqrt", "exp", "log", "abs", "max", "clip", "dot")
}
__getattr__ = absent_names(globals(), _REASONS)
