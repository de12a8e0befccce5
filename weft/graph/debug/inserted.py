"""Watch values of a graph without changing it: callbacks in a copy of the graph, behind each value.

The copy threads the chain of effects through the control flow that has watched values inside.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ..control.ops import COND
from ..control.shapes import loop_of
from ..graph import Graph, nearest_name
from ..inline import function_graph
from ..members import member
from ..node import Node, Value, subgraphs
from ..rebuild import Rebuild
from ..run import Program
from ..special import ASSIGN, PLACEHOLDER
from ..state import CHAIN_STATE, LINK
from ..symbol import Symbol
from .effects import Array, PythonCallback, place_text
from .nodes import CALLBACK

Watcher = Callable[[Array], Any]
watchers: ContextVar[Mapping[Value, Watcher]] = ContextVar("weft_watchers")


class WatchedValue(PythonCallback):
    """Hands a value to the function that watches it in this run."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, arrays: Sequence[Array]) -> None:
        """Call the function on an array of its own."""
        watchers.get()[self.value](np.array(arrays[0]))

    def __repr__(self) -> str:
        return f"watch {self.value.name}"


# -- which values ----------------------------------------------------------------------------------


def watched_values(graph: Graph, watch: Any, what: str) -> dict[Value, Watcher]:
    """Return the functions that watch values, by the values; raise if one is not there."""
    if not isinstance(watch, Mapping):
        raise ArgumentTypeError(
            f"{what}: watch must be a dictionary from symbols or names to functions. "
            f"Received: {type(watch).__name__}"
        )
    found: dict[Value, Watcher] = {}
    for key, fn in watch.items():
        if not callable(fn):
            raise ArgumentTypeError(
                f"{what}: watch[{_key_text(key)}] must be a function of one array. "
                f"Received: {fn!r:.60}"
            )
        value = _value_of(graph, key, what)
        if value.node.op is ASSIGN:
            raise ArgumentError(f"{what}: {value.name} is an update; watch the value it writes")
        found[value] = fn
    return found


def check_computed(program: Program, values: Collection[Value], what: str) -> None:
    """Raise if a run does not compute one of some values; of bodies only the run can tell."""
    for value in values:
        computed = program.resolved(value) in program.slots or value in program.feeds
        if value in program.graph and not computed:
            raise ArgumentError(
                f"{what}: watch: {value.name} is not computed for these fetches; fetch it, or what "
                "depends on it"
            )


def _value_of(graph: Graph, key: Any, what: str) -> Value:
    if isinstance(key, Symbol) and key.graph is not graph and key.value in _inner_values(graph):
        return key.value
    if not isinstance(key, str):
        return member(graph, key, what, "watch")
    try:
        return graph.find(key)
    except ArgumentError:
        return _named_inside(graph, key, what)


def _inner_values(graph: Graph) -> set[Value]:
    return {value for _, value in _inside(graph, "")}


def _inside(graph: Graph, path: str) -> Iterator[tuple[str, Value]]:
    """Yield the values of all bodies by their full names: `while_loop/body_fn/mul`."""
    for node in graph.nodes:
        for body in subgraphs(node):
            inner = f"{path}{node.name}/{body.name}/"
            for value in body.values():
                yield inner + value.name, value
            for name, value in body.names.items():
                yield inner + name, value
            yield from _inside(body, inner)


def _named_inside(graph: Graph, name: str, what: str) -> Value:
    """Return a value of a body, by its full name or by the end of it, if only one has that."""
    known = dict(_inside(graph, ""))
    found = {v: full for full, v in known.items() if full == name or full.endswith(f"/{name}")}
    if len(found) == 1:
        return next(iter(found))
    if found:
        raise ArgumentError(
            f"{what}: watch: several values are named {name!r}: {', '.join(found.values())}; give "
            "the whole of one"
        )
    last = [full.rpartition("/")[2] for full in known]
    near = nearest_name(name, [*graph.names, *(v.name for v in graph.values()), *known, *last])
    raise ArgumentError(
        f"{what}: watch: the graph has no value named {name!r}"
        + (f"; did you mean {near!r}?" if near else "; print(graph) shows their names")
    )


def _key_text(key: Any) -> str:
    return repr(key.name if isinstance(key, Symbol) else key)[:60]


# -- the copy --------------------------------------------------------------------------------------


def with_callbacks(graph: Graph, values: Collection[Value]) -> Graph:
    """Return a copy of a graph that hands values to their watchers."""
    copy = _Copy(graph, set(values), None)
    return copy.finished()


class _Copy:
    """Copies a graph or a body, with callbacks behind some values.

    link   the last link of the chain, as it is in the copy
    """

    def __init__(self, graph: Graph, wanted: set[Value], entering: Value | None) -> None:
        """Begin a copy; `entering` is the chain's input of a body that threads it already."""
        self.graph, self.wanted = graph, wanted
        self.rebuild = Rebuild(graph, graph.outputs)
        self._here = entering or graph.states_by_key().get(CHAIN_STATE.key)
        self._links = {self._here}  # of the old graph, so far
        self._new: Value | None = None  # the link, where the old graph has no chain
        self._before: dict[Node | None, Value] = {}  # the links that loops took

    @property
    def link(self) -> Value:
        """Return the last link."""
        if self._here is not None:
            return self.rebuild.value(self._here)
        if self._new is None:
            self._new = self.rebuild.graph.state_value(CHAIN_STATE)
        return self._new

    @link.setter
    def link(self, link: Value) -> None:
        if self._here is None:
            self._new = link
        else:
            self.rebuild.redirect(self._here, link)

    def finished(self) -> Graph:
        """Copy all nodes, the start of the chain first; return the copy."""
        start = None if self._here is None else self._here.node
        for node in sorted(self.graph.nodes, key=lambda node: node is not start):
            self._copy(node)
        made = self.rebuild.finish()
        made.inputs = list(self.graph.inputs)  # of which the link became the last one
        return made

    def _copy(self, old: Node) -> None:
        node = self.rebuild.current(old)
        if any(_has_any(body, self.wanted) for body in subgraphs(old)):
            self._copy_control(old, node)
        else:
            self.rebuild.place(old, node)
        self._pass(old)
        for value in old.outputs:
            if value in self.wanted:
                self._watch(value)

    def _pass(self, old: Node) -> None:
        """Go on behind what moves the chain of the old graph on."""
        if self._here is None:
            return
        threads = getattr(old.op, "threads", None)
        pairs = ((0, 0),) if old.op.effect else () if threads is None else threads(old)
        for place, result in pairs:
            if old.inputs[place] is self._here:
                self._here = old.outputs[result]
                self._links.add(self._here)
                return

    def _watch(self, value: Value) -> None:
        node, graph = value.node, self.rebuild.graph
        name = graph.unique_name(f"watch_{value.name}")
        made = Node(
            CALLBACK,
            (self.link, self.rebuild.value(value)),
            (WatchedValue(value), name, place_text(node.site)),
            [LINK],
            name=name,
            scope=node.scope,
            site=node.site,
            device=node.device,
        )
        self.link = graph.append(made).outputs[0]

    # -- control flow ------------------------------------------------------------------------------

    def _copy_control(self, old: Node, node: Node) -> None:
        threads = node.op.threads(old)
        place = next((i for i, _ in threads if self._is_link(old.inputs[i])), None)
        if place is not None:
            attrs = tuple(self._threaded(item, old, place) for item in node.attrs)
            self.rebuild.place(old, node.rebuilt(node.inputs, attrs=attrs))
            return
        first = next((a for a, b in self.graph.extended.items() if b is old), None)
        same = self._before.get(first)
        link = self.link if same is None else same
        self._before[old] = link
        made, results = _with_thread(node, link, self.wanted)
        self.rebuild.graph.append(made)
        self.rebuild.replace(old, [y for i, y in enumerate(made.outputs) if i != results])
        if same is None:  # else it is the same loop, extended for its gradient
            self.link = made.outputs[results]

    def _is_link(self, value: Value | None) -> bool:
        return value is not None and value in self._links

    def _threaded(self, item: Any, old: Node, place: int) -> Any:
        """Return a body that has the chain as an input, with callbacks in it."""
        if not isinstance(item, Graph) or not _has_any(item, self.wanted):
            return item
        first = 1 if old.op.form is COND else 0
        return _Copy(item, self.wanted, item.inputs[place - first]).finished()


def _has_any(graph: Graph, wanted: set[Value]) -> bool:
    """Tell whether a body has one of some values, in its own bodies too."""
    return any(
        not wanted.isdisjoint(node.outputs) or any(_has_any(b, wanted) for b in subgraphs(node))
        for node in graph.nodes
    )


def _with_thread(node: Node, link: Value, wanted: set[Value]) -> tuple[Node, int]:
    """Return control flow through which the chain passes too, and which result its link is."""
    threads = node.attrs[-1]
    if node.op.form is COND:
        bodies = [_with_link(body, wanted, len(body.inputs)) for body in node.attrs[:2]]
        for body, last in bodies:
            body.outputs = [*body.outputs, last]
        result = len(node.outputs)
        moved = (*threads, (len(node.inputs), result))
        attrs = (*(body for body, _ in bodies), moved)
        inputs: list[Value | None] = [*node.inputs, link]
    else:
        loop = loop_of(node)
        result = n = loop.carries
        body, last = _with_link(loop.body, wanted, n)
        at = loop.flags + n
        body.outputs = [*body.outputs[:at], last, *body.outputs[at:]]
        test = None if loop.test is None else _with_link(loop.test, set(), n)[0]
        attrs = (*loop.with_body(body, test, carries=1)[:-1], (*threads, (n, n)))
        inputs = [*node.inputs[:n], link, *node.inputs[n:]]
    types = [value.type for value in node.outputs]
    types.insert(result, LINK)
    return node.rebuilt(inputs, attrs=attrs, types=types), result


def _with_link(body: Graph, wanted: set[Value], place: int) -> tuple[Graph, Value]:
    """Return a body that takes a link at a place among its inputs, and the last link in it."""
    enters = Node(PLACEHOLDER, (), (LINK,), [LINK], name="effects")
    inputs = list(body.inputs)
    inputs.insert(place, enters.outputs[0])
    longer = function_graph(body.name, [enters, *body.nodes], inputs, body.outputs)
    for name, value in body.names.items():
        longer.names[name] = value
    longer.extended.update(body.extended)
    copy = _Copy(longer, wanted, enters.outputs[0])
    return copy.finished(), copy.link
