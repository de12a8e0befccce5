"""Sessions: run parts of a graph, feeding some of its values and fetching others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..core.config import config
from ..core.dispatch import ERRORS, array_from
from ..core.dtype import is_float, is_integer
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, GraphError, ShapeError
from ..core.late import late_function
from ..core.shape import Shape
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

    compiled   run machine code, made at the first run with feeds of new shapes (the default), or go
               from node to node, which rounds as eager mode does; None: as
               `wf.config.debug_interpret` says

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None,), wf.float32, name="x")
    ...     total = (x * x).sum()
    >>> with wf.Session(graph) as session:
    ...     float(session.run(total, {x: [1.0, 2.0]}))
    5.0
    """

    def __init__(self, graph: Graph, *, compiled: bool | None = None) -> None:
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"Session: expected a wf.Graph. Received: {type(graph).__name__}"
            )
        if compiled is not None and not isinstance(compiled, bool):
            raise ArgumentTypeError(
                f"Session: compiled must be True, False or None. Received: {compiled!r:.60}"
            )
        self.graph = graph
        self.compiled = compiled
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
        self._fetched.clear()

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the values of the fetches as NumPy arrays, in the nest in which they were given.

        fetches     a symbol, a name, a parameter, an update, or any nest of them
        feed_dict   values for placeholders, or for any other symbol, by symbol or name
        """
        leaves, structure = flatten(fetches)
        wanted, call, arrays = self._prepared(leaves, feed_dict)
        compiled = not config.debug_interpret if self.compiled is None else self.compiled
        found = iter(call.run(arrays, compiled))
        return structure.unflatten(None if several else next(found) for several in wanted.several)

    def executable(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the machine code that a run with these fetches and feeds uses, to look inside.

        None if there is none: if some shape depends on values, the run goes from node to node.
        """
        _, call, arrays = self._prepared(flatten(fetches)[0], feed_dict)
        return call.executable(arrays)

    def _prepared(
        self, leaves: list[Any], feed_dict: Mapping[Any, Any] | None
    ) -> tuple[_Wanted, _Call, list[Array]]:
        """Return what is to be run, and the arrays to run it on."""
        if self._closed:
            raise GraphError("Session.run: the session is closed")
        if len(self.graph) != self._nodes:  # it has grown since: sizes may come from elsewhere
            self._fetched.clear()
            self._nodes = len(self.graph)
        wanted = self._wanted(leaves)
        fed = {} if feed_dict is None else feed_dict
        if not isinstance(fed, Mapping):
            raise ArgumentTypeError(
                "Session.run: feed_dict must be a dictionary from symbols or names to values. "
                f"Received: {type(feed_dict).__name__}"
            )
        key = tuple([k if k.__class__ is str else id(k) for k in fed])
        call = wanted.calls.get(key)
        if call is None:
            call = wanted.calls[key] = self._new_call(wanted, fed)
        return wanted, call, call.arrays(fed)

    # -- fetches -----------------------------------------------------------------------------------

    def _wanted(self, leaves: list[Any]) -> _Wanted:
        """Return the values behind fetches; the same fetches are looked up once."""
        key = tuple(map(id, leaves))
        known = self._fetched.get(key)
        if known is None:
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
        return _Wanted(tuple(fetches), tuple(targets), several, leaves, {})

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

    def _new_call(self, wanted: _Wanted, fed: Mapping[Any, Any]) -> _Call:
        values: list[Value] = []
        for key, given in fed.items():
            value = self._value(key, "feed")
            if value in values:
                raise ArgumentError(f"Session.run: {value.name} is fed twice")
            if value.node.op is ASSIGN:
                raise ArgumentError(f"Session.run: {value.name} is an update and cannot be fed")
            _as_feed(value, given)  # what is fed wrongly is told before what is missing
            values.append(value)
        return _Call(Program(self.graph, wanted.fetches, values, wanted.targets), list(fed))


class _Wanted(NamedTuple):
    """The values behind fetches; `leaves` keeps alive what they are known by."""

    fetches: tuple[Value, ...]
    targets: tuple[Value, ...]
    several: list[bool]
    leaves: list[Any]
    calls: dict[tuple[Any, ...], _Call]


class _Call:
    """A program with what is known about calling it: for each feed its type, for shapes the code.

    keys   what its feeds are known by, kept alive
    """

    def __init__(self, program: Program, keys: list[Any]) -> None:
        self.program = program
        self.keys = keys
        self._types = [(value.dtype, value.type.shape) for value in program.feeds]
        self._executables: dict[tuple[Shape, ...], Any] = {}

    def arrays(self, fed: Mapping[Any, Any]) -> list[Array]:
        """Return what is fed as arrays of the dtypes and shapes that the values can have."""
        arrays = list(fed.values())
        for i, (array, (dtype, shape)) in enumerate(zip(arrays, self._types, strict=True)):
            # An unknown size is equal to no number: such a shape is checked in full.
            if array.__class__ is not ndarray or array.dtype != dtype or array.shape != shape:
                arrays[i] = _as_feed(self.program.feeds[i], array)
        return arrays

    def run(self, arrays: list[Array], compiled: bool) -> list[Array]:
        """Return the fetches; write the states.

        Going from node to node is the reference: it runs what code refuses, and repeats what fails
        to say where, with the user's line.
        """
        if compiled:
            with suppress(*ERRORS):
                executable = self.executable(arrays)
                if executable is not None and executable.admits(arrays):
                    fetched: list[Array] = executable.run(arrays)
                    return fetched
        return _interpret(self.program, arrays, self._told(arrays))

    def executable(self, arrays: list[Array]) -> Any:
        """Return the machine code for feeds of the shapes at hand, made at their first use."""
        shapes = tuple([array.shape for array in arrays])
        if shapes not in self._executables:
            self._told(arrays)
            feeds = dict(zip(self.program.feeds, shapes, strict=True))
            made = late_function("Session", "compile_program")(self.program, feeds)
            self._executables[shapes] = made
        return self._executables[shapes]

    def _told(self, arrays: list[Array]) -> Sizes:
        """Return the sizes that feeds tell; raise if they contradict one another."""
        sizes: Sizes = {}
        pairs = list(zip(self.program.feeds, arrays, strict=True))
        for value, array in pairs:
            bind_sizes(value, array.shape, sizes)
        for value, array in pairs:
            check_told_sizes(value, array.shape, sizes)
        return sizes


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
