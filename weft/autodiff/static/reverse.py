"""Reverse mode on a graph: extend it by the gradients of some of its values.

The same rules as on the tape, applied to symbols: the result is nodes, which can be fetched,
optimised and differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import reduce
from typing import Any, TypeVar

from ...core.dtype import is_float
from ...core.errors import DTypeError
from ...core.modes import enable_grad, is_grad_enabled
from ...core.op import F, elementwise
from ...core.reads import Reads
from ...core.row_sparse import add_gradients
from ...core.tape import FanNode, Leaf, make_node, output_node
from ...core.tensor import Tensor
from ...graph.frontend import open_tracer
from ...graph.inline import copy_nodes
from ...graph.node import Node, Value
from ...graph.paths import outputs_reached
from ...graph.scope import GRADIENTS, outermost_scope
from ...graph.symbol import Symbol, make_symbol
from ...graph.tracer import Tracer
from ..constants import checked
from ..engine import AnyNode, ReverseWalk
from ..matching import require_tensor, require_type
from ..pullback import differentiable
from ..rules import Operation

OperationT = TypeVar("OperationT", bound=Operation)


def symbol_gradients(
    ys: Sequence[Tensor],
    xs: Sequence[Tensor],
    grad_ys: Sequence[Any],
    *,
    record: bool = True,
    rows: bool = False,
) -> list[Any]:
    """Return symbols for the gradients of the sum of `ys`; None where no path leads to an x.

    record   whether what hooks make of gradients can be differentiated again
    rows     whether gradients may be row-sparse: of those xs that are read by `sparse=True` alone
    """
    tracer = open_tracer("gradients")
    roots = [tracer.value_of(y) for y in ys]
    places = [places_of(tracer, x) for x in xs]
    tracer.graph.differentiated.update(roots)
    with enable_grad():
        with outermost_scope((GRADIENTS,)):
            seeds = [
                _seed(tracer, y, g, i) for i, (y, g) in enumerate(zip(roots, grad_ys, strict=True))
            ]
        wanted = [place for some in places for place in some]
        found = pull_back_graph(tracer, roots, seeds, wanted, record=record, rows=rows)
    return [total([found[place] for place in some if place in found]) for some in places]


def total(gradients: Sequence[Any]) -> Any:
    """Return the sum of what arrived at the places of a tensor; None if nothing did."""
    return reduce(add_gradients, gradients) if gradients else None


def pull_back_of_symbols(
    fn: Callable[[list[Any]], Sequence[Any]], primals: Sequence[Any], what: str
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]], list[bool]]:
    """Trace fn in the open graph; return what `pull_back_of` does."""
    linked = is_grad_enabled()
    with enable_grad():
        places = [F.positive(x) if differentiable(x) else x for x in primals]
        outputs = checked(fn, [_another(x) for x in places], reads_of_symbols(places), what)
    ys = [i for i, y in enumerate(outputs) if differentiable(y)]
    xs = [i for i, x in enumerate(places) if differentiable(x)]

    def pull(gs: Sequence[Any]) -> list[Any]:
        known = [i for i in ys if gs[i] is not None]
        inputs, results = moved_here([places[i] for i in xs], [outputs[i] for i in known])
        made = symbol_gradients(results, inputs, [gs[i] for i in known])
        found = dict(zip(xs, made, strict=True))
        pulled: list[Any] = [found.get(i) for i in range(len(places))]
        return pulled if linked else [g if g is None else F.stop_gradient(g) for g in pulled]

    shown = [y if linked or i not in ys else F.stop_gradient(y) for i, y in enumerate(outputs)]
    return shown, pull, [i in ys for i in range(len(outputs))]


def reads_of_symbols(places: Iterable[Any]) -> Reads:
    """Return who notes that a symbol is read which derivatives lead from to some others."""
    wanted = [x.value for x in places if isinstance(x, Symbol)]

    def depends(x: Any) -> bool:
        tracer = open_tracer("gradients")
        if not isinstance(x, Symbol) or x.graph is not tracer.graph:
            return False
        return GraphWalk(tracer, wanted, {}).place(x.value) is not None

    return Reads(depends)


def moved_here(
    xs: Sequence[Symbol], ys: Sequence[Tensor]
) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
    """Return inputs and results of a traced function as symbols of the graph that is open.

    Inside a body (of vmap, of a loop) the function that was traced outside is a constant; to be
    differentiated there, the nodes between xs and ys are copied.
    """
    tracer = open_tracer("gradients")
    source = xs[0].graph if xs else tracer.graph
    if tracer.graph is source:
        return xs, ys
    mapping: dict[Any, Value] = {x.value: tracer.value_of(x) for x in xs}
    for node in source.ancestors([y.value for y in ys if isinstance(y, Symbol)]):
        if any(x in mapping for x in node.inputs) and node.outputs[0] not in mapping:
            for x in node.inputs:
                if x is not None and x not in mapping:
                    mapping[x] = tracer.value_of(make_symbol(source, x))
            copy_nodes(tracer.graph, [node], mapping)
    moved = [mapping.get(getattr(y, "value", None)) or tracer.value_of(y) for y in ys]
    return [make_symbol(tracer.graph, mapping[x.value]) for x in xs], [
        make_symbol(tracer.graph, y) for y in moved
    ]


def _another(x: Any) -> Any:
    """Return a symbol of the same value, which may be written to."""
    return make_symbol(x.graph, x.value) if isinstance(x, Symbol) else x


def places_of(tracer: Tracer, x: Tensor) -> list[Value]:
    """Return the values at which a graph reads a tensor: its first, and those it was given."""
    if isinstance(x, Symbol):
        return [tracer.value_of(x)]
    key = (id(x), "")
    if tracer.parent is not None:
        outer = places_of(tracer.parent, x)
        return [tracer.captured[value] for value in outer if value in tracer.captured]
    first = tracer.first_value(key)
    return [*([] if first is None else [first]), *tracer.leaves.get(key, [])]


def pull_back_graph(
    tracer: Tracer,
    roots: Sequence[Value],
    seeds: Sequence[Any],
    wanted: Iterable[Value],
    same: Mapping[Value | None, Value] | None = None,
    *,
    record: bool = True,
    rows: bool = False,
) -> dict[Value, Any]:
    """Return the gradients of wanted values, given those of the roots, as new nodes.

    same   values whose gradients belong to others
    rows   whether gradients may be row-sparse
    """
    targets = list(wanted)
    walk = GraphWalk(tracer, targets, same or {}, rows=rows)
    walk.record = record
    places = walk.places
    ends = {places[x] for x in targets if x in places}
    found = walk.run([walk.place(root) for root in roots], seeds, ends)
    return {x: found[places[x]] for x in targets if x in places and places[x] in found}


class GraphWalk(ReverseWalk):
    """A walk over a graph: the nodes on paths from wanted values, in the form of the tape.

    places   the node of the tape's form that stands for a value
    """

    def __init__(
        self,
        tracer: Tracer,
        wanted: Iterable[Value],
        same: Mapping[Value | None, Value],
        *,
        rows: bool = False,
    ) -> None:
        super().__init__(rows=rows)
        self.tracer, self.same = tracer, same
        self.watches = tracer.graph.tracer.watches
        self.places: dict[Value | None, AnyNode] = {x: Leaf() for x in wanted if is_float(x.dtype)}
        if not tracer.root.recording:  # which runs the hooks of leaves itself
            for value, leaf in self.places.items():
                leaf.watch = self.watches.get(value)  # type: ignore[arg-type]  # none is left out
        self._visiting = ExitStack()
        for node in tracer.graph.nodes:
            self._add(node)

    def place(self, value: Value | None) -> AnyNode | None:
        """Return the node that the gradient of a value goes to."""
        return self.places.get(self.same.get(value, value))

    def _add(self, node: Node) -> None:
        """Give the results of a node places, as far as derivatives pass from inputs to them."""
        parents = tuple(map(self.place, node.inputs))
        positions = {i for i, parent in enumerate(parents) if parent is not None}
        reached = outputs_reached(node, positions) if positions else set()
        if reached:
            outputs = None if node.op.outputs == 1 else node.outputs
            made = make_node(node.op, parents, node, node.attrs, outputs=outputs)
            for j in reached:
                place = output_node(made, j) if isinstance(made, FanNode) else made
                place.watch = self.watches.get(node.outputs[j])
                self.places[node.outputs[j]] = place

    def run(
        self, roots: Sequence[Any], seeds: Sequence[Any], wanted: set[AnyNode] | None = None
    ) -> dict[AnyNode, Any]:
        """Return the gradients of the wanted nodes."""
        with self._visiting:
            return super().run(roots, seeds, wanted)

    def _gradients(self, node: Any, g: Any) -> Sequence[Any]:
        """Let what is added for a node, sums too, stand at its line and in its scope."""
        visited: Node = node.saved
        self._visiting.close()
        self._visiting.enter_context(self.tracer.at(visited.site))
        self._visiting.enter_context(outermost_scope((GRADIENTS, *_own_scope(visited))))
        if isinstance(g, list) and not hasattr(node.op, "pull_back_node"):
            g = [
                F.zeros_like(make_symbol(self.tracer.graph, y)) if part is None else part
                for part, y in zip(g, visited.outputs, strict=True)
            ]
        return super()._gradients(node, g)

    def _complete(self, node: FanNode, parts: list[Any]) -> list[Any]:
        return parts  # zeros stand in the scope of the node too

    def _rule(self, node: Any) -> tuple[Callable[..., Sequence[Any]], Any]:
        if hasattr(node.op, "pull_back_node"):
            return self._by_node, node.saved
        operation = operation_of(Operation, self.tracer, node.saved)
        if node.op.kind == elementwise:
            node.shapes = operation.shapes()
        saved = operation.saved()  # the first: an operator that was never called has no rule before
        return node.op.linked, saved

    def _by_node(self, node: Any, visited: Node, gs: Sequence[Any]) -> Sequence[Any]:
        """Let a node with subgraphs, or with a derivative of its own, differentiate itself."""
        needs = [parent is not None for parent in node.parents]
        found: Sequence[Any] = node.op.pull_back_node(
            self.tracer, visited, gs, needs, pull_back_graph
        )
        return found


def operation_of(kind: type[OperationT], tracer: Tracer, node: Node) -> OperationT:
    """Return the operation of a node on symbols of its values."""

    def symbol(value: Value | None) -> Any:
        return None if value is None else make_symbol(tracer.graph, value)

    outputs = tuple(map(symbol, node.outputs))
    out = outputs[0] if node.op.outputs == 1 else outputs
    return kind(node.op, tuple(map(symbol, node.inputs)), node.attrs, out)


def _own_scope(node: Node) -> tuple[str, ...]:
    return node.scope[1:] if node.scope[:1] == (GRADIENTS,) else node.scope


def _seed(tracer: Tracer, y: Value, g: Any, position: int) -> Any:
    """Return the gradient to start with: ones, or what was given."""
    if not is_float(y.dtype):
        raise DTypeError(
            f"gradients: ys[{position}] is {y.dtype} and has no gradient; only floats have"
        )
    symbol = make_symbol(tracer.graph, y)
    if g is None:
        return F.ones_like(symbol)
    require_tensor(g, f"gradients: grad_ys[{position}]")
    require_type(g, symbol, f"gradients: grad_ys[{position}]", f"ys[{position}]")
    return g
