"""Reading and writing by index as NumPy text: what stands between the brackets, and helpers.

The helpers are written out beside programs that use them, so they are plain functions of NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._spec import ARRAY, Spec


def index_text(spec: Spec) -> str:
    """Return what stands between the brackets; index arrays are places named arrays_0, ..."""
    found: list[str] = []
    arrays = 0
    for item in spec:
        if item == ARRAY:
            found.append(f"{{arrays_{arrays}}}")
            arrays += 1
        else:
            found.append(_item_text(item))
    return ", ".join(found) or "()"


def whole_index(spec: Spec) -> str:
    """Return an index as an expression that stands alone."""
    text = index_text(spec)
    return text if len(spec) == 1 and ":" not in text else f"np.s_[{text}]"


def _item_text(item: Any) -> str:
    if item is ...:
        return "..."
    if item.__class__ is not tuple:
        return str(item)
    start, stop, step = ("" if end is None else str(end) for end in item)
    return f"{start}:{stop}" + (f":{step}" if step else "")


def placed(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, np.result_type(g))
    out[index] = g
    return out


def added(g: Any, shape: Any, index: Any) -> Any:
    out = np.zeros(shape, np.result_type(g))
    np.add.at(out, index, g)
    return out


def replaced(x: Any, index: Any, value: Any) -> Any:
    out = np.array(x)
    out[index] = value
    return out
