"""The graph's own operations: where values come from, and where they are kept.

placeholder   a value that each run is fed with
parameter     a value that control flow brings into a body, once the body is lowered
constant      a value that is part of the graph
state         a value read from outside when a run starts
assign        a value that, if computed in a run, is written to a state when the run ends
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.facts import Facts
from ..core.imports import deferred_imports
from ..core.shape import TensorType


class NodeOp(Facts):
    """What a node asks of its operation, where that is no operator of the registry."""

    kind = "graph"
    variadic = False
    outputs: int | None = 1
    optional: frozenset[str] = frozenset()
    linear = multilinear = ()
    jvp_rule = None
    kernel: Any = None
    differentiable = False

    def __init__(self, name: str, inputs: tuple[str, ...], attrs: tuple[str, ...]) -> None:
        self.name = name
        self.inputs = inputs
        self.attrs = dict.fromkeys(attrs)
        self.partials: dict[str, Any] = {}
        self.vjps: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.kind} op {self.name}>"


class GraphOp(NodeOp):
    """An operation that graphs themselves understand; it has no kernel and no derivative."""

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> TensorType:
        """Return the type of the result."""
        (attr,) = attrs
        return types[0] if types else attr if isinstance(attr, TensorType) else attr.type


PLACEHOLDER = GraphOp("placeholder", (), ("type",))
PARAMETER = GraphOp("parameter", (), ("type",))
CONSTANT = GraphOp("constant", (), ("literal",))
STATE = GraphOp("state", (), ("state",))
ASSIGN = GraphOp("assign", ("value",), ("state",))
SPECIAL = {op.name: op for op in (PLACEHOLDER, CONSTANT, STATE, ASSIGN)}
SOURCES = (PLACEHOLDER, PARAMETER, CONSTANT, STATE)


class Literal:
    """The value of a constant: an array that nobody writes to, compared by content."""

    __slots__ = ("_digest", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array.copy() if array.flags.writeable else array
        self.array.flags.writeable = False
        self._digest: str | None = None

    @property
    def type(self) -> TensorType:
        """Return its shape and dtype."""
        return TensorType(self.array.shape, self.array.dtype)

    @property
    def digest(self) -> str:
        """Return a hash of dtype, shape and content."""
        if self._digest is None:
            with deferred_imports:
                import hashlib  # noqa: PLC0415  (for files and caches of programs)

            head = f"{self.array.dtype.str}{self.array.shape}".encode()
            content = np.ascontiguousarray(self.array).tobytes()
            self._digest = hashlib.sha256(head + content).hexdigest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return np.array2string(self.array, threshold=8, separator=", ")
