"""Sessions: run parts of a graph, feeding some of its values and fetching others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import ArgumentError, ArgumentTypeError, GraphError
from ..core.tree import flatten
from .call import Call, as_feed
from .graph import Graph
from .members import Wanted, member, wanted_values
from .node import Value
from .run import Array, Program
from .special import ASSIGN

RUN = "Session.run"  # what errors name


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
        self._fetched: dict[tuple[int, ...], _Prepared] = {}
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
        returned, call, arrays = self._prepared(leaves, feed_dict)
        found = iter(call.run(arrays, self.compiled))
        return structure.unflatten(next(found) if is_value else None for is_value in returned)

    def executable(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the machine code that a run with these fetches and feeds uses, to look inside.

        None if there is none: if some shape depends on values, the run goes from node to node.
        """
        _, call, arrays = self._prepared(flatten(fetches)[0], feed_dict)
        return call.executable(arrays)

    def _prepared(
        self, leaves: list[Any], feed_dict: Mapping[Any, Any] | None
    ) -> tuple[list[bool], Call, list[Array]]:
        """Return what is to be run, and the arrays to run it on."""
        if self._closed:
            raise GraphError("Session.run: the session is closed")
        if len(self.graph) != self._nodes:  # it has grown since: sizes may come from elsewhere
            self._fetched.clear()
            self._nodes = len(self.graph)
        prepared = self._prepared_fetches(leaves)
        fed = {} if feed_dict is None else feed_dict
        if not isinstance(fed, Mapping):
            raise ArgumentTypeError(
                "Session.run: feed_dict must be a dictionary from symbols or names to values. "
                f"Received: {type(feed_dict).__name__}"
            )
        key = tuple([k if k.__class__ is str else id(k) for k in fed])
        call = prepared.calls.get(key)
        if call is None:
            call = prepared.calls[key] = self._new_call(prepared.wanted, fed)
            prepared.kept.extend(fed)
        return prepared.wanted.returned, call, call.arrays(fed.values())

    def _prepared_fetches(self, leaves: list[Any]) -> _Prepared:
        """Return the values behind fetches; the same fetches are looked up once."""
        key = tuple(map(id, leaves))
        known = self._fetched.get(key)
        if known is None:
            wanted = wanted_values(self.graph, leaves, RUN)
            known = self._fetched[key] = _Prepared(wanted, leaves, {})
        return known

    def _new_call(self, wanted: Wanted, fed: Mapping[Any, Any]) -> Call:
        values: list[Value] = []
        for key, given in fed.items():
            value = member(self.graph, key, RUN, "feed")
            if value in values:
                raise ArgumentError(f"Session.run: {value.name} is fed twice")
            if value.node.op is ASSIGN:
                raise ArgumentError(f"Session.run: {value.name} is an update and cannot be fed")
            as_feed(value, given, RUN)  # tell what is wrong before what is missing
            values.append(value)
        return Call(Program(self.graph, wanted.fetches, values, wanted.targets), RUN)


class _Prepared(NamedTuple):
    """The values behind fetches, and the calls for what was fed with them.

    kept   what fetches and feeds are known by: its identities must stay its own
    """

    wanted: Wanted
    kept: list[Any]
    calls: dict[tuple[Any, ...], Call]
