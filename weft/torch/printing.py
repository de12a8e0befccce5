"""How tensors are shown: as PyTorch does, with four digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from ..core.tape import Leaf

PREFIX = "tensor("
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
    parts = []
    if value.size == 0 and value.ndim != 1:
        parts.append(f"size={tuple(value.shape)}")
    obvious = (dt.default_float(), dt.int64, dt.bool_)
    if value.dtype not in obvious or (value.size == 0 and value.dtype != dt.default_float()):
        parts.append(f"dtype=torch.{value.dtype.name}")
    return _joined(_values(value), parts + _history(tensor))


def _joined(text: str, parts: list[str]) -> str:
    """Return values with what is said behind them, on lines of their own where one is full."""
    text = PREFIX + text
    column = len(text) - text.rfind("\n") + 1
    for part in parts:
        if column + len(part) + 2 > OPTIONS["linewidth"]:
            text += f",\n{' ' * len(PREFIX)}{part}"
            column = len(PREFIX) + len(part)
        else:
            text += f", {part}"
            column += len(part) + 2
    return text + ")"


def _history(tensor: Any) -> list[str]:
    node = None if tensor.symbolic else tensor._node
    if node is None:
        return []
    if isinstance(node, Leaf):
        return ["requires_grad=True"]
    return [f"grad_fn=<{_title(node.op.name)}Backward0>"]


def _title(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


# -- values ----------------------------------------------------------------------------------------


def _values(value: Any) -> str:
    if value.size == 0:
        return "[]"
    edge = OPTIONS["edgeitems"] if value.size > OPTIONS["threshold"] else None
    return _Layout(_number_format(_edges(value, edge)), edge).text(value, len(PREFIX))


def _edges(value: Any, edge: int | None) -> Any:
    """Return those values that are shown: the first and last along each dimension."""
    if edge is None:
        return value
    for axis, size in enumerate(value.shape):
        if size > 2 * edge:
            rows = [*range(edge), *range(size - edge, size)]
            value = np.take(value, rows, axis)
    return value


class NumberFormat(NamedTuple):
    """How one number is written, and how wide the widest is."""

    write: Callable[[Any], str]
    width: int

    def __call__(self, x: Any) -> str:
        """Return a number, as wide as the others."""
        return self.write(x).rjust(self.width)


class _Layout(NamedTuple):
    """Rows of numbers in brackets; `edge` says how many are shown at both ends, None: all."""

    number: NumberFormat
    edge: int | None

    def text(self, value: Any, indent: int) -> str:
        """Return an array that begins in a column of the line."""
        if value.ndim == 0:
            return self.number(value.item())
        if value.ndim == 1:
            return self._row(value, indent)
        shown = [self.text(part, indent + 1) for part in _edges_of(value, self.edge)]
        joint = "," + "\n" * (value.ndim - 1) + " " * (indent + 1)
        return f"[{joint.join(self._with_gap(shown, len(value), '...'))}]"

    def _row(self, value: Any, indent: int) -> str:
        shown = [self.number(x) for x in _edges_of(value, self.edge).tolist()]
        shown = self._with_gap(shown, len(value), " ...")
        count = max(1, (OPTIONS["linewidth"] - indent) // (self.number.width + 2))
        lines = [", ".join(shown[i : i + count]) for i in range(0, len(shown), count)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"

    def _with_gap(self, shown: list[str], count: int, gap: str) -> list[str]:
        edge = self.edge
        return [*shown[:edge], gap, *shown[edge:]] if edge and count > 2 * edge else shown


def _edges_of(value: Any, edge: int | None) -> Any:
    """Return the first and last entries along the first dimension."""
    if edge is None or len(value) <= 2 * edge:
        return value
    return np.concatenate([value[:edge], value[-edge:]])


def _number_format(value: Any) -> NumberFormat:
    """Return what writes numbers so that all of them have one width."""
    if not dt.is_float(value.dtype):
        return NumberFormat(str, max(len(str(x)) for x in value.ravel().tolist()))
    numbers = np.asarray(value, np.float64).ravel()
    finite = numbers[np.isfinite(numbers) & (numbers != 0)]
    if finite.size == 0:
        return NumberFormat(_whole, 1)
    sizes = np.abs(finite)
    whole = bool(np.all(finite == np.ceil(finite)))
    wide = sizes.max() / sizes.min() > 1000.0 or sizes.max() > 1e8
    wide = wide or (not whole and sizes.min() < 1e-4)
    scientific = wide if OPTIONS["sci_mode"] is None else OPTIONS["sci_mode"]
    if whole and not scientific:
        return _measured(_whole, finite)
    form = f".{OPTIONS['precision']}{'e' if scientific else 'f'}"
    return _measured(lambda x: format(x, form), finite)


def _measured(write: Callable[[Any], str], numbers: Any) -> NumberFormat:
    return NumberFormat(write, max(len(write(x)) for x in numbers.tolist()))


def _whole(x: Any) -> str:
    return f"{x:.0f}." if math.isfinite(x) else format(x)
