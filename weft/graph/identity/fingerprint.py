"""Name what a program computes by its content: one name for equal programs, in every process.

Unlike the canonical hash it is no name for all graphs that compute the same: nodes are taken as
they stand, which is quick. Their names and the lines that built them are left out.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dim import SizeVar
from ...core.errors import GraphError
from ...core.shape import Shape, TensorType
from ..custom import CustomGradient
from ..graph import Graph
from ..node import Node, Value
from ..operators import operator_named
from ..run import Program
from ..special import PARAMETER, Literal
from ..state import State
from .content import PLAIN_WRITERS, Encoder

# The rules of an operator that decide about its code.
_RULES = (
    "eval_rule",
    "canonicalize",
    "infer_rule",
    "lower_rule",
    "place_rule",
    "scatter_rule",
    "scan_rule",
    "view_rule",
    "join_rule",
)
_OWN = frozenset(("weft", "numpy"))


class Fingerprint(NamedTuple):
    """The name of a program, and what it takes from outside, in the order of first use."""

    digest: bytes
    states: list[State]
    literals: list[Literal]


def fingerprint(program: Program, shapes: Mapping[Value, Shape]) -> Fingerprint | None:
    """Return the name of a program for feeds of given shapes.

    None if something in it cannot be told by its content: an operator of the user's.
    """
    writer = _Writer(program)
    try:
        writer.write(shapes)
    except GraphError:
        return None
    digest = hashlib.sha256(b"\n".join(writer.lines)).digest()
    return Fingerprint(digest, list(writer.states), writer.literals)


class _Writer(Encoder):
    """Writes a program, one line for each node; values, states and sizes are numbered."""

    writers: Mapping[type, Callable[[Any], bytes]] = {
        **PLAIN_WRITERS,
        float: lambda item: b"f" + struct.pack("<d", item),
    }

    def __init__(self, program: Program) -> None:
        super().__init__(_Numbers())
        self.program = program
        self.lines: list[bytes] = []
        self.states: dict[State, int] = {}
        self.literals: list[Literal] = []
        self._keys: dict[tuple[int, str], int] = {}
        self._values: dict[Value, int] = {}
        self._operators: dict[int, bytes] = {}
        self._places: dict[tuple[tuple[str, ...], str], bytes] = {}

    def write(self, shapes: Mapping[Value, Shape]) -> None:
        """Write everything that decides about the code of the program."""
        program = self.program
        for value in program.feeds:
            self.lines.append(self._made(value) + self.attr(tuple(shapes[value])))
        for node in program.order:
            self._node(node)
        self.lines.append(b"fetches " + self._taken(program.fetches))
        if program.donated:
            self.lines.append(b"donated %b" % self.attr(program.donated))
        if program.trapped:
            self.lines.append(b"trapped")
        for state, value in program.commits:
            self.lines.append(b"commit %b %b" % (self.attr(state), self._taken([value])))

    def unusual(self, item: Any) -> bytes:
        """Return an attribute as bytes that no other attribute has."""
        kind = item.__class__
        if kind is TensorType:
            return self.type(item)
        if isinstance(item, Literal):
            self.literals.append(item)
            return item.digest.encode()
        if kind is State:
            return self._state(item)
        if kind is Graph:
            return self._body(item)
        if isinstance(item, np.generic):
            return b"g%b:%b" % (item.dtype.str.encode(), item.tobytes())
        return super().unusual(item)

    def _node(self, node: Node) -> None:
        name = self._operators.get(id(node.op)) or self._operator(node.op)
        taken, attrs = self._taken(node.inputs), self.attr(node.attrs)
        made = b",".join(map(self._made, node.outputs))
        where = self._where(node)
        self.lines.append(b"%b = %b(%b)%b%b" % (made, name, taken, attrs, where))

    def _where(self, node: Node) -> bytes:
        """Return the scope and the device of a node, which a pass may go by."""
        key = (node.scope, node.device)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self.attr(key)
        return known

    def _made(self, value: Value) -> bytes:
        number = self._values.setdefault(value, len(self._values))
        return b"%d:%b" % (number, self.type(value.type))

    def _taken(self, values: Sequence[Value | None]) -> bytes:
        resolved, numbers = self.program.resolved, self._values
        try:
            found = [b"-" if v is None else b"%d" % numbers[resolved(v)] for v in values]
        except KeyError:
            raise GraphError("a value is used before it is made") from None
        return b",".join(found)

    def _operator(self, op: Any) -> bytes:
        """Return the name of an operator; raise unless it is one of Weft's, as Weft made it."""
        passes_on = isinstance(op, CustomGradient)  # whatever its gradient is, which is built
        if not passes_on and op is not PARAMETER and operator_named(op.name) is not op:
            raise GraphError(f"{op.name} is told by more than its name")
        rules = (getattr(op, name, None) for name in _RULES)
        if not all(rule is None or _package(rule) in _OWN for rule in (op, *rules)):
            raise GraphError(f"{op.name} has rules that are not Weft's")
        name: bytes = op.name.encode()
        self._operators[id(op)] = name
        return name

    def _state(self, state: State) -> bytes:
        """Return a state by its number, with what is asked of it when code is made."""
        number = self.states.setdefault(state, len(self.states))
        same = self._keys.setdefault(state.key, len(self._keys))
        about = (state.writable, state.number, state.held)
        return b"S%d.%d%b%b" % (number, same, self.attr(about), self.type(state.type))

    def _body(self, graph: Graph) -> bytes:
        """Write the lines of a subgraph; return what it takes and gives."""
        start = len(self.lines)
        inputs = b",".join(map(self._made, graph.inputs))
        for node in graph.nodes:
            self._node(node)
        return b"G%d[%b->%b]" % (len(self.lines) - start, inputs, self._taken(graph.outputs))


class _Numbers(Mapping[SizeVar, bytes]):
    """Numbers for unknown sizes, in the order in which they are met."""

    def __init__(self) -> None:
        self._known: dict[SizeVar, bytes] = {}

    def __getitem__(self, variable: SizeVar) -> bytes:
        return self._known.setdefault(variable, b"n%d" % len(self._known))

    def __iter__(self) -> Iterator[SizeVar]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _package(rule: Any) -> str:
    module = getattr(rule, "__module__", None) or ""
    return str(module).split(".", 1)[0]
