"""Whether operations, run by whomever, are to stop at the first NaN."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import numpy as np

from .device_array import DeviceArray, is_placed, runtime
from .dtype import is_float
from .modes import modes
from .op import find_op

detecting: ContextVar[bool] = ContextVar("weft_detecting_anomaly", default=False)

# What runs the bodies of control flow while somebody looks for the operation that made a NaN.
searching: ContextVar[Any] = ContextVar("weft_searching_nan", default=None)


def detecting_anomaly() -> bool:
    """Tell whether anomaly detection is on in this context: it runs an interpreter, if it is."""
    return bool(modes.interpreters) and detecting.get()


def has_nan(value: Any) -> bool:
    """Tell whether a tensor or array holds a NaN; a symbol, which has no value, does not."""
    if value is None or getattr(value, "symbolic", False):
        return False
    if getattr(value, "is_sparse", False):
        return has_nan(value.values)
    array = getattr(value, "_value", value)
    if is_placed(array):
        return is_float(array.dtype) and _has_nan_there(array)
    array = np.asarray(array)
    return is_float(array.dtype) and bool(np.isnan(array).any())


def _has_nan_there(value: DeviceArray) -> bool:
    """Ask the device; only the answer is copied."""

    def asked(op: str, x: Any, *attrs: Any) -> Any:
        return runtime.get().launch(find_op(op), (x,), attrs, value.device)

    return bool(asked("any", asked("isnan", value), tuple(range(value.ndim)), False).item())
