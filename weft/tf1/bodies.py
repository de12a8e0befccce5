"""Bodies: operations that are written down inside a branch, a loop or a function over elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .graph import Graph, Operation
from .nest import flatten
from .recording import Tensor, constant, convert_to_tensor, given, record
from .shapes import TensorShape


class Parameter(Operation):
    """What a body is given in each turn."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, "Enter", name="Enter")


class Body:
    """Operations that run as often as control flow says.

    parameters   what it is given
    outputs      what it gives
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.parent = graph.current_body()
        self.parameters: list[Tensor] = []
        self.outputs: list[Any] = []
        self._begin = len(graph.operations)

    def parameter(self, shape: TensorShape, dtype: Any) -> Tensor:
        """Return something that the body is given."""
        tensor = given(Parameter(self.graph), shape, dtype)
        self.parameters.append(tensor)
        return tensor

    def needed(self) -> list[Operation]:
        """Return the operations of the body that its outputs need, in order."""
        found: set[Operation] = set()
        stack = [tensor.op for tensor in self.outputs]
        while stack:
            operation = stack.pop()
            if operation in found or operation.body is not self or operation.type == "Enter":
                continue
            found.add(operation)
            stack += operation.sources()
        return sorted(found, key=lambda operation: operation.number)

    def captures(self) -> list[Tensor]:
        """Return the tensors from outside that the body uses."""
        used = [tensor for operation in self.needed() for tensor in operation.inputs]
        return list(dict.fromkeys(t for t in [*used, *self.outputs] if t.op.body is not self))

    def variables(self, kind: str) -> list[Any]:
        """Return the variables that operations of the body read (or write)."""
        found: list[Any] = []
        for operation in self.needed():
            found += getattr(operation, "writes", ())
            if kind == "reads" and hasattr(operation, "variable"):
                found.append(operation.variable)
            for body in getattr(operation, "bodies", ()):
                found += body.variables(kind)
        return list(dict.fromkeys(found))

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Build the body in an environment of its own; return that environment."""
        child = env.child()
        child.values.update(zip(self.parameters, values, strict=True))
        child.evaluate(self.needed())
        return child


def built(graph: Graph, body: Body, function: Callable[..., Any], *args: Any) -> Any:
    """Write a function's operations into a body; return what it returned."""
    with graph.building(body):
        return function(*args)


def as_output(value: Any, dtype: Any = None) -> Tensor:
    """Return what a function returned as a tensor; an operation runs, and its value is 0."""
    if isinstance(value, Operation):
        with value.graph.control_dependencies([value]):
            made: Tensor = record("Identity", lambda x: x, [constant(0)])
        return made
    return convert_to_tensor(value, dtype)


class ControlOperation(Operation):
    """An operation with bodies.

    writes   variables that the bodies assign to
    """

    def __init__(
        self, graph: Graph, type: str, inputs: Sequence[Tensor], bodies: Sequence[Body], name: str
    ) -> None:
        captured = [t for body in bodies for t in body.captures()]
        self.count = len(inputs)
        self.bodies = tuple(bodies)
        self.writes = tuple(dict.fromkeys(v for body in bodies for v in body.variables("writes")))
        super().__init__(graph, type, [*inputs, *dict.fromkeys(captured)], name=name)

    @property
    def effect(self) -> bool:
        """Tell whether it changes variables."""
        return bool(self.writes)


def merged(a: TensorShape, b: TensorShape) -> TensorShape:
    """Return what is common to two static shapes."""
    if a.sizes is None or b.sizes is None or len(a.sizes) != len(b.sizes):
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.sizes, b.sizes, strict=True)])


def leaves_of(nest: Any) -> list[Any]:
    """Return the leaves of a nest."""
    return flatten(nest)
