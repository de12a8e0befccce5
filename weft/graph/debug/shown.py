"""Values as text: what wf.debug.print and the debugger write."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import is_float, printable

Array = np.ndarray[Any, Any]
THRESHOLD, EDGE = 64, 3  # elements from which arrays are shortened, and how many of each axis stay


def described(array: Array) -> str:
    """Return dtype and shape: `float32[2, 3]`."""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def shown(label: str, array: Array, *, stats: bool = False) -> str:
    """Return a value as one line, or as several if it has rows."""
    head = f"{label}: {described(array)}" if label else described(array)
    if stats:
        return f"{head} {summarized(array)}"
    text = np.array2string(printable(array), threshold=THRESHOLD, edgeitems=EDGE, precision=6)
    return f"{head}\n{text}" if "\n" in text else f"{head} {text}"


def summarized(array: Array) -> str:
    """Return the least, the mean and the greatest element, and how many are not finite."""
    if not array.size:
        return "is empty"
    if not is_float(array.dtype):
        return f"min {array.min()}, max {array.max()}"
    wide = printable(array).astype(np.float64)
    good = wide[np.isfinite(wide)]
    nans, infs = int(np.isnan(wide).sum()), int(np.isinf(wide).sum())
    parts = [f"min {good.min():.6g}, mean {good.mean():.6g}, max {good.max():.6g}"] * bool(
        good.size
    )
    parts += [f"{nans} NaN"] * bool(nans) + [f"{infs} inf"] * bool(infs)
    return ", ".join(parts)
