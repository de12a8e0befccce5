"""What a run needs to know of a program, apart from its machine code; it can be kept on disk.

Nothing of a plan follows from the values of states and feeds, nor from names and lines of nodes.
What belongs to the process (states, constants of the graph, operators) is kept by number or name.

Reading a plan is as good as running code, like loading the objects that it names: both come only
from the store, which takes nothing that another user could have written.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import GraphError
from ..graph.fingerprint import Fingerprint
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.operators import operator_named
from ..graph.state import State
from ..lower.dynamic import is_dynamic
from ..lower.storage import View
from .layout import Layout

MOST_BYTES = 4 * 1024 * 1024  # what is larger takes as long to read as to make

# What reading one can raise if it was not written by this very code.
_FOREIGN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    GraphError,
    ImportError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)

_NUMPY = ("_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar")
_NAMES = {
    "builtins": ("bool", "float", "frozenset", "int", "set", "slice", "type"),
    "numpy": _NUMPY,
    "numpy._core": _NUMPY,
    "numpy.core": _NUMPY,  # where older versions have it
}


@dataclass
class Plan:
    """What a run needs to know.

    outputs   where the results lie: the fetches, then the new values of states
    flag      where code reports an index out of range, if it checks any
    steps     names of native functions, reference kernels to call, control flow around those
    entries   the names of these functions
    objects   the keys of the machine code that holds them
    """

    layout: Layout
    outputs: list[View]
    flag: View | None
    steps: list[Any]
    entries: list[str]
    objects: list[bytes]

    @property
    def writes(self) -> bool:
        """Tell whether it writes states."""
        return len(self.outputs) > len(self.layout.fetched)


def pack(plan: Plan, known: Fingerprint) -> bytes | None:
    """Return a plan as bytes, or None if it holds what only this process has."""
    file = io.BytesIO()
    try:
        _Packer(file, known).dump(plan)
    except (pickle.PicklingError, AttributeError, GraphError, TypeError, RecursionError):
        return None
    return file.getvalue() if file.tell() <= MOST_BYTES else None


def unpack(content: bytes, known: Fingerprint) -> Plan | None:
    """Return the plan that bytes hold, for the states and constants of a program like it."""
    try:
        plan = _Unpacker(io.BytesIO(content), known).load()
    except _FOREIGN:
        return None
    return plan if isinstance(plan, Plan) else None


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, known: Fingerprint) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.states = {state: i for i, state in enumerate(known.states)}
        self.arrays = {id(literal.array): i for i, literal in enumerate(known.literals)}

    def persistent_id(self, item: Any) -> Any:
        """Return by what something of this process is found again, or None for plain content."""
        if isinstance(item, np.ndarray):
            return self._array(item)
        if isinstance(item, State):
            return "state", self._state(item)
        if isinstance(item, Value):
            return "nothing", 0
        if isinstance(item, Node):
            return "node", _named(item)
        if isinstance(item, Graph):
            raise pickle.PicklingError("a subgraph runs node by node")
        return None

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        number = self.arrays.get(id(array))
        if number is None and array.nbytes > MOST_BYTES:
            raise pickle.PicklingError("a constant is too large")
        return None if number is None else ("constant", number)

    def _state(self, state: State) -> int:
        if state not in self.states:
            raise pickle.PicklingError(f"{state} is not one of the program's")
        return self.states[state]


def _named(node: Node) -> str:
    """Return the name of a node's operator: all that a call needs, beside its attributes."""
    if is_dynamic(node) or operator_named(node.op.name) is not node.op:
        raise pickle.PicklingError(f"{node} is needed as it is")
    name: str = node.op.name
    return name


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Fingerprint) -> None:
        super().__init__(file)
        self.known = known

    def find_class(self, module: str, name: str) -> Any:
        """Return a class of Weft's, or what NumPy makes arrays and dtypes with; nothing else."""
        found = super().find_class(module, name) if module.startswith("weft.") else None
        if isinstance(found, type):
            return found
        if name in _NAMES.get(module.removesuffix(".multiarray").removesuffix(".numeric"), ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a plan")

    def persistent_load(self, found: Any) -> Any:
        """Return what stands in this process for something of the one that wrote it."""
        kind, which = found
        if kind == "state":
            return self.known.states[which]
        if kind == "constant":
            return self.known.literals[which].array
        return None if kind == "nothing" else Node(operator_named(which), (), (), (), name=which)
