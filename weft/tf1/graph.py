"""TensorFlow's graph: operations that are written down, and run later by a session.

An Operation holds how its results are computed by Weft's operators. Nothing of it runs before
`Session.run`, which builds the part that is fetched in a graph of Weft's, for the shapes that are
fed (see replay.py), and runs that compiled.

How other files of this package stand on it:

- variables   `graph.get_collection(GLOBAL_VARIABLES)` lists them (variable.py: `Variable`);
              `session.read_variable(v)` gives the array (None if it has no value yet) and
              `session.write_variable(v, array)` sets it.
- work that Python does (saving, reading files, queues, summaries): a `HostOperation` of host.py;
              its function takes the session and the arrays of its inputs, and returns the arrays of
              its outputs. It may stand anywhere but inside tf.cond and tf.while_loop: a run goes up
              to it, calls it, and goes on with what it returned.
- errors      the classes of errors.py; `at_node` names the operation.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import context
from .keys import GraphKeys
from .shapes import TensorShape

_VALID = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


class Operation:
    """One operation of a graph.

    type             the kind, by TensorFlow's name: "MatMul"
    inputs           the tensors that it takes
    compute          what computes the results from Weft's tensors, in the order of the inputs
    static           positions of inputs whose values must be known before it runs: shapes, axes
    fold             the same on NumPy's arrays, for values that are computed with sizes
    differentiable   whether gradients pass
    control_inputs   operations that run before
    body             the branch or loop in which it stands, None outside
    """

    host = False  # whether Python does the work: see host.py

    def __init__(
        self,
        graph: Graph,
        type: str,
        inputs: Sequence[Any] = (),
        compute: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        static: Sequence[int] = (),
        fold: Callable[..., Any] | None = None,
        differentiable: bool = True,
    ) -> None:
        self.graph = graph
        self.type = type
        self.inputs = tuple(inputs)
        self.compute = compute
        self.static = frozenset(static)
        self.fold = fold
        self.differentiable = differentiable
        self.name = graph.scoped_name(name or type)
        self.outputs: list[Any] = []
        self.body = graph.current_body()
        self.control_inputs = list(graph.current_control_inputs())
        self.device = graph.current_device()
        self.number = graph.add_operation(self)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Return the results in an environment: see environment.py."""
        assert self.compute is not None
        return self.compute(*values)

    def sources(self) -> list[Operation]:
        """Return the operations that must have run before this one."""
        return [tensor.op for tensor in self.inputs] + self.control_inputs

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run the operation in a session."""
        chosen_session(session, self.graph, "run").run(self, feed_dict)

    @property
    def node_def(self) -> Operation:
        """Return the description of the operation: itself."""
        return self

    def get_attr(self, name: str) -> Any:
        """Refuse: operations hold functions, not attributes."""
        raise ValueError(f"No attr named {name!r} in operation {self.name!r}")

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


def chosen_session(session: Any, graph: Graph, what: str) -> Any:
    """Return the session that is given, or the default one."""
    found = context.sessions.top() if session is None else session
    if found is None:
        raise ValueError(
            f"Cannot {what} using the default session: No default session is registered. Use "
            "`with sess.as_default()` or pass an explicit session"
        )
    if found.graph is not graph:
        raise ValueError(
            "Cannot use the default session: it was made for another graph. Pass an explicit "
            "session of the graph"
        )
    return found


class Graph:
    """A graph of operations; `with graph.as_default():` builds in it."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.by_name: dict[str, Operation] = {}
        self.seed: int | None = None
        self.finalized = False
        self.inference: Any = None  # the environment in which shapes are found
        self.variable_store: dict[str, Any] = {}
        self.scope_store: dict[str, Any] = {}
        self.control_marks: dict[Operation, Operation] = {}
        self._taken: dict[str, int] = {}
        self._collections: dict[Any, list[Any]] = {}
        self._scope = ""
        self._controls: list[list[Operation]] = []
        self._devices: list[Any] = []
        self._bodies: list[Any] = []
        self._lock = threading.RLock()

    # -- the default graph -------------------------------------------------------------------------

    def as_default(self) -> Any:
        """Return a context in which operations are added to this graph."""
        return context.graphs.entered(self)

    def finalize(self) -> None:
        """Let nothing be added any more."""
        self.finalized = True

    def add_operation(self, operation: Operation) -> int:
        """Take an operation in; return its number."""
        with self._lock:
            if self.finalized:
                raise RuntimeError("Graph is finalized and cannot be modified.")
            self.operations.append(operation)
            self.by_name[operation.name] = operation
            return len(self.operations)

    # -- names -------------------------------------------------------------------------------------

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Return a name that no operation has, in the scope that is open."""
        return self._unique(f"{self._scope}/{name}" if self._scope else name, mark_as_used)

    def _unique(self, name: str, mark_as_used: bool = True) -> str:
        key = name.lower()
        count = self._taken.get(key, 0)
        if mark_as_used:
            self._taken[key] = count + 1
        if not count:
            return name
        base, key = name, ""
        while not key or key in self._taken:
            name = f"{base}_{count}"
            key, count = name.lower(), count + 1
        if mark_as_used:
            self._taken[key] = 1
        return name

    def scoped_name(self, name: str) -> str:
        """Return the name of a new operation; one that ends in a slash is taken as it is."""
        if name.endswith("/"):
            return name[:-1]
        if not _VALID.match(name):
            raise ValueError(f"{name!r} is not a valid scope name")
        return self.unique_name(name)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Put the names of operations that are made inside under a name."""
        before = self._scope
        if not name:
            self._scope = ""
        elif name.endswith("/"):
            self._scope = name[:-1]
        else:
            if not _VALID.match(name):
                raise ValueError(f"'{name}' is not a valid scope name")
            self._scope = self.unique_name(name)
        try:
            yield self._scope + "/" if self._scope else ""
        finally:
            self._scope = before

    def get_name_scope(self) -> str:
        """Return the scope that is open."""
        return self._scope

    # -- what surrounds new operations -------------------------------------------------------------

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Let operations that are made inside run after others; None forgets those outside."""
        before = self._controls
        if control_inputs is None:
            self._controls = []
        else:
            self._controls = [*before, [operation_of(x) for x in control_inputs]]
        try:
            yield
        finally:
            self._controls = before

    def current_control_inputs(self) -> list[Operation]:
        """Return what new operations must run after."""
        body = self.current_body()
        found = dict.fromkeys(op for level in self._controls for op in level)
        return [op for op in found if op.body is body]

    @contextmanager
    def device(self, name: Any) -> Iterator[None]:
        """Note the device that operations are made for; all run where the session does."""
        self._devices.append(name)
        try:
            yield
        finally:
            self._devices.pop()

    def current_device(self) -> str:
        """Return the device that new operations are made for."""
        found = self._devices[-1] if self._devices else None
        return "" if found is None else str(found)

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Do nothing: there is one place."""
        yield

    def current_body(self) -> Any:
        """Return the branch or loop that is being built."""
        return self._bodies[-1] if self._bodies else None

    @contextmanager
    def building(self, body: Any) -> Iterator[Any]:
        """Put operations that are made inside into a branch or a loop."""
        self._bodies.append(body)
        try:
            yield body
        finally:
            self._bodies.pop()

    # -- looking things up -------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        """Return all operations, in the order in which they were made."""
        return list(self.operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Return an operation by its name."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name)}.")
        if name not in self.by_name:
            if ":" in name:
                raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return self.by_name[name]

    def get_tensor_by_name(self, name: str) -> Any:
        """Return a tensor by its name, `"x:0"`."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name)}.")
        op, _, index = name.partition(":")
        if not index.isdigit():
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of "
                "the form '<op_name>:<output_index>'."
            )
        found = self.by_name.get(op)
        if found is None:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                f"{op!r}, does not exist in the graph."
            )
        if int(index) >= len(found.outputs):
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                f"{op!r}, exists but only has {len(found.outputs)} outputs."
            )
        return found.outputs[int(index)]

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """Return the tensor or operation of this graph that is meant."""
        if isinstance(obj, str):
            if allow_tensor and (":" in obj or not allow_operation):
                return self.get_tensor_by_name(obj)
            return self.get_operation_by_name(obj)
        found = obj._as_graph_element() if hasattr(obj, "_as_graph_element") else obj
        if isinstance(found, Operation) and allow_operation:
            self._check_mine(found, obj)
            return found
        if hasattr(found, "op") and allow_tensor:
            self._check_mine(found.op, obj)
            return found
        kinds = [n for n, a in (("Tensor", allow_tensor), ("Operation", allow_operation)) if a]
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {' or '.join(kinds)}.")

    def _check_mine(self, operation: Operation, obj: Any) -> None:
        if operation.graph is not self:
            raise ValueError(f"{obj} is not an element of this graph.")

    def is_feedable(self, tensor: Any) -> bool:
        """Return True: every tensor can be fed."""
        return True

    # -- collections -------------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Add a value to the collection of a name."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Add a value to several collections."""
        for name in dict.fromkeys((names,) if isinstance(names, str) else names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """Return the list of a collection itself."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """Return the values of a collection whose names begin with a scope."""
        found = self._collections.get(name, [])
        if scope is None:
            return list(found)
        matches = re.compile(scope).match
        return [x for x in found if hasattr(x, "name") and matches(x.name)]

    def get_all_collection_keys(self) -> list[Any]:
        """Return the names of all collections that are not empty."""
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: Any) -> None:
        """Empty a collection."""
        self._collections.pop(name, None)

    @property
    def version(self) -> int:
        """Return a number that grows with the graph."""
        return len(self.operations)

    def as_graph_def(self, from_version: Any = None, add_shapes: bool = False) -> Graph:
        """Return the graph as what summary writers take: itself."""
        return self


def operation_of(x: Any) -> Operation:
    """Return the operation that makes a tensor or a variable's value, or the operation itself."""
    if isinstance(x, Operation):
        return x
    found = x._as_graph_element() if hasattr(x, "_as_graph_element") else x
    if isinstance(found, Operation):
        return found
    if not hasattr(found, "op"):
        raise TypeError(
            f"Control input must be an Operation, a Tensor, or IndexedSlices: {x!r:.60}"
        )
    operation: Operation = found.op
    return operation


class _Process:
    """The graph of those that open none."""

    graph = Graph()


def get_default_graph() -> Graph:
    """Return the graph to which operations are added here."""
    found: Graph | None = context.graphs.top()
    return _Process.graph if found is None else found


def reset_default_graph() -> None:
    """Begin an empty default graph."""
    if context.graphs.items:
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    _Process.graph = Graph()


__all__ = [
    "Graph",
    "GraphKeys",
    "Operation",
    "TensorShape",
    "get_default_graph",
    "reset_default_graph",
]
