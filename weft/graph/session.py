"""Sessions: run parts of a graph, feeding some of its values and fetching others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple, TextIO

from ..core.device import check_program_device
from ..core.device_array import all_to_host
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError
from ..core.imports import deferred_imports, injected
from ..core.tree import flatten
from .call import ProgramCall
from .donation import Donated, Taking, donated_feeds
from .feeds import as_feed
from .graph import Graph
from .members import Wanted, fed_member, wanted_values
from .node import Value
from .run import Program
from .special import ASSIGN

_export_program = injected("export_program")

RUN = "Session.run"  # what errors name


class Session:
    """Runs a graph: `session.run(fetches, feed_dict)`.

    Only what the fetches depend on is run. States (parameters, buffers, slots of optimizers, random
    generators) are read when a run starts and written together when it ends: a run that fails or is
    interrupted changes nothing.

    compiled   run machine code, made at the first run with feeds of new shapes (the default), or go
               from node to node, which rounds as eager mode does; None: as
               `wf.config.debug_interpret` says
    device     where to run; None: where nodes or states were placed, `with wf.device(...):`
    target     TF1's address of a remote process; there is none, and the error says what to use

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None,), wf.float32, name="x")
    ...     total = (x * x).sum()
    >>> with wf.Session(graph) as session:
    ...     float(session.run(total, {x: [1.0, 2.0]}))
    5.0
    """

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        compiled: bool | None = None,
        device: Any = None,
        target: Any = None,
    ) -> None:
        if target is not None or isinstance(graph, str):
            raise ArgumentError(
                "Session: a session runs in this process; there are no remote ones. Received: "
                f"target {graph if target is None else target!r:.60}; serve the graph there with "
                "`weft serve` (wf.serve.run) and send requests to it"
            )
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
        self.device = check_program_device(device)
        self._fetched: dict[tuple[Any, ...], _Prepared] = {}
        self._watched: dict[frozenset[Value], Session] = {}
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
        self._watched.clear()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        watch: Mapping[Any, Callable[[Any], Any]] | None = None,
        donate: Any = None,
    ) -> Any:
        """Return the values of the fetches as NumPy arrays, in the nest in which they were given.

        fetches     a symbol, a name, a parameter, an update, or any nest of them
        feed_dict   values for placeholders, or for any other symbol, by symbol or name
        watch       functions that are called with values when the run computes them, by symbol or
                    name; in loops once in each trip, whose number `wf.debug.trips()` tells
        donate      feeds that are given away, by the symbols or names in feed_dict: results may
                    take their memory. A tensor has no elements any more when the run has ended; a
                    NumPy array is written over

        Feeds of another dtype of the same kind (float64 for float32) are cast if they fit.
        """
        if watch is not None:
            return self._run_watched(fetches, feed_dict, watch, donate)
        prepared = self._prepared(fetches)
        if donate is not None:
            return self._run_donating(prepared, {} if feed_dict is None else feed_dict, donate)
        call = self._call(prepared, feed_dict)
        given = () if feed_dict is None else feed_dict.values()
        fetched = None if self.compiled is False else call.run_unchecked(given)
        if fetched is None:
            fetched = call.run(call.arrays(given), self.compiled)
        return prepared.filled(all_to_host(fetched) if call.own_memory else fetched)

    def _run_donating(self, prepared: _Prepared, feed_dict: Mapping[Any, Any], donate: Any) -> Any:
        """Run, and let what is given away be taken."""
        call = self._call(prepared, feed_dict, donate)
        given, feeds = list(feed_dict.values()), call.program.feeds
        donated = [Donated(feeds[i].name, given[i]) for i in call.program.donated]
        others = [value for i, value in enumerate(given) if i not in call.program.donated]
        states = [state for _, state in call.program.states]
        with Taking(RUN, donated, others, states):
            fetched = None if self.compiled is False else call.run_unchecked(given)
            if fetched is None:
                fetched = call.run(call.arrays(given), self.compiled)
        return prepared.filled(all_to_host(fetched))

    def _run_watched(self, fetches: Any, feed_dict: Any, watch: Any, donate: Any) -> Any:
        """Run a copy of the graph that hands values to functions; it is kept for those values."""
        with deferred_imports:
            from .debug.inserted import (  # noqa: PLC0415  (for those who watch)
                check_computed,
                watched_values,
                watchers,
                with_callbacks,
            )
        prepared = self._prepared(fetches)  # and forget what is of a graph that has grown
        functions = watched_values(self.graph, watch, RUN)
        check_computed(self._call(prepared, feed_dict).program, functions, RUN)
        key = frozenset(functions)
        if key not in self._watched:
            copy = with_callbacks(self.graph, key)
            self._watched[key] = Session(copy, compiled=self.compiled, device=self.device)
        token = watchers.set(functions)
        try:
            return self._watched[key].run(fetches, feed_dict, donate=donate)
        finally:
            watchers.reset(token)

    def step_through(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> Any:
        """Run node by node under a debugger in the terminal; return what `run` does.

        Type `help` at its prompt: next, step, break, print, where, up, continue, quit. None is
        returned if the run is quit, and no state is written then.
        """
        with deferred_imports:
            from .debug.stepper import step_through  # noqa: PLC0415  (for those who debug)
        prepared = self._prepared(fetches)
        call = self._call(prepared, feed_dict)
        given = () if feed_dict is None else feed_dict.values()
        fetched = step_through(call, call.arrays(given), stdin, stdout)
        return None if fetched is None else prepared.filled(fetched)

    def executable(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        *,
        donate: Any = None,
    ) -> Any:
        """Return the machine code that a run with these fetches and feeds uses, to look inside.

        None if there is none: if some shape depends on values, the run goes from node to node.
        """
        call = self._call(self._prepared(fetches), feed_dict, donate)
        return call.executable(call.arrays(() if feed_dict is None else feed_dict.values()))

    def export(
        self, path: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None = None, **options: Any
    ) -> list[Any]:
        """Write what a run with these fetches and feeds does to a shared library for C.

        The feeds are examples. With `batches=`, numbers, placeholders whose first size is not known
        may have each of them. States have the values of now, and each instance its own from there
        on. See docs/export.md for the options; the paths of the files are returned.
        """
        prepared = self._prepared(fetches)
        call = self._call(prepared, feed_dict)
        arrays = call.arrays(() if feed_dict is None else feed_dict.values())
        shapes = tuple(array.shape for array in arrays)
        call.fed_shapes(shapes)
        names = [value.name for value in call.program.fetches]
        name = self.graph.name
        files: list[Any] = _export_program(call.program, shapes, names, name, path, **options)
        return files

    def _prepared(self, fetches: Any) -> _Prepared:
        """Return what is known about fetches; the same ones are looked up once."""
        if self._closed:
            raise GraphError("Session.run: the session is closed")
        if len(self.graph) != self._nodes:  # it has grown since: sizes may come from elsewhere
            self._fetched.clear()
            self._watched.clear()
            self._nodes = len(self.graph)
        kind = fetches.__class__
        items = fetches if kind is list or kind is tuple else (fetches,)
        known = self._fetched.get((kind, *map(id, items)))
        return self._flattened(fetches, items) if known is None else known

    def _flattened(self, fetches: Any, items: Sequence[Any]) -> _Prepared:
        """Look fetches up by their leaves, and remember them if they are no nest of containers."""
        leaves, structure = flatten(fetches)
        key = (None, *map(id, leaves))
        known = self._fetched.get(key)
        if known is None:
            wanted = wanted_values(self.graph, leaves, RUN)
            known = self._fetched[key] = _Prepared(wanted, wanted.returned, leaves, {}, list)
        found = known._replace(nest=structure.unflatten)
        if len(leaves) == len(items) and all(map(is_, leaves, items)):
            kind = fetches.__class__
            nest = kind if kind is list or kind is tuple else next
            found = self._fetched[(kind, *map(id, items))] = known._replace(nest=nest)
        return found

    def _call(
        self, prepared: _Prepared, feed_dict: Mapping[Any, Any] | None, donate: Any = None
    ) -> ProgramCall:
        """Return what is to be run for fetches and feeds."""
        fed = {} if feed_dict is None else feed_dict
        if fed.__class__ is not dict and not isinstance(fed, Mapping):
            raise ArgumentTypeError(
                "Session.run: feed_dict must be a dictionary from symbols or names to values. "
                f"Received: {type(feed_dict).__name__}"
            )
        key: tuple[Any, ...] = tuple([k if k.__class__ is str else id(k) for k in fed])
        donated = () if donate is None else self._donated(fed, donate)
        if donated:
            key = (*key, donated)
        call = prepared.calls.get(key)
        if call is None:
            call = prepared.calls[key] = self._new_call(prepared.wanted, fed, donated)
            prepared.kept.extend(fed)
        return call

    def _donated(self, fed: Mapping[Any, Any], donate: Any) -> tuple[int, ...]:
        """Return which of the feeds are given away."""
        values = [fed_member(self.graph, key, RUN, "feed") for key in fed]
        return donated_feeds(RUN, self.graph, values, donate)

    def _new_call(
        self, wanted: Wanted, fed: Mapping[Any, Any], donated: tuple[int, ...] = ()
    ) -> ProgramCall:
        values: list[Value] = []
        for key, given in fed.items():
            value = fed_member(self.graph, key, RUN, "feed")
            if value in values:
                raise ArgumentError(f"Session.run: {value.name} is fed twice")
            if value.node.op is ASSIGN:
                raise ArgumentError(f"Session.run: {value.name} is an update and cannot be fed")
            as_feed(value, given, RUN)  # tell what is wrong before what is missing
            values.append(value)
        program = Program(self.graph, wanted.fetches, values, wanted.targets, donated=donated)
        return ProgramCall(program, RUN, self.device)


class _Prepared(NamedTuple):
    """The values behind fetches, and the calls for what was fed with them.

    returned   for each leaf of the fetches, whether it returns a value
    kept       what fetches and feeds are known by: its identities must stay its own
    nest       what puts results in the places of the leaves
    """

    wanted: Wanted
    returned: list[bool]
    kept: list[Any]
    calls: dict[tuple[Any, ...], ProgramCall]
    nest: Callable[[Iterator[Any]], Any]

    def filled(self, fetched: Sequence[Any]) -> Any:
        """Return results in the nest of the fetches."""
        found = iter(fetched)
        return self.nest(next(found) if is_value else None for is_value in self.returned)
