"""Sessions: they hold the values of variables, and run what is fetched."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.modes import interpret_with
from ..core.rng import Generator
from ..ops.creation import tensor as make_tensor
from . import context
from .errors import FailedPreconditionError
from .feeds import fed_values
from .fetches import Fetches
from .graph import Graph, Operation, get_default_graph
from .plan import Plan, value_of
from .shapes import TensorShape

__all__ = ["InteractiveSession", "Session"]


class Session:
    """Runs operations of a graph: `sess.run(fetches, feed_dict)`.

    Each session has values of its own for the variables of its graph. A run builds what is fetched
    for the shapes that are fed, at the first run with them, and then is a native call.

    target   the address of another process; there is none
    config   is accepted; Weft's own settings are in `weft.config`
    """

    def __init__(self, target: Any = "", graph: Graph | None = None, config: Any = None) -> None:
        if target:
            raise ValueError(
                f"Session: there are no remote sessions. Received: target {target!r:.60}; serve "
                "the "
                "model with `weft serve`"
            )
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        self.graph = get_default_graph() if graph is None else graph
        self.config = config
        self._storage: dict[Any, Any] = {}
        self._uninitialized: set[Any] = set()
        self._generators: dict[Operation, Generator] = {}
        self._plans: dict[Any, Plan] = {}
        self._entered: list[Any] = []
        self._closed = False

    # -- the default session -----------------------------------------------------------------------

    @property
    def graph_def(self) -> Graph:
        """Return the graph."""
        return self.graph

    @property
    def sess_str(self) -> str:
        """Return the address: of this process."""
        return ""

    def as_default(self) -> Any:
        """Return a context in which `eval` and `run` of tensors and operations use this session."""
        return context.sessions.entered(self)

    def __enter__(self) -> Session:
        """Make the session and its graph the default ones."""
        entered = (self.graph.as_default(), self.as_default())
        for manager in entered:
            manager.__enter__()
        self._entered.append(entered)
        return self

    def __exit__(self, *exc: Any) -> None:
        """Close the session."""
        for manager in reversed(self._entered.pop()):
            manager.__exit__(*exc)
        self.close()

    def close(self) -> None:
        """Forget the values of variables and what was compiled."""
        self._closed = True
        self._plans.clear()

    # -- runs --------------------------------------------------------------------------------------

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Return the values of tensors in their nest; None for operations."""
        wanted, plan, values = self._prepared(fetches, feed_dict)
        found = plan.run(values)
        return wanted.filled([_result(value_of(tensor, found)) for tensor in wanted.tensors])

    def executable(self, fetches: Any, feed_dict: Any = None) -> Any:
        """Return the machine code of such a run's first stage, to look inside."""
        _, plan, values = self._prepared(fetches, feed_dict)
        return plan.stages[0].executable(values)

    def _prepared(self, fetches: Any, feed_dict: Any) -> tuple[Fetches, Plan, dict[Any, Any]]:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if not self.graph.operations:
            raise RuntimeError(
                "The Session graph is empty.  Add operations to the graph before calling run()."
            )
        if feed_dict is not None and not isinstance(feed_dict, Mapping):
            raise TypeError(f"feed_dict must be a dictionary. Received: {type(feed_dict).__name__}")
        values = fed_values(self.graph, feed_dict) if feed_dict else {}
        wanted = Fetches(self.graph, fetches)
        key = (tuple(wanted.tensors), tuple(wanted.operations), tuple(values))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = Plan(self, wanted.tensors, wanted.operations, values)
        return wanted, plan, values

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Any:
        """Return a function that runs these fetches with values for the tensors of a list."""
        keys = list(feed_list or ())
        return lambda *args: self.run(fetches, dict(zip(keys, args, strict=True)))

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        """Refuse: a run is one program."""
        raise NotImplementedError("partial_run: use sess.run with all feeds of each part")

    partial_run_setup = partial_run

    def list_devices(self) -> list[str]:
        """Return the one device."""
        return ["/job:localhost/replica:0/task:0/device:CPU:0"]

    # -- variables ---------------------------------------------------------------------------------

    def storage(self, variable: Any) -> Any:
        """Return the tensor that holds a variable's value in this session."""
        found = self._storage.get(variable)
        if found is None:
            shape = variable.shape
            if not shape.is_fully_defined():
                raise ValueError(f"Variable {variable.name}: its shape {shape} must be known")
            found = self._hold(variable, np.zeros(tuple(shape.as_list()), variable.dtype.dtype))
            self._uninitialized.add(variable)
        return found

    def _hold(self, variable: Any, array: np.ndarray[Any, Any]) -> Any:
        with interpret_with(None):
            self._storage[variable] = make_tensor(array)
        return self._storage[variable]

    def read_variable(self, variable: Any) -> np.ndarray[Any, Any] | None:
        """Return a copy of a variable's value; None if it has none yet."""
        if not self.is_initialized(variable):
            return None
        return np.array(self._storage[variable].numpy())

    def write_variable(self, variable: Any, value: Any) -> None:
        """Give a variable a value."""
        array = np.asarray(value, variable.dtype.dtype)
        if not variable.shape.is_compatible_with(TensorShape(array.shape)):
            raise ValueError(
                f"Cannot give variable {variable.name} of shape {variable.shape} a value of shape "
                f"{TensorShape(array.shape)}"
            )
        with interpret_with(None):
            self.storage(variable).copy_(make_tensor(array))
        self._uninitialized.discard(variable)

    def is_initialized(self, variable: Any) -> bool:
        """Tell whether a variable has a value."""
        return variable in self._storage and variable not in self._uninitialized

    def check_initialized(self, variables: Iterable[Any]) -> None:
        """Raise if a variable that is read has no value."""
        if not self._uninitialized:
            return
        for variable in variables:
            if variable in self._uninitialized:
                raise FailedPreconditionError(
                    None,
                    variable.op,
                    f"Attempting to use uninitialized value {variable.op.name}\n"
                    f"\t [[node {variable.op.name}/read]]",
                )

    def mark_initialized(self, variables: Iterable[Any]) -> None:
        """Note that variables have values."""
        if self._uninitialized:
            self._uninitialized.difference_update(variables)

    # -- random numbers ----------------------------------------------------------------------------

    def generator(self, operation: Any) -> Generator:
        """Return the random numbers of an operation: its own, so that seeds tell what it draws."""
        found = self._generators.get(operation)
        if found is None:
            found = self._generators[operation] = Generator(_seed(operation))
        return found


def _seed(operation: Any) -> int:
    """Return the seed of an operation from the graph's and its own; None: a random one."""
    graph_seed, own = operation.graph_seed, operation.seed
    if graph_seed is None and own is None:
        return int(np.random.default_rng().integers(2**63 - 1))
    parts = (0 if graph_seed is None else graph_seed, own)
    return zlib.crc32(repr(parts).encode()) | (zlib.adler32(repr(parts).encode()) << 31)


def _result(value: Any) -> Any:
    """Return an array as it is, and what has no dimensions as a scalar of NumPy's."""
    if value.ndim:
        return value if value.flags.writeable else np.array(value)
    return value[()]


class InteractiveSession(Session):
    """A session that is the default one from when it is made until it is closed."""

    def __init__(self, target: Any = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._default = self.as_default()
        self._default.__enter__()
        self._default_graph = None if graph is None else graph.as_default()
        if self._default_graph is not None:
            self._default_graph.__enter__()

    def close(self) -> None:
        """Close the session; another one is the default again."""
        if not self._closed:
            self._default.__exit__(None, None, None)
            if self._default_graph is not None:
                self._default_graph.__exit__(None, None, None)
        super().close()
