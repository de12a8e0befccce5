"""Forward mode on a graph: extend it by the tangents of some of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtype import is_float
from ...core.errors import ArgumentTypeError
from ...core.op import F
from ...core.tensor import Tensor
from ...core.tree import Structure, flatten
from ...graph.frontend import open_tracer
from ...graph.node import Node, Value
from ...graph.scope import outermost_scope
from ...graph.tracer import Tracer
from ..arguments import name_of
from ..constants import check_constants
from ..matching import require_tensor, require_type
from ..pullback import or_zeros
from ..pushforward import Pushforward
from ..reverse import as_tensors
from .reverse import operation_of, places_of, reads_of_symbols

SCOPE = "tangents"


def forward_gradients(ys: Any, xs: Any, tangents: Any) -> Any:
    """Return the derivatives of `ys` along the directions `tangents` of `xs`, as symbols.

    Forward mode as a pass: nodes are added to the open graph. Returns a list as long as `ys` (one
    symbol if `ys` is one), with None where a y does not depend on any x.

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((), wf.float32, name="x")
    ...     dy = wf.forward_gradients(x * x, x, wf.tensor(1.0))
    >>> float(wf.Session(graph).run(dy, {x: 3.0}))
    6.0
    """
    tracer = open_tracer("forward_gradients")
    outputs, inputs = as_tensors(ys, "ys"), as_tensors(xs, "xs")
    given = list(tangents) if isinstance(tangents, (list, tuple)) else [tangents]
    if len(given) != len(inputs):
        raise ArgumentTypeError(
            f"forward_gradients: tangents must match xs, {len(inputs)} tensor(s). "
            f"Received: {len(given)}"
        )
    directions: dict[Value, Tensor] = {}
    for i, (x, t) in enumerate(zip(inputs, given, strict=True)):
        places = places_of(tracer, x) if t is not None else []
        directions |= {place: _checked(t, x, i) for place in places}
    roots = [tracer.value_of(y) for y in outputs]
    found = push_forward_graph(tracer, roots, directions)
    results = [found.get(y) for y in roots]
    return results[0] if isinstance(ys, Tensor) else results


def _checked(tangent: Any, x: Tensor, position: int) -> Tensor:
    what = f"forward_gradients: tangents[{position}]"
    require_tensor(tangent, what)
    require_type(tangent, x, what, "its x")
    checked: Tensor = tangent
    return checked


def jvp_of_symbols(
    fn: Callable[..., Any], pairs: Sequence[tuple[Any, Any]], structure: Structure
) -> tuple[Any, Any]:
    """Trace a function of values, some with a tangent, in the open graph; add its derivative."""
    # Nodes of their own, so that a value from outside that fn also uses directly stays a constant.
    places = [x if t is None else F.positive(x) for x, t in pairs]
    moved = [(x, t) for x, (_, t) in zip(places, pairs, strict=True) if t is not None]
    with reads_of_symbols(x for x, _ in moved) as reads:
        outputs, result = flatten(fn(*structure.unflatten(places)))
    check_constants(outputs, reads, name_of(fn))
    ys = [y for y in outputs if isinstance(y, Tensor)]
    found = forward_gradients(ys, [x for x, _ in moved], [t for _, t in moved])
    by_output = dict(zip(map(id, ys), found, strict=True))
    tangents = [or_zeros(by_output.get(id(y)), y) for y in outputs]
    return result.unflatten(outputs), result.unflatten(tangents)


def push_forward_graph(
    tracer: Tracer, roots: Sequence[Value], directions: Mapping[Value, Any]
) -> dict[Value, Any]:
    """Return the tangents of values that depend on those with a direction, as new nodes."""
    tangents: dict[Value, Any] = dict(directions)
    needed = set(tracer.graph.ancestors(roots))
    for node in list(tracer.graph.nodes):
        if node in needed and any(x in tangents for x in node.inputs):
            with tracer.at(node.site), outermost_scope((SCOPE, *node.scope)):
                _visit(tracer, node, tangents)
    return tangents


def _visit(tracer: Tracer, node: Node, tangents: dict[Value, Any]) -> None:
    given = tuple(None if x is None else tangents.get(x) for x in node.inputs)
    if hasattr(node.op, "push_forward_node"):
        found = node.op.push_forward_node(tracer, node, given, push_forward_graph)
    else:
        found = operation_of(Pushforward, tracer, node).tangents(given)
    for value, tangent in zip(node.outputs, found, strict=True):
        if tangent is not None and is_float(value.dtype):
            tangents.setdefault(value, tangent)
