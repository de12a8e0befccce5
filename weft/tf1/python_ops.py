"""Python inside of graphs: py_func, Print, and assertions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.op import F
from ..graph.debug.nodes import callback, check
from .control import group
from .dtypes import as_dtype
from .graph import Operation
from .host import host_operation
from .nest import is_nested
from .recording import Tensor, convert_to_tensor, finished, graph_of, pair, record


def py_func(
    func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: str | None = None
) -> Any:
    """Return what a function of NumPy arrays returns; no gradients pass."""
    kinds = [as_dtype(t) for t in (Tout if is_nested(Tout) else [Tout])]

    def call(session: Any, *arrays: Any) -> Any:
        made = func(*[a[()] if a.dtype == object and not a.ndim else a for a in arrays])
        if not kinds:
            return []
        parts = list(made) if isinstance(made, (list, tuple)) else [made]
        return (
            [_as(kind, part) for kind, part in zip(kinds, parts, strict=False)]
            if len(parts) == len(kinds)
            else parts
        )

    made = host_operation(
        "PyFunc", call, list(inp), outputs=[(kind, None) for kind in kinds], name=name
    )
    if not is_nested(Tout):
        return made
    return [made] if len(kinds) == 1 else made


def _as(kind: Any, part: Any) -> Any:
    """Return Python's numbers in the type that is said; arrays must have it."""
    known = isinstance(part, (np.ndarray, np.generic)) or kind.name == "string"
    return part if known else np.asarray(part, kind.dtype)


py_function = numpy_function = py_func


class _Shown(Operation):
    """Passes a value on, and shows others when it runs."""

    def __init__(
        self, inputs: Sequence[Tensor], message: str, first_n: int, summarize: int, name: Any
    ) -> None:
        super().__init__(graph_of(inputs), "Print", inputs, name=name)
        self.message, self.left, self.summarize = message, first_n, summarize

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the value, and have the others shown."""
        if hasattr(env, "session"):
            callback(self._show, *values[1:])
            env.shown += values[1:]
        return values[0] + 0 if values[0].dtype.kind != "b" else values[0]

    def _show(self, *arrays: Any) -> None:
        if self.left == 0:
            return
        self.left -= 1
        shown = "".join(f"[{_summary(array, self.summarize)}]" for array in arrays)
        print(f"{self.message}{shown}", file=sys.stderr)


def _summary(array: Any, most: int) -> str:
    flat = np.asarray(array).ravel()
    text = " ".join(f"{x:.9g}" if flat.dtype.kind == "f" else str(x) for x in flat[:most])
    return text + ("..." if flat.size > most else "")


def Print(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a value, and write others to standard error each time that it is computed."""
    inputs = [convert_to_tensor(x) for x in (input_, *data)]
    made: Tensor = finished(
        _Shown(inputs, message or "", -1 if first_n is None else first_n, summarize or 3, name)
    )
    return made


def print_(*inputs: Any, **options: Any) -> Operation:
    """Return an operation that writes values to standard error when it runs."""
    tensors = [convert_to_tensor(x) for x in inputs if not isinstance(x, str)]
    message = " ".join(x for x in inputs if isinstance(x, str))
    if not tensors:
        raise ValueError("tf.print: give a tensor to print")
    return group(Print(tensors[0], tensors, message, summarize=options.get("summarize")))


# -- assertions ------------------------------------------------------------------------------------


class _Asserted(Operation):
    """Raises when it runs and a condition does not hold."""

    effect = True

    def __init__(self, inputs: Sequence[Tensor], texts: Sequence[Any], name: Any) -> None:
        super().__init__(graph_of(inputs), "Assert", inputs, name=name, differentiable=False)
        self.texts = texts

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Check the condition."""
        if hasattr(env, "session"):
            parts = [f"[{text}]" if text is not None else "[{}]" for text in self.texts]
            check(F.all(values[0]), "assertion failed: " + " ".join(parts), *values[1:])
            env.shown += values
        return ()


def Assert(
    condition: Any, data: Any, summarize: int | None = None, name: str | None = None
) -> Operation:
    """Return an operation that raises unless a condition holds."""
    texts = [x if isinstance(x, str) else None for x in data]
    tensors = [convert_to_tensor(x) for x in data if not isinstance(x, str)]
    operation = _Asserted([convert_to_tensor(condition), *tensors], texts, name or "Assert")
    finished(operation, outputs=0)
    return operation


def _assertion(
    public: str, words: str, compute: Callable[[Any, Any], Any]
) -> Callable[..., Operation]:
    def called(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        left, right = pair(public, x, y)
        holds = record(public, compute, [left, right], dtype="bool")
        said = data or [
            f"{message or ''} Condition x {words} y did not hold element-wise:".strip(),
            "x = ",
            left,
            "y = ",
            right,
        ]
        return Assert(holds, said, summarize, name or public)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return an operation that raises unless x {words} y for all elements."
    return called


assert_equal = _assertion("assert_equal", "==", lambda x, y: x == y)
assert_none_equal = _assertion("assert_none_equal", "!=", lambda x, y: x != y)
assert_less = _assertion("assert_less", "<", lambda x, y: x < y)
assert_less_equal = _assertion("assert_less_equal", "<=", lambda x, y: x <= y)
assert_greater = _assertion("assert_greater", ">", lambda x, y: x > y)
assert_greater_equal = _assertion("assert_greater_equal", ">=", lambda x, y: x >= y)


def assert_positive(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that raises unless all elements are positive."""
    return assert_greater(x, 0, data, summarize, message, name)


def assert_non_negative(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that raises if an element is negative."""
    return assert_greater_equal(x, 0, data, summarize, message, name)


def assert_rank(x: Any, rank: Any, *args: Any, **options: Any) -> Operation:
    """Raise unless a tensor can have this rank."""
    value = convert_to_tensor(x)
    if value.shape.ndims not in (None, rank):
        raise ValueError(
            f"{value.name}  Tensor {value.name} must have rank {rank}.  Received rank "
            f"{value.shape.ndims}, shape {value.shape}"
        )
    return group()


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Return a tensor; a run raises if an element is NaN or infinite."""
    value = convert_to_tensor(tensor)
    holds = record("IsFinite", F.isfinite, [value], dtype="bool", differentiable=False)
    checked = Assert(holds, [f"{message} : Tensor had NaN or Inf values"])
    with value.graph.control_dependencies([checked]):
        made: Tensor = record("CheckNumerics", lambda x: x, [value], name=name)
    return made
