"""Change a graph: each edit returns a new one, verified, and leaves the old one as it is.

What a symbol or a name of the old graph means in the new one is what its own node computes there;
what changes is who takes it. Every function here is a method of Graph, which says what it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.dim import SizeVar
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import interpret_with
from ..core.op import F
from ..core.operands import array_from
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..core.tree import flatten
from .draws import Draws, alive_nodes
from .edit_bodies import edited_at
from .edit_sizes import Fitting, described, fed_sizes
from .edit_wiring import Edit, copied, rewired
from .feeds import as_feed
from .graph import Graph
from .members import fed_member, member, wanted_values
from .node import Node, Value
from .scope import outermost_scope
from .special import ASSIGN, PLACEHOLDER
from .symbol import Symbol, make_symbol
from .verify import verify

# -- other values in the place of values -----------------------------------------------------------


def replace(graph: Graph, old: Any, new: Any, *, name: Any = None) -> Graph:
    """Let nodes that take a value take another."""
    if not isinstance(old, Mapping):
        return _replaced_at(graph, old, new, name, "replace")
    if new is not None or name is not None:
        raise ArgumentTypeError(
            "replace: a dictionary says what stands for each value; give no second value or name. "
            f"Received: {new!r:.60}, name {name!r:.60}"
        )
    made = _replaced(graph, old, None, fed_sizes(graph), "replace")
    verify(made)
    return made


def insert(graph: Graph, at: Any, fn: Any, *, name: Any = None) -> Graph:
    """Let what a function makes of a value stand for it in all nodes behind."""
    if isinstance(fn, Tensor) or not callable(fn):
        raise ArgumentTypeError(f"insert: expected a function of one symbol. Received: {fn!r:.60}")
    return _replaced_at(graph, at, fn, name, "insert")


def _replaced_at(graph: Graph, at: Any, new: Any, name: Any, what: str) -> Graph:
    def edit(part: Graph, at: Any, free: set[SizeVar]) -> Graph:
        return _replaced(part, {at: new}, name, free, what)

    return edited_at(graph, at, edit)


def _replaced(
    graph: Graph, table: Mapping[Any, Any], name: Any, free: set[SizeVar], what: str
) -> Graph:
    work = copied(graph)
    fitting = Fitting(what, free)
    taken: dict[Value, Value] = {}
    for key, given in table.items():
        old = _not_update(member(work, key, what, what), what)
        if old in taken:
            raise ArgumentError(f"{what}: {old.name} is given twice")
        taken[old] = _not_update(_new_value(work, old, given, what), what)
        fitting.fit(old, taken[old])
        if name is not None:
            work.name_value(taken[old], name)
    return rewired(work, taken, fitting.sizes)


def _not_update(value: Value, what: str) -> Value:
    if value.node.op is ASSIGN:
        raise ArgumentError(
            f"{what}: {value.name} is an update, which no node can take; edit the value that it "
            "assigns"
        )
    return value


def _new_value(work: Graph, old: Value, given: Any, what: str) -> Value:
    """Return what is to stand for a value, built into a graph if it is not there yet."""
    if isinstance(given, (Symbol, Value, str)):
        return member(work, given, what, "take")
    with interpret_with(work.tracer), outermost_scope(old.node.scope):
        if not isinstance(given, Tensor) and callable(given):
            given = given(make_symbol(work, old))
        if not isinstance(given, Tensor):
            given = _constant(work, old, given, what)
        return work.tracer.value_of(given)


def _constant(work: Graph, old: Value, given: Any, what: str) -> Tensor:
    """Return numbers as a constant of the dtype that a value has; one number fills its shape."""
    array = array_from(given, f"{what}: what stands for {old.name}")
    if array.ndim or not old.shape:
        return work.tracer.constant(as_feed(old, given, what))
    kind = TensorType((), old.dtype)
    number = Node(PLACEHOLDER, (), (kind,), (kind,), name=old.name).outputs[0]
    filled: Tensor = F.broadcast_to(
        work.tracer.constant(as_feed(number, given, what)), old.type.shape
    )
    return filled


def substitute(graph: Graph, table: Any) -> Graph:
    """Put values in for placeholders, which are gone then."""
    if not isinstance(table, Mapping):
        raise ArgumentTypeError(
            "substitute: expected a dictionary from placeholders to values. "
            f"Received: {type(table).__name__}"
        )
    work = copied(graph)
    given = {_placeholder(work, key): value for key, value in table.items()}
    if len(given) != len(table):
        raise ArgumentError("substitute: a placeholder is given twice, by symbol and by name")
    taken = {old: _new_value(work, old, new, "substitute") for old, new in given.items()}
    fitting = Fitting("substitute", fed_sizes(work))
    for old, new in taken.items():
        fitting.fit(old, new)
    final = {old: _final(old, taken) for old in taken}
    for old, new in final.items():
        if old.node in work.ancestors([new]):
            raise ArgumentError(
                f"substitute: {described(new)} depends on {old.name} or on a size that it tells, "
                "which would be gone; graph.replace keeps it"
            )
    made = rewired(work, final, fitting.sizes, list(final))
    verify(made)
    return made


def _placeholder(graph: Graph, key: Any) -> Value:
    value = fed_member(graph, key, "substitute", "substitute")
    if value.node.op is not PLACEHOLDER:
        raise ArgumentError(
            f"substitute: {described(value)} is no placeholder; use graph.replace for other values"
        )
    return value


def _final(old: Value, taken: Mapping[Value, Value]) -> Value:
    """Return what stands for a placeholder that another one stands for."""
    seen, new = [old], taken[old]
    while new in taken:
        if new in seen:
            names = " and ".join(value.name for value in seen)
            raise ArgumentError(f"substitute: {names} would stand for one another")
        seen.append(new)
        new = taken[new]
    return new


# -- fewer nodes, other names ----------------------------------------------------------------------


def prune(graph: Graph, outputs: Any) -> Graph:
    """Keep what some values need."""
    leaves, _ = flatten(outputs)
    wanted = wanted_values(graph, leaves, "prune")
    kept = [*wanted.fetches, *wanted.targets]
    if not kept:
        raise ArgumentError("prune: nothing would be left; say which symbols or updates to keep")
    made = pruned(graph, kept)
    verify(made)
    return made


def pruned(graph: Graph, kept: list[Value]) -> Graph:
    """Return a graph of the nodes that some of its values need, and of the draws among them."""
    edit, draws = Edit(graph), Draws(graph)
    alive = alive_nodes(graph, kept, draws)
    for node in graph.nodes:
        if node in alive:
            edit.place(node, edit.current(node))
        for value in node.outputs:
            if value in draws.alias:
                edit.redirect(value, edit.value(draws.alias[value]))
    edit.outputs = kept if graph.outputs else []
    return edit.finish()


def rename(graph: Graph, at: Any, name: Any) -> Graph:
    """Call a value otherwise."""
    return edited_at(graph, at, lambda part, at, free: _renamed(part, at, name))


def _renamed(graph: Graph, at: Any, name: Any) -> Graph:
    value = member(graph, at, "rename", "rename")
    if name == graph.given_names.get(value, value.name):
        return copied(graph)
    graph.check_free(name)
    if value in graph.given_names or len(value.node.outputs) > 1:
        work = copied(graph)
        if value in work.given_names:
            work.forget_name(value)
        work.name_value(value, name)
        return work
    edit = Edit(graph)
    for node in graph.nodes:
        new = edit.current(node)
        edit.place(node, new.rebuilt(new.inputs, name=name) if node is value.node else new)
    return edit.finish()
