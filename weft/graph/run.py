"""Run a graph node by node on NumPy arrays, by the same kernels as eager mode.

A `Program` is what is left of a graph for given fetches and feeds: the steps to take, in order,
with the values laid out in numbered slots that are cleared as soon as nobody needs them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.anomaly import detecting_anomaly, has_nan, searching
from ..core.cached_property import cached_property
from ..core.device import CPU
from ..core.device_array import to_host
from ..core.dim import Dim, SizeVar, evaluate
from ..core.dispatch import ERRORS, canonical, explain
from ..core.effects import CHAIN
from ..core.errors import (
    AnomalyError,
    GraphError,
    ShapeError,
    UnknownSizeError,
    WeftError,
    is_from_signal,
)
from ..core.shape import TensorType
from .draws import Draws
from .graph import Graph
from .layout import ProgramLayout, ProgramStep, lay_out
from .node import Node, Value, attr_items, resolve_attrs, type_text
from .placement import SEVERAL, devices_of
from .scope import GRADIENTS
from .special import ASSIGN, PLACEHOLDER
from .state import State

Array = np.ndarray[Any, Any]
Sizes = dict[SizeVar, int]
Take = Callable[["ProgramStep", list[Any], Sizes], None]


class Program:
    """What must be run of a graph to get some of its values from others.

    fetches   values to return
    feeds     values that are given
    targets   updates to compute and commit, without returning them
    commits   whether anything is committed; if not, another run does it that begins with this one
    donated   which of the feeds, by their places, are given away: results may take their memory
    """

    def __init__(
        self,
        graph: Graph,
        fetches: Sequence[Value],
        feeds: Sequence[Value],
        targets: Sequence[Value] = (),
        *,
        commits: bool = True,
        donated: Iterable[int] = (),
    ) -> None:
        self.graph = graph
        self.feeds = list(feeds)
        self.fetches = list(fetches)
        self.donated = tuple(sorted(donated))
        self.trapped = False  # whether compiled code is to look for NaNs (passes/trap.py)
        self.takes_one_path = False  # whether it stands for one of several ways through Python
        self.sources = graph.size_sources()
        draws = Draws(graph, begins=not commits)
        asked = (*fetches, *targets)
        nodes = graph.ancestors(asked, {*feeds, *draws.stops(asked)})
        draws.settle(set(nodes), set(feeds))
        self.commits = [*draws.commits, *_assignments(nodes)] if commits else []
        self._alias = dict(draws.alias)
        for node in nodes:
            if node.op is ASSIGN:  # the value that is written, kept to the end of the run
                (written,) = node.inputs
                self._alias[node.outputs[0]] = written  # type: ignore[assignment]  # never left out
        members = {*nodes, *draws.steps}
        order = self._merge_loops([node for node in graph.nodes if node in members])
        self._merged = order
        self.order = [node for node in order if node not in draws.skipped]
        self._check_fed()

    @property
    def has_effects(self) -> bool:
        """Tell whether runs show something to somebody."""
        return any(state.owner is CHAIN for state, _ in self.commits)

    def with_trap(self) -> Program:
        """Return the same program with a trap for NaNs, one more fetch, in compiled code."""
        made = copy.copy(self)
        made.trapped = True
        return made

    @property
    def device(self) -> str:
        """Return the name of the device that it runs on; SEVERAL if it is to run on several.

        Nodes that were placed nowhere, on the CPU that is, go where others are, or where feeds are
        if none is anywhere: a program that returns its feeds has no nodes.
        """
        anywhere = any(node.device != CPU or node.pinned for node in self.order)
        nodes = self.order if anywhere else [value.node for value in self.feeds]
        found = devices_of(nodes, self.resolved)
        return found[0] if len(found) == 1 else SEVERAL

    # -- laying out --------------------------------------------------------------------------------

    def _merge_loops(self, nodes: list[Node]) -> list[Node]:
        """Run a loop and its extension for the gradient once: the latter, in the loop's place."""
        members = set(nodes)
        merged = {
            old: new
            for old, new in self.graph.extended.items()
            if old in members and new in members
        }
        for old, new in merged.items():
            self._alias.update(zip(old.outputs, new.outputs, strict=False))
        taken = set(merged.values())
        return [merged.get(node, node) for node in nodes if node not in taken]

    def resolved(self, value: Value) -> Value:
        """Return the value that stands for one in this program."""
        while value in self._alias:
            value = self._alias[value]
        return value

    def _check_fed(self) -> None:
        fed = set(self.feeds)
        for node in self.order:
            if node.op is PLACEHOLDER and node.outputs[0] not in fed:
                raise GraphError(_unfed_message(node))

    @cached_property
    def layout(self) -> ProgramLayout:
        """Return the steps of a run by nodes, and where values lie; compiled code needs none."""
        kept = [*self.fetches, *(value for _, value in self.commits)]
        return lay_out(self._merged, self.order, self.feeds, kept, self.resolved)

    @property
    def slots(self) -> dict[Value, int]:
        """Return the number of the slot that holds each value."""
        return self.layout.slots

    @property
    def states(self) -> list[tuple[int, State]]:
        """Return the states that a run reads, and their slots."""
        return self.layout.states

    def slot(self, value: Value) -> int:
        """Return the number of the slot that holds a value."""
        slots = self.layout.slots
        return slots.setdefault(self.resolved(value), len(slots))

    # -- running -----------------------------------------------------------------------------------

    def run(
        self, feeds: Sequence[Array], sizes: Sizes | None = None, take: Take | None = None
    ) -> Results:
        """Compute the fetches from arrays for the feeds, which must have been checked.

        take   what takes each step, in place of `take`
        """
        sizes = {} if sizes is None else sizes
        slots: list[Any] = [None] * (self.layout.size + 1)  # the last one stays None: no operand
        for value, array in zip(self.feeds, feeds, strict=True):
            bind_sizes(value, array.shape, sizes)
            if value in self.slots:
                slots[self.slots[value]] = array
        for slot, array in self.layout.constants:
            slots[slot] = array
        for slot, state in self.states:
            slots[slot] = to_host(state.read())
        borrowed = {id(array) for array in slots if array is not None}
        if take is None:
            take = self._take_warily if detecting_anomaly() else self.take
        with np.errstate(all="ignore"):
            for step in self.layout.steps:
                take(step, slots, sizes)
        found = [slots[self.slot(value)] for value in self.fetches]
        commits = [(state, slots[self.slot(value)]) for state, value in self.commits]
        return Results(found, commits, borrowed)

    def take(self, step: ProgramStep, slots: list[Any], sizes: Sizes) -> None:
        """Run one node, on what lies in slots."""
        operands = [slots[i] for i in step.inputs]
        fixed = step.fixed
        if fixed is not None:
            operands = [*operands[:fixed], operands[fixed:]]
        try:
            attrs = resolve_attrs(step.attrs, sizes) if step.sized else step.attrs
            if step.checked:  # what could not be checked before sizes were known
                attrs = canonical(step.node.op, tuple(slots[i] for i in step.inputs), attrs)
            if step.nested:
                made = step.kernel(*operands, *attrs, sizes=sizes)
            else:
                made = step.kernel(*operands, *attrs)
        except ERRORS as error:
            raise self._explained(step, error, operands) from error.__cause__
        if step.node.op.outputs == 1:
            made = (made,)
        for slot, array in zip(step.outputs, made, strict=True):
            if slot >= 0:
                slots[slot] = array if array.__class__ is np.ndarray else np.asarray(array)
        for position, axis, variable in step.tells:
            sizes[variable] = np.shape(made[position])[axis]
        for slot in step.frees:
            slots[slot] = None

    def _take_warily(self, step: ProgramStep, slots: list[Any], sizes: Sizes) -> None:
        """Take a step; raise if it makes a NaN of operands that have none."""
        operands = [slots[i] for i in step.inputs]
        self.take(step, slots, sizes)
        made = [slots[i] for i in step.outputs if i >= 0]
        if any(map(has_nan, made)) and not any(map(has_nan, operands)):
            raise nan_error(step.node, operands)

    def _explained(self, step: ProgramStep, error: Exception, operands: Sequence[Any]) -> Exception:
        """Return an error that also says which node of the graph failed, and who built it."""
        node = step.node
        if is_from_signal(error):
            return error
        if isinstance(error, UnknownSizeError):
            return GraphError(f"{node.name}: {error}{self._size_hint(step)}")
        if getattr(error, "located", False):
            return error
        flat = [x for group in operands for x in (group if isinstance(group, list) else [group])]
        return located_error(node, error, flat, step.attrs)

    def _size_hint(self, step: ProgramStep) -> str:
        names = {v for item in attr_items(step.attrs) if isinstance(item, Dim) for v in _vars(item)}
        tellers = sorted({self.sources[v].name for v in names if v in self.sources})
        return f"; feed {', '.join(tellers)}" if tellers else ""


def located_error(
    node: Node, error: Exception, operands: Sequence[Any], attrs: tuple[Any, ...]
) -> Exception:
    """Return an error with the operator, the node and the user's line in its message."""
    better = explain(node.op, error, operands, attrs)
    where = f", built at {node.where}" if node.where else ""
    located = type(better)(f"{better} [node {node.name}{where}]")
    if isinstance(located, WeftError):
        located.located = True  # type: ignore[attr-defined]  # so that outer graphs add nothing
    return located


class Results(NamedTuple):
    """What a run gives.

    fetched    the arrays that were asked for
    commits    the new values of states, not yet written
    borrowed   ids of arrays that others hold: feeds, constants and states
    """

    fetched: list[Array]
    commits: list[tuple[State, Array]]
    borrowed: set[int]


def run_function(graph: Graph, inputs: Sequence[Array], sizes: Sizes | None = None) -> list[Array]:
    """Run a graph that has outputs, a body of control flow for example, on arrays."""
    search = searching.get()
    run = Program.run if search is None else search
    fetched: list[Array] = run(function_program(graph), inputs, sizes).fetched
    return fetched


def function_program(graph: Graph) -> Program:
    """Return the program of a graph that has outputs; it is made once."""
    if graph.program is None:
        graph.program = Program(graph, graph.outputs, graph.inputs)
    program: Program = graph.program
    return program


class Typed(Protocol):
    """What has a name and a type: a value of a graph, or memory for one."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def type(self) -> TensorType:
        """Its shape and dtype."""


def bind_sizes(value: Typed, shape: tuple[int, ...], sizes: Sizes) -> None:
    """Note the unknown sizes that a shape tells; raise if another value told otherwise."""
    for size, given in zip(value.type.shape, shape, strict=True):
        variable = size.variable() if isinstance(size, Dim) else None
        if variable is None:
            continue
        known = sizes.setdefault(variable, given)
        if known != given:
            raise ShapeError(
                f"{value.name}: the size {variable} is {given} here and {known} elsewhere; "
                f"shape {shape} was fed for {type_text(value.type)}"
            )


def check_told_sizes(value: Value, shape: tuple[int, ...], sizes: Sizes) -> None:
    """Raise if a shape contradicts sizes that are known."""
    for size, given in zip(value.shape, shape, strict=True):
        if isinstance(size, Dim):
            try:
                expected = evaluate(size, sizes)
            except UnknownSizeError:
                continue
            if expected != given:
                raise ShapeError(
                    f"{value.name}: the size {size} is {expected}. Received: shape {shape}"
                )


def nan_error(node: Node, operands: Sequence[Any]) -> AnomalyError:
    """Return the error for a node that made a NaN of operands without any."""
    error = AnomalyError(_nan_message(node, operands))
    error.located = True  # type: ignore[attr-defined]  # so that outer graphs add nothing
    return error


def _nan_message(node: Node, operands: Sequence[Any]) -> str:
    shown = ", ".join(f"{x.dtype}{list(x.shape)}" for x in operands if x is not None)
    backward = node.scope[:1] == (GRADIENTS,)
    whose = f"{node.op.name}, in the backward of what was" if backward else f"{node.op.name},"
    return (
        f"{whose} built at {node.where or 'an unknown line'}, made the first NaN: "
        f"inputs {shown or 'none'} [node {node.name}]"
    )


def _assignments(nodes: Iterable[Node]) -> list[tuple[State, Value]]:
    return [(node.attrs[0], node.outputs[0]) for node in nodes if node.op is ASSIGN]


def _unfed_message(node: Node) -> str:
    where = f" (made at {node.where})" if node.where else ""
    return (
        f"the placeholder {node.name}{where} must be fed: pass {{{node.name}: value}} as feed_dict"
    )


def _vars(size: Dim) -> set[SizeVar]:
    return {v for monomial, _ in size.terms for atom in monomial for v in atom.variables()}
