"""How a run goes: which operations it needs, and in which stages they run.

What Python does divides a run: a stage of Weft's up to it, then Python, then the next stage. A run
without it is one stage, which is one native call.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .errors import InvalidArgumentError, at_node
from .graph import Operation
from .shapes import listed
from .stage import Stage


class Plan:
    """What a run does for certain fetches, with certain tensors fed."""

    def __init__(
        self, session: Any, fetched: Sequence[Any], targets: Sequence[Operation], fed: Iterable[Any]
    ) -> None:
        self.session = session
        self.fetched = list(dict.fromkeys(fetched))
        self.fed = set(fed)
        self.targets = list(targets)
        self.operations = _needed(self.fetched, self.targets, self.fed)
        self._levels: dict[Operation, int] = {}
        self._place()
        count = 1 + max(self._levels.values(), default=0)
        once = all(getattr(op, "once", False) for op in targets) and bool(targets) and not fetched
        self.stages = [Stage(session, once) for _ in range(count)]
        self.hosts: list[list[Any]] = [[] for _ in range(count)]
        self._fill()

    def run(self, values: dict[Any, np.ndarray[Any, Any]]) -> dict[Any, Any]:
        """Run with what is fed; return the values of tensors, those of the fetches among them."""
        for stage, hosts in zip(self.stages, self.hosts, strict=True):
            stage.run(values)
            for operation in hosts:
                _call(operation, self.session, values)
        return values

    # -- stages ------------------------------------------------------------------------------------

    def _place(self) -> None:
        for operation in self.operations:
            if operation.type == "Placeholder":
                self._refuse_unfed(operation)
            before = [self._available(tensor) for tensor in operation.inputs]
            before += [
                self._levels[op] + op.host for op in operation.control_inputs if op in self._levels
            ]
            self._levels[operation] = max(before, default=0)

    def _available(self, tensor: Any) -> int:
        if tensor in self.fed or _floats(tensor.op):
            return 0
        return self._levels[tensor.op] + tensor.op.host

    def _refuse_unfed(self, operation: Operation) -> None:
        (tensor,) = operation.outputs
        if tensor not in self.fed:
            raise at_node(
                InvalidArgumentError,
                operation,
                f"You must feed a value for placeholder tensor {operation.name!r} with dtype "
                f"{_WORDS.get(tensor.dtype.name, tensor.dtype.name)} and shape "
                f"{listed(tensor.shape)}",
            )

    def _fill(self) -> None:
        written = self._first_writes()
        kinds = [(op.type, self._levels[op]) for op in self.operations]
        self._differentiating = {level for type, level in kinds if type == "Gradients"}
        for operation in self.operations:
            if operation.type == "Const":
                continue
            level = self._levels[operation]
            if operation.host:
                self.hosts[level].append(operation)
            else:
                self.stages[level].add(operation)
            for tensor in operation.inputs:
                self._bring(tensor, level, operation.host, written)
        for tensor in self.fetched:
            if tensor not in self.fed and not tensor.op.host and tensor.op.type != "Const":
                self.stages[self._levels[tensor.op]].give(tensor)

    def _bring(self, tensor: Any, level: int, host: bool, written: dict[Any, int]) -> None:
        """See that a tensor is there where an operation takes it."""
        maker = tensor.op
        if maker.type == "Const":
            return
        if tensor in self.fed or maker.host:
            if not host:
                self.stages[level].take(tensor)
            return
        made = self._levels[maker]
        if made == level:
            if host:
                self.stages[level].give(tensor)
            return
        if self._repeats(maker, level, written):
            self.stages[level].add(maker)
            for before in maker.inputs:
                self._bring(before, level, False, written)
            if host:
                self.stages[level].give(tensor)
            return
        self.stages[made].give(tensor)
        if not host:
            self.stages[level].take(tensor)

    def _repeats(self, maker: Operation, level: int, written: dict[Any, int]) -> bool:
        """Tell whether a stage evaluates an operation of an earlier one again.

        First reads give the same value there. What gradients may pass must stand in their stage.
        """
        if _floats(maker):
            return written.get(getattr(maker, "variable", None), level) >= level
        pure = not getattr(maker, "effect", False) and not maker.control_inputs
        return pure and level in self._differentiating

    def _first_writes(self) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for operation in self.operations:
            for variable in getattr(operation, "writes", ()):
                found[variable] = min(found.get(variable, 1 << 30), self._levels[operation])
        return found


_WORDS = {"float32": "float", "float64": "double"}  # how messages of runs name types


def _floats(operation: Operation) -> bool:
    """Tell whether an operation can be evaluated in any stage: constants and first reads."""
    return operation.type == "Const" or getattr(operation, "first_read", False)


def _call(operation: Any, session: Any, values: dict[Any, Any]) -> None:
    arrays = [value_of(tensor, values) for tensor in operation.inputs]
    made = operation.call(session, *arrays)
    if not operation.outputs:
        return
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    if len(made) != len(operation.outputs):
        raise at_node(
            InvalidArgumentError,
            operation,
            f"the function returns {len(made)} values, but expects to see "
            f"{len(operation.outputs)} values",
        )
    for tensor, value in zip(operation.outputs, made, strict=True):
        if tensor not in values:
            values[tensor] = _checked(operation, tensor, value)


def _checked(operation: Operation, tensor: Any, value: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(value) if tensor.dtype.name != "string" else _texts(value)
    if tensor.dtype.name != "string" and array.dtype != tensor.dtype.dtype:
        raise at_node(
            InvalidArgumentError,
            operation,
            f"the value has type {array.dtype.name}, but expects {tensor.dtype.name}",
        )
    return array


def _texts(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, (str, bytes)):
        array = np.empty((), object)
        array[()] = value
        return array
    return np.asarray(value, object)


def value_of(tensor: Any, values: dict[Any, Any]) -> Any:
    """Return the value of a tensor in a run."""
    found = values.get(tensor)
    return tensor.op.array if found is None else found


def _needed(fetched: Sequence[Any], targets: Sequence[Operation], fed: set[Any]) -> list[Operation]:
    """Return the operations that a run needs, in the order in which they were made."""
    stack = [t.op for t in fetched if t not in fed] + list(targets)
    found: set[Operation] = set()
    while stack:
        operation = stack.pop()
        if operation in found:
            continue
        if operation.body is not None:
            raise ValueError(
                f"Operation {operation.name!r} has been marked as not fetchable: it stands inside "
                "tf.cond or tf.while_loop"
            )
        found.add(operation)
        stack += [tensor.op for tensor in operation.inputs if tensor not in fed]
        stack += operation.control_inputs
    return sorted(found, key=lambda operation: operation.number)
