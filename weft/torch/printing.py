"""How tensors are shown: as PyTorch does, with four digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..core.tape import Leaf

OPTIONS: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Say how tensors are shown."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems}
    given |= {"linewidth": linewidth, "sci_mode": sci_mode}
    OPTIONS.update({name: value for name, value in given.items() if value is not None})
    if profile == "full":
        OPTIONS["threshold"] = np.inf


def format_tensor(tensor: Any) -> str:
    """Return the text of a tensor: values, dtype where it is not the obvious one, grad state."""
    if tensor.symbolic and not hasattr(tensor.graph, "tracer"):
        return core.Tensor.__repr__(tensor)
    value = tensor._read()
    parts = [_values(value)]
    if value.size == 0 and value.ndim != 1:
        parts.append(f"size={tuple(value.shape)}")
    obvious = (dt.default_float(), dt.int64, dt.bool_)
    if value.dtype not in obvious or (value.size == 0 and value.dtype != dt.default_float()):
        parts.append(f"dtype=torch.{value.dtype.name}")
    parts += _history(tensor)
    return f"tensor({', '.join(parts)})"


def _history(tensor: Any) -> list[str]:
    node = None if tensor.symbolic else tensor._node
    if node is None:
        return []
    if isinstance(node, Leaf):
        return ["requires_grad=True"]
    return [f"grad_fn=<{_title(node.op.name)}Backward0>"]


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _values(value: Any) -> str:
    formatter = _number_format(value)
    kind: Any = {"float_kind": formatter} if formatter is not None else None
    return np.array2string(
        dt.printable(value),
        separator=", ",
        prefix="tensor(",
        threshold=OPTIONS["threshold"],
        edgeitems=OPTIONS["edgeitems"],
        max_line_width=OPTIONS["linewidth"],
        formatter=kind,
    )


def _number_format(value: Any) -> Any:
    """Return what writes one float so that all of them have one width."""
    if not dt.is_float(value.dtype) or value.size == 0:
        return None
    numbers = np.asarray(value, np.float64)
    finite = numbers[np.isfinite(numbers)]
    digits = OPTIONS["precision"]
    if finite.size == 0 or (np.all(finite == np.trunc(finite)) and np.abs(finite).max() < 1e8):
        texts = [_whole(x) for x in numbers.ravel()[:2000]]
        width = max(map(len, texts))
        return lambda x: _whole(x).rjust(width)
    sizes = np.abs(finite[finite != 0])
    wide = sizes.max() / sizes.min() > 1000 or sizes.max() > 1e8 or sizes.min() < 1e-4
    scientific = OPTIONS["sci_mode"] if OPTIONS["sci_mode"] is not None else wide
    form = f".{digits}{'e' if scientific else 'f'}"
    width = max(len(format(float(x), form)) for x in numbers.ravel()[:2000])
    return lambda x: format(float(x), form).rjust(width)


def _whole(x: Any) -> str:
    return f"{x:.0f}." if np.isfinite(x) else format(float(x))
