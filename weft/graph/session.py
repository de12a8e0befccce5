"""Sessions: run parts of a graph, feeding some of its values and fetching others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.dispatch import array_from
from ..core.dtype import is_float, is_integer
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, ShapeError
from ..core.late import late_function
from ..core.tensor import Tensor
from ..core.tree import flatten
from .graph import Graph
from .node import Value, type_text
from .run import Array, Program, Results, Sizes, bind_sizes, check_feed, check_told_sizes
from .special import ASSIGN
from .symbol import Symbol
from .update import Update


class Session:
    """Runs a graph: `session.run(fetches, feed_dict)`.

    Only what the fetches depend on is run. States (parameters, buffers, slots of optimizers, random
    generators) are read when a run starts and written together when it ends: a run that fails or is
    interrupted changes nothing.

    compiled   run machine code, made at the first run with feeds of new shapes, instead of going
               from node to node; results agree to rounding

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None,), wf.float32, name="x")
    ...     total = (x * x).sum()
    >>> with wf.Session(graph) as session:
    ...     float(session.run(total, {x: [1.0, 2.0]}))
    5.0
    """

    def __init__(self, graph: Graph, *, compiled: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"Session: expected a wf.Graph. Received: {type(graph).__name__}"
            )
        if not isinstance(compiled, bool):
            raise ArgumentTypeError(
                f"Session: compiled must be True or False. Received: {compiled!r:.60}"
            )
        self.graph = graph
        self.compiled = compiled
        self._executables: dict[tuple[Any, ...], Any] = {}
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._fetched: dict[tuple[int, ...], _Wanted] = {}
        self._nodes = len(graph)
        self._closed = False

    def __enter__(self) -> Session:
        """Return the session."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the session."""
        self.close()

    def close(self) -> None:
        """Forget the prepared programs; a closed session runs nothing."""
        self._closed = True
        self._programs.clear()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the values of the fetches as NumPy arrays, in the nest in which they were given.

        fetches     a symbol, a name, a parameter, an update, or any nest of them
        feed_dict   values for placeholders, or for any other symbol, by symbol or name
        """
        if self._closed:
            raise GraphError("Session.run: the session is closed")
        leaves, structure = flatten(fetches)
        wanted = self._wanted(leaves)
        fed = self._feeds(feed_dict)
        program = self._program(wanted, list(fed))
        sizes: Sizes = {}
        for value, array in fed.items():
            bind_sizes(value, array.shape, sizes)
        for value, array in fed.items():
            check_told_sizes(value, array.shape, sizes)
        arrays = list(fed.values())
        found = iter(
            self._run_compiled(program, arrays, sizes)
            if self.compiled
            else _interpret(program, arrays, sizes)
        )
        return structure.unflatten(None if several else next(found) for several in wanted.several)

    def _run_compiled(self, program: Program, arrays: list[Array], sizes: Sizes) -> list[Array]:
        """Run a program as machine code, which is made for the shapes at hand."""
        key = (program, tuple(array.shape for array in arrays))
        if key in self._executables:
            executable = self._executables[key]
        else:
            shapes = dict(zip(program.feeds, (a.shape for a in arrays), strict=True))
            executable = late_function("Session", "compile_program")(program, shapes)
            self._executables[key] = executable
        if executable is None or not executable.admits(arrays):
            return _interpret(program, arrays, sizes)
        fetched: list[Array] = executable.run(arrays)
        return fetched

    def _wanted(self, leaves: list[Any]) -> _Wanted:
        """Return the values behind fetches; the same fetches are looked up once."""
        key = tuple(map(id, leaves))
        known = self._fetched.get(key)
        if known is None or len(self.graph) != self._nodes:
            known = self._fetched[key] = self._new_wanted(leaves)
        return known

    def _new_wanted(self, leaves: list[Any]) -> _Wanted:
        fetches: list[Value] = []
        targets: list[Value] = []
        for leaf in leaves:
            if isinstance(leaf, Update):
                targets += [self._known(symbol) for symbol in leaf.symbols]
            else:
                fetches.append(self._value(leaf, "fetch"))
        several = [isinstance(leaf, Update) for leaf in leaves]
        return _Wanted(tuple(fetches), tuple(targets), several, leaves)

    def _program(self, wanted: _Wanted, feeds: list[Value]) -> Program:
        if len(self.graph) != self._nodes:  # it has grown since: sizes may come from elsewhere
            self._programs.clear()
            self._executables.clear()
            self._fetched.clear()
            self._nodes = len(self.graph)
        key = (wanted.fetches, wanted.targets, tuple(feeds))
        program = self._programs.get(key)
        if program is None:
            program = Program(self.graph, wanted.fetches, feeds, wanted.targets)
            self._programs[key] = program
        return program

    # -- fetches -----------------------------------------------------------------------------------

    def _value(self, leaf: Any, what: str) -> Value:
        """Return the value that a symbol, a name or a tensor from outside stands for."""
        if isinstance(leaf, str):
            return self.graph.find(leaf)
        if isinstance(leaf, Symbol):
            return self._known(leaf)
        if isinstance(leaf, Value):
            return self.graph.check_member(leaf, f"Session.run: {what}")
        if isinstance(leaf, Tensor):
            return self._state_value(leaf, what)
        raise ArgumentTypeError(
            f"Session.run: cannot {what} {type(leaf).__name__} {leaf!r:.60}; give a symbol, a name "
            "or a parameter of the graph"
        )

    def _known(self, symbol: Symbol) -> Value:
        return self.graph.check_member(symbol.value, "Session.run")

    def _state_value(self, tensor: Tensor, what: str) -> Value:
        known = self.graph.states_by_key().get((id(tensor), ""))
        if known is None:
            raise GraphError(
                f"Session.run: cannot {what} a tensor that the graph does not use: "
                f"{tensor.dtype}{list(tensor.shape)}; read it directly, with .numpy()"
            )
        return known

    # -- feeds -------------------------------------------------------------------------------------

    def _feeds(self, feed_dict: Mapping[Any, Any] | None) -> dict[Value, Array]:
        if feed_dict is None:
            return {}
        if not isinstance(feed_dict, Mapping):
            raise ArgumentTypeError(
                "Session.run: feed_dict must be a dictionary from symbols or names to values. "
                f"Received: {type(feed_dict).__name__}"
            )
        fed: dict[Value, Array] = {}
        for key, given in feed_dict.items():
            value = self._value(key, "feed")
            if value in fed:
                raise ArgumentError(f"Session.run: {value.name} is fed twice")
            if value.node.op is ASSIGN:
                raise ArgumentError(f"Session.run: {value.name} is an update and cannot be fed")
            fed[value] = _as_feed(value, given)
        return fed


class _Wanted(NamedTuple):
    """The values behind fetches; `leaves` keeps alive what they are known by."""

    fetches: tuple[Value, ...]
    targets: tuple[Value, ...]
    several: list[bool]
    leaves: list[Any]


def _as_feed(value: Value, given: Any) -> Array:
    """Return what a value is fed with as an array of its dtype and a shape it can have."""
    if isinstance(given, Symbol):
        raise ArgumentTypeError(
            f"Session.run: {value.name} must be fed with a value. Received: {given!r}"
        )
    if isinstance(given, Tensor):
        array: Array = given.numpy()
    elif isinstance(given, np.ndarray):
        array = given
    else:
        array = _from_literal(value, given)
    check_feed(value, array, "Session.run")
    return array


def _from_literal(value: Value, given: Any) -> Array:
    """Return numbers and lists in the dtype of the placeholder, if that loses nothing."""
    array = array_from(given, f"Session.run: the value for {value.name}")
    wanted = value.dtype
    widens = is_float(wanted) or (is_integer(array.dtype) and is_integer(wanted))
    if array.dtype == wanted:
        return array
    if not widens or (is_integer(wanted) and not _fits(array, wanted)):
        raise DTypeError(
            f"Session.run: {value.name} must be fed with {type_text(value.type)}. "
            f"Received: {given!r:.60}, which is {array.dtype}"
        )
    exact = np.array(given) if isinstance(given, (int, float, list, tuple)) else array
    return exact.astype(wanted)


def _fits(array: Array, dtype: Any) -> bool:
    if not array.size:
        return True
    limits = np.iinfo(dtype)
    return bool(limits.min <= array.min() and array.max() <= limits.max)


def _interpret(program: Program, arrays: list[Array], sizes: Sizes) -> list[Array]:
    """Run a program node by node; write the states, and return arrays of the caller's own."""
    results = program.run(arrays, sizes)
    commit(results)
    taken = results.borrowed | {id(array) for _, array in results.commits}
    return [_owned(array, taken) for array in results.fetched]


def commit(results: Results) -> None:
    """Write the new values of all states, after checking that they fit."""
    for state, array in results.commits:
        if array.dtype != state.type.dtype or array.shape != state.type.shape:
            raise ShapeError(
                f"{state.name} is {type_text(state.type)} and cannot be assigned "
                f"{array.dtype}{list(array.shape)}"
            )
    taken = set(results.borrowed)
    owned = [(state, _owned(array, taken)) for state, array in results.commits]
    for state, array in owned:
        state.write(array)


def _owned(array: Array, taken: set[int]) -> Array:
    """Return an array that nobody else holds: a copy, if it is taken or a view of another."""
    if array.base is not None or id(array) in taken or not array.flags.writeable:
        array = array.copy()
    taken.add(id(array))
    return array
