"""Reverse mode on a graph: extend it by the gradients of some of its values.

The same rules as on the tape, applied to symbols: the result is nodes, which can be fetched,
optimised and differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

from ...core.dtype import is_float
from ...core.errors import DTypeError
from ...core.modes import enable_grad, is_grad_enabled
from ...core.op import F
from ...core.tensor import Tensor
from ...graph.frontend import open_tracer
from ...graph.inline import copy_nodes
from ...graph.node import Node, Value
from ...graph.paths import outputs_reached, reach
from ...graph.scope import GRADIENTS, outermost_scope
from ...graph.symbol import Symbol, make_symbol
from ...graph.tracer import Tracer
from ..matching import require_tensor, require_type
from ..pullback import differentiable
from ..rules import Operation
from ..where_mask import WhereMasks


def symbol_gradients(
    ys: Sequence[Tensor], xs: Sequence[Tensor], grad_ys: Sequence[Any]
) -> list[Symbol | None]:
    """Return symbols for the gradients of the sum of `ys`; None where no path leads to an x."""
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
        found = pull_back_graph(tracer, roots, seeds, wanted)
    return [_total([found[place] for place in some if place in found]) for some in places]


def _total(gradients: Sequence[Symbol]) -> Symbol | None:
    """Return the sum of what arrived at the places of a tensor; None if nothing did."""
    return reduce(add, gradients) if gradients else None


def pull_back_of_symbols(
    fn: Callable[[list[Any]], Sequence[Any]], primals: Sequence[Any]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]], list[bool]]:
    """Trace fn in the open graph; return what `pull_back_of` does."""
    linked = is_grad_enabled()
    with enable_grad():
        places = [F.positive(x) if differentiable(x) else x for x in primals]
        outputs = list(fn([_another(x) for x in places]))
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
    first = tracer.graph.states_by_key().get(key)
    return [*([] if first is None else [first]), *tracer.leaves.get(key, [])]


def pull_back_graph(
    tracer: Tracer, roots: Sequence[Value], seeds: Sequence[Any], wanted: Iterable[Value]
) -> dict[Value, Symbol]:
    """Return the gradients of wanted values, given those of the roots, as new nodes."""
    walk = GraphWalk(tracer, list(wanted))
    for root, seed in zip(roots, seeds, strict=True):
        walk.arrive(root, seed)
    walk.run()
    return walk.gradients


class GraphWalk:
    """One traversal of a graph from outputs towards inputs, latest node first."""

    def __init__(self, tracer: Tracer, wanted: list[Value]) -> None:
        self.tracer = tracer
        self.gradients: dict[Value, Any] = {}
        self.nodes = list(tracer.graph.nodes)  # those before the gradients
        self.useful = reach(self.nodes, wanted)  # by paths a gradient can take
        self.where_masks = WhereMasks(F, F.sum_to)

    def arrive(self, value: Value, g: Any) -> None:
        """Add to the gradient of a value."""
        if value in self.useful:
            known = self.gradients.get(value)
            self.gradients[value] = g if known is None else known + g

    def run(self) -> None:
        """Visit the nodes whose results have gradients."""
        for node in reversed(self.nodes):
            if any(value in self.gradients for value in node.outputs) and self._leads_on(node):
                with self.tracer.at(node.site), outermost_scope((GRADIENTS, *_own_scope(node))):
                    self._visit(node)

    def _leads_on(self, node: Node) -> bool:
        """Tell whether a path to what is wanted passes a node, and does not end in its result."""
        positions = {i for i, x in enumerate(node.inputs) if x in self.useful}
        return bool(positions and outputs_reached(node, positions))

    def _visit(self, node: Node) -> None:
        gs = [self.gradients.get(value) for value in node.outputs]
        needs = [x is not None and x in self.useful for x in node.inputs]
        grads, masks = self._pull_back(node, gs, needs)
        for x, g, mask in zip(node.inputs, grads, masks, strict=True):
            if x is not None and g is not None:
                self.where_masks.arrive(x, mask, self.gradients)
                self.arrive(x, g)

    def _pull_back(
        self, node: Node, gs: list[Any], needs: list[bool]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the gradients of a node's operands, and their masks."""
        op = node.op
        if hasattr(op, "pull_back_node"):
            pulled: Sequence[Any] = op.pull_back_node(self.tracer, node, gs, needs, pull_back_graph)
            return pulled, [None] * len(pulled)
        symbol = self._symbol
        outputs = tuple(symbol(value) for value in node.outputs)
        complete = [F.zeros_like(y) if g is None else g for g, y in zip(gs, outputs, strict=True)]
        single = op.outputs == 1
        rules = Operation(
            op,
            tuple(None if x is None else symbol(x) for x in node.inputs),
            node.attrs,
            outputs[0] if single else outputs,
        )
        flags = tuple(True if need else None for need in needs)
        g = complete[0] if single else complete
        return self.where_masks.pull_back_by(node.outputs[0], op, rules.pullback(flags), g)

    def _symbol(self, value: Value) -> Symbol:
        return make_symbol(self.tracer.graph, value)


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
