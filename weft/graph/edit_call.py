"""Call a graph like a function: inside of another graph it is inlined, on values it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dispatch import canonical, run
from ..core.dtype import is_float
from ..core.errors import ArgumentError, GraphError
from ..core.modes import current_interpreter, is_grad_enabled
from ..core.op import F, Op, random
from ..core.tensor import Tensor, constant, wrap
from ..core.tree import flatten
from .custom import CustomGradient
from .draws import Draws
from .edit import pruned
from .edit_inline import Now, copy_into, go_on_drawing, with_own_sizes
from .edit_sizes import Fitting, fed_sizes
from .feeds import as_feed
from .graph import Graph, nearest_name
from .layout import has_unknown_sizes
from .members import wanted_values
from .node import Node, Value, resolve_attrs
from .run import Sizes, bind_sizes
from .scope import current_scope
from .session import Session
from .special import ASSIGN, CONSTANT, PLACEHOLDER, SOURCES, STATE
from .symbol import make_symbol
from .tracer import Tracer
from .update import caused_updates


def call(graph: Graph, args: Sequence[Any], named: Mapping[str, Any], outputs: Any) -> Any:
    """Return what a graph makes of values for its placeholders."""
    wanted, structure = _wanted(graph, outputs)
    given = _arguments(graph, args, named)
    _check_fed(graph, wanted, given)
    interpreter = current_interpreter()
    if isinstance(interpreter, Tracer) and not interpreter.root.recording:
        found: Sequence[Any] = _inlined(interpreter, graph, wanted, given)
    elif interpreter is None and not _has_gradient(graph, given):
        found = _run(graph, wanted, given)
    else:
        found = _replayed(graph, wanted, given)
    if structure is not None:
        return structure.unflatten(found)
    return found[0] if len(found) == 1 else tuple(found)


# -- arguments and results -------------------------------------------------------------------------


def _wanted(graph: Graph, outputs: Any) -> tuple[list[Value], Any]:
    """Return the values to compute, and the nest that they were given in."""
    if outputs is not None:
        leaves, structure = flatten(outputs)
        return [_no_update(v) for v in wanted_values(graph, leaves, "call").fetches], structure
    found = call_results(graph)
    if not found:
        raise GraphError(f"call: {graph.name} computes nothing; say what to return: outputs=...")
    return found, None


def call_results(graph: Graph) -> list[Value]:
    """Return what a call of a graph returns if nothing else is asked for."""
    if graph.outputs:
        return list(graph.outputs)
    moved = Draws(graph).states
    skipped = (ASSIGN, *SOURCES)
    return [v for v in graph.results() if v.node.op not in skipped and v not in moved]


def _no_update(value: Value) -> Value:
    if value.node.op is ASSIGN:
        raise ArgumentError(
            f"call: {value.name} is an update; run it by wf.Session(graph), or ask for its value"
        )
    return value


def _arguments(graph: Graph, args: Sequence[Any], named: Mapping[str, Any]) -> dict[Value, Any]:
    if len(args) > len(graph.inputs):
        names = ", ".join(value.name for value in graph.inputs) or "none"
        raise ArgumentError(
            f"call: {graph.name} has the placeholders {names}. Received: {len(args)} values"
        )
    given = dict(zip(graph.inputs, args, strict=False))
    known = {value.name: value for value in graph.inputs}
    known |= {n: v for n, v in graph.names.items() if v.node.op is PLACEHOLDER}
    for name, value in named.items():
        if name not in known:
            near = nearest_name(name, [*known])
            hint = f"; did you mean {near!r}?" if near else f"; it has {', '.join(known) or 'none'}"
            raise ArgumentError(f"call: {graph.name} has no placeholder named {name!r}{hint}")
        if known[name] in given:
            raise ArgumentError(f"call: {name} is given twice")
        given[known[name]] = value
    return given


def _check_fed(graph: Graph, wanted: Sequence[Value], given: Mapping[Value, Any]) -> None:
    needed = graph.ancestors(wanted, given)
    missing = [n.name for n in needed if n.op is PLACEHOLDER and n.outputs[0] not in given]
    if missing:
        raise ArgumentError(f"call: {graph.name} needs values for {', '.join(missing)} too")


# -- inside of another graph -----------------------------------------------------------------------


def _inlined(
    tracer: Tracer, graph: Graph, wanted: Sequence[Value], given: Mapping[Value, Any]
) -> list[Any]:
    """Append copies of the nodes, in a name scope of the graph's; return symbols."""
    if any(graph is around for around in _around(tracer)):
        raise GraphError(f"call: {graph.name} is being built; it cannot be called in itself")
    caused = [pair for value in wanted for pair in caused_updates(graph, value, ())]
    part = pruned(graph, list(dict.fromkeys([*wanted, *(value for _, value in caused)])))
    source = with_own_sizes(part, *_around(tracer))
    fitting = Fitting("call", fed_sizes(source))
    now: Now = {}
    for old, argument in given.items():
        value = source.aliases.get(old, old)
        if value in source:
            now[value] = _argument(tracer, value, argument)
            fitting.fit(value, now[value])
    scope = (*current_scope(), graph.name)
    copy_into(tracer, source, now, fitting.sizes, scope, opened=True)
    for state, value in caused:
        tracer.write_state(state, now[source.aliases.get(value, value)])
    go_on_drawing(tracer, source, now)
    symbols = [make_symbol(tracer.graph, now[source.aliases.get(v, v)]) for v in wanted]
    if is_grad_enabled():
        return list(symbols)
    return [F.stop_gradient(y) if is_float(y.dtype) else y for y in symbols]


def _around(tracer: Tracer) -> list[Graph]:
    """Return the graphs whose sizes are known where a tracer builds; the outermost one last."""
    return [tracer.graph, *([] if tracer.parent is None else _around(tracer.parent))]


def _argument(tracer: Tracer, placeholder: Value, given: Any) -> Value:
    if isinstance(given, Tensor):
        return tracer.value_of(given)
    return tracer.constant(as_feed(placeholder, given, "call")).value


# -- on values -------------------------------------------------------------------------------------


def _has_gradient(graph: Graph, given: Mapping[Value, Any]) -> bool:
    """Tell whether what is computed has a history that `backward` could ask for."""
    owners = (state.owner for state in graph.states())
    return is_grad_enabled() and any(
        isinstance(x, Tensor) and x.requires_grad for x in (*given.values(), *owners)
    )


def _run(graph: Graph, wanted: Sequence[Value], given: Mapping[Value, Any]) -> list[Tensor]:
    if graph.session is None:
        graph.session = Session(graph)
    return [wrap(array) for array in graph.session.run(list(wanted), dict(given))]


def _replayed(graph: Graph, wanted: Sequence[Value], given: Mapping[Value, Any]) -> list[Tensor]:
    """Run the nodes as operations of the program around: recorded, differentiated, batched."""
    sizes: Sizes = {}
    now: dict[Value | None, Any] = {None: None}
    for value, argument in given.items():
        own = isinstance(argument, Tensor) and argument.dtype == value.dtype
        now[value] = argument if own else constant(as_feed(value, argument, "call"))
        bind_sizes(value, now[value].shape, sizes)
    for node in graph.ancestors(wanted, given):
        made = _replay(node, [now[x] for x in node.inputs], sizes)
        for value, tensor in zip(node.outputs, made, strict=True):
            now[value] = tensor
            bind_sizes(value, tensor.shape, sizes)
    return [now[value] for value in wanted]


def _replay(node: Node, inputs: list[Any], sizes: Sizes) -> Sequence[Any]:
    op = node.op
    if op is CONSTANT:
        return [constant(node.attrs[0].array)]
    if op is STATE and isinstance(node.attrs[0].owner, Tensor):
        return [node.attrs[0].owner]
    if isinstance(op, CustomGradient) and op.nodes:
        return op.passed_on(inputs, node.attrs)
    if not isinstance(op, Op) or op.kind == random:
        raise GraphError(
            f"call: {node.name} ({op.name}) cannot be differentiated or recorded on values; call "
            "the graph inside of `with wf.Graph():`, or under wf.no_grad()"
        )
    attrs = resolve_attrs(node.attrs, sizes)
    if has_unknown_sizes(op, node.inputs):
        attrs = canonical(op, tuple(inputs), attrs)
    made = run(op, tuple(inputs), attrs)
    return [made] if op.outputs == 1 else list(made)
