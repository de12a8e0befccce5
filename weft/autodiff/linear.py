"""`linearize` and `linear_transpose`: a derivative as a linear map of its own.

To linearise is to evaluate half of forward mode: values are computed at once, while tangents are
unknowns, and what is done to them becomes a graph. Values that the graph needs are kept beside it.
So the map is applied many times without the function being evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.device import CPU
from ..core.dispatch import run
from ..core.dtype import as_dtype, is_float
from ..core.errors import ArgumentTypeError, GradientError
from ..core.modes import (
    current_interpreter,
    current_tracer,
    current_transform,
    enable_grad,
    interpret_with,
    is_grad_enabled,
)
from ..core.op import F
from ..core.shape import TensorType
from ..core.tape import OUTPUT, TapeNode
from ..core.tensor import PLAIN, Tensor, constant, placed_like, wrap
from ..core.tree import flatten
from ..graph.graph import Graph
from ..graph.node import Node as GraphNode
from ..graph.node import Value
from ..graph.run import Program
from ..graph.special import CONSTANT, PLACEHOLDER
from ..graph.symbol import Symbol
from .arguments import FlatFunction, as_value, check_callable, matching_cotangents, name_of
from .constants import checked, reads_of_level
from .engine import nodes_behind
from .forward import DualInterpreter, check_direction
from .layered import Running
from .pullback import differentiable, or_zeros, pull_back_of, zeros_for
from .record import Recording
from .rules import parameters
from .static.forward import forward_gradients
from .static.reverse import moved_here, reads_of_symbols


def linearize(fn: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return fn(*primals), and the function from tangents to the derivative there.

    That function takes a tree of tangents for each primal, None where one is zero, and does not
    evaluate fn again. Its graph is the attribute `graph`.

    >>> import weft as wf
    >>> y, push = wf.linearize(lambda x: wf.sin(x) * x, wf.tensor(0.0))
    >>> push(wf.tensor(1.0)), push(wf.tensor(2.0))
    (tensor(0.), tensor(0.))
    """
    check_callable(fn, "linearize")
    leaves, structure = flatten(primals)
    values = [as_value(x, f"linearize of {name_of(fn)}: a primal") for x in leaves]
    flat = FlatFunction(fn, structure, f"linearize: the result of {name_of(fn)}")
    make = _from_unknowns if current_tracer() is None else _in_open_graph
    ys, push, graph = make(flat, values, name_of(fn))

    def tangent(*tangents: Any) -> Any:
        given = structure.flatten_like(tangents, "the tangents")
        pairs = enumerate(zip(values, given, strict=True))
        directions = [check_direction(x, t, i)[1] for i, (x, t) in pairs]
        return flat.result.unflatten(map(or_zeros, push(directions), ys))

    tangent.graph = graph  # type: ignore[attr-defined]  # for those who want to look at it
    return flat.result.unflatten(ys), tangent


Push = Callable[[Sequence[Any]], list[Any]]


def _in_open_graph(flat: FlatFunction, values: list[Any], name: str) -> tuple[list[Any], Push, Any]:
    """Trace fn once; each call of the map adds its tangents to the graph."""
    places = [F.positive(x) if differentiable(x) else x for x in values]
    ys = checked(flat, list(places), reads_of_symbols(places), name)

    def push(directions: Sequence[Any]) -> list[Any]:
        pairs = [(x, t) for x, t in zip(places, directions, strict=True) if t is not None]
        inputs, results = moved_here([x for x, _ in pairs], ys)
        found: list[Any] = forward_gradients(list(results), list(inputs), [t for _, t in pairs])
        return found

    return ys, push, current_tracer().graph


def _from_unknowns(flat: FlatFunction, values: list[Any], name: str) -> tuple[list[Any], Push, Any]:
    """Run fn on values whose tangents are unknowns of a graph."""
    linear = LinearPart(current_interpreter())
    forward = DualInterpreter(linear)
    unknowns = [linear.unknown(x) if differentiable(x) else None for x in values]
    pairs = enumerate(zip(values, unknowns, strict=True))
    duals = [forward.lift(x, t, i) for i, (x, t) in pairs]
    with Running(forward):
        ys = checked(flat, duals, reads_of_level(forward.level), name)
        split = [forward.split(y) for y in ys]
    program = LinearProgram(linear, unknowns, [t for _, t in split])
    return [y for y, _ in split], program.push, linear.graph


class Unknown(Symbol):
    """A tangent that is not known yet: a symbol that may be used beside values."""

    __slots__ = ()

    @property
    def _value(self) -> Any:  # type: ignore[override]  # a slot in the base class
        raise AttributeError("_value")  # sends generated code to the interpreter


class LinearPart:
    """Runs operations on values by the interpreter below, and puts those on unknowns in a graph."""

    def __init__(self, below: Any) -> None:
        self.below = below
        self.graph = Graph("linear")
        self.tracer = self.graph.tracer
        self.kept: dict[int, tuple[Value, tuple[Any, Any]]] = {}  # the values that the graph needs

    def unknown(self, like: Tensor) -> Unknown:
        """Return an unknown of the type of a tensor."""
        return self._wrapped(self.tracer.parameter(_type_of(like), "tangent"))

    def apply(self, op: Any, inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> Any:
        """Run one operation, or add it to the graph."""
        if not any(isinstance(x, Unknown) and x.graph is self.graph for x in inputs):
            with interpret_with(self.below):
                return run(op, inputs, attrs)
        operands = tuple(None if x is None else self._symbol(x) for x in inputs)
        with interpret_with(self.tracer), enable_grad():
            found = self.tracer.apply(op, operands, attrs)
        if isinstance(found, tuple):
            return tuple(self._wrapped(y.value) for y in found)
        return self._wrapped(found.value)

    def _symbol(self, x: Any) -> Symbol:
        if isinstance(x, Unknown) and x.graph is self.graph:
            return x
        known = self.kept.get(id(x))
        if known is None:
            place = self.tracer.parameter(_type_of(x), "value")
            # Not the tensor itself, to which the program may write later.
            known = self.kept[id(x)] = place, (_snapshot(x) if _is_plain(x) else x, x)
        return self._wrapped(known[0])

    def _wrapped(self, value: Value) -> Unknown:
        symbol: Unknown = object.__new__(Unknown)
        symbol.graph, symbol.value = self.graph, value
        return symbol


def _type_of(x: Tensor) -> TensorType:
    return TensorType(x.shape, x.dtype)


def _snapshot(x: Any) -> Tensor:
    return placed_like(x, wrap(x._value))


def _is_plain(x: Any) -> bool:
    return hasattr(x, "_value") and x._node is None


class LinearProgram:
    """The graph of a linear map, ready to run on tangents."""

    def __init__(self, part: LinearPart, unknowns: list[Any], tangents: list[Any]) -> None:
        self.graph = part.graph
        self.feeds = [t.value for t in unknowns if t is not None]
        self.places = [i for i, t in enumerate(unknowns) if t is not None]
        self.types = [t.value.type for t in unknowns if t is not None]
        self.kept = [(place, value) for place, (value, _) in part.kept.values()]
        self.fetches = [None if t is None else part._symbol(t).value for t in tangents]
        made = [value for value in self.fetches if value is not None]
        self.graph.inputs = [*self.feeds, *(place for place, _ in self.kept)]
        self.graph.outputs = made
        self.program = Program(self.graph, made, self.graph.inputs)

    def push(self, directions: Sequence[Any]) -> list[Any]:
        """Return the tangents of the outputs; None for those that do not depend on any."""
        given = [
            wrap(np.zeros(kind.shape, kind.dtype)) if directions[i] is None else directions[i]
            for i, kind in zip(self.places, self.types, strict=True)
        ]
        tensors = [*given, *(value for _, value in self.kept)]
        made = iter(self._by_arrays(tensors) if _arrays_suffice(tensors) else self._replay(tensors))
        return [None if value is None else next(made) for value in self.fetches]

    def _by_arrays(self, tensors: Sequence[Any]) -> list[Any]:
        found = self.program.run([x._value for x in tensors])
        held = set(found.borrowed)
        return [wrap(y.copy() if id(y) in held or y.base is not None else y) for y in found.fetched]

    def _replay(self, tensors: Sequence[Any]) -> list[Any]:
        """Run the nodes as operations, for derivatives and batches of the map."""
        values: dict[Value, Any] = dict(zip(self.graph.inputs, tensors, strict=True))
        for node in self.graph.nodes:
            if node.op is not PLACEHOLDER:
                values.update(zip(node.outputs, _results(node, values), strict=True))
        return [values[value] for value in self.graph.outputs]


def _results(node: GraphNode, values: dict[Value, Any]) -> Sequence[Any]:
    if node.op is CONSTANT:
        return (constant(node.attrs[0].array),)
    found = run(node.op, tuple(None if x is None else values[x] for x in node.inputs), node.attrs)
    return found if isinstance(found, tuple) else (found,)


def _arrays_suffice(tensors: Sequence[Any]) -> bool:
    if current_transform() is not None or any(x.device != CPU for x in tensors):
        return False
    return not is_grad_enabled() or not any(x.requires_grad for x in tensors)


# -- transposition ---------------------------------------------------------------------------------


def linear_transpose(fn: Callable[..., Any], *examples: Any) -> Callable[..., tuple[Any, ...]]:
    """Return the transpose of fn, which must be linear: a function from results to arguments.

    examples   trees of tensors, arrays or anything else with a shape and a dtype; their values do
               not matter

    The transpose takes a tree like fn's result and returns a tuple with a tree for each argument.
    A function that is not linear raises GradientError.

    >>> import weft as wf
    >>> transpose = wf.linear_transpose(lambda x: wf.stack([x.sum(), 2 * x[0]]), wf.zeros(3))
    >>> transpose(wf.tensor([1.0, 10.0]))
    (tensor([21.,  1.,  1.]),)
    """
    check_callable(fn, "linear_transpose")
    leaves, structure = flatten(examples)
    zeros = [_zeros(x) for x in leaves]
    what = f"linear_transpose of {name_of(fn)}"
    flat = FlatFunction(fn, structure, what)
    if current_tracer() is None:
        ys, pull = _checked_pull(flat, zeros, what, name_of(fn))
    else:
        ys, pull, _ = pull_back_of(flat, zeros, what=name_of(fn))

    def transposed(cotangents: Any) -> tuple[Any, ...]:
        gs = matching_cotangents(cotangents, ys, flat.result, what)
        found: tuple[Any, ...] = structure.unflatten(map(or_zeros, pull(gs), zeros))
        return found

    return transposed


def _zeros(example: Any) -> Tensor:
    shape, dtype = getattr(example, "shape", None), getattr(example, "dtype", None)
    if isinstance(example, (int, float)):
        return zeros_for(as_value(float(example), "an example"))
    if shape is None or dtype is None or not is_float(as_dtype(dtype)):
        raise ArgumentTypeError(
            "linear_transpose: examples must have a shape and a floating dtype. "
            f"Received: {example!r:.60}"
        )
    return wrap(np.zeros(shape, as_dtype(dtype)))


def _checked_pull(
    flat: FlatFunction, zeros: list[Tensor], what: str, name: str
) -> tuple[list[Any], Push]:
    recording = Recording(current_interpreter())
    places = [recording.watch(x) for x in zeros]
    reads = reads_of_level(recording.level)
    outputs = checked(lambda xs: recording.run(flat, xs), places, reads, name)
    for node in nodes_behind(map(recording.node, outputs)):
        if isinstance(node, TapeNode) and node.op is not OUTPUT:
            _check_linear(node, what)
    ys = [recording.inside(y) for y in outputs]
    for y in ys:
        if type(y) in PLAIN and np.any(y.numpy()):
            raise GradientError(f"{what}: the function is not linear: it does not take 0 to 0")
    return ys, recording.pull_back_of(outputs)


def _check_linear(node: TapeNode, what: str) -> None:
    """Raise if an operation's derivative depends on what is transposed."""
    op = node.op
    last = len(op.inputs) - 1
    moved = [op.inputs[min(i, last)] for i, n in enumerate(node.parents) if n is not None]
    if set(moved) <= set(op.linear) or (len(moved) == 1 and moved[0] in op.multilinear):
        return
    asked = {name for x in moved for name in _asked(op, x)}
    if asked & {*moved, "out"}:
        raise GradientError(f"{what}: {op.name} is not linear in {' and '.join(moved)}")


def _asked(op: Any, name: str) -> tuple[str, ...]:
    """Return what the derivative rule for an input needs."""
    rule = op.partials[name] if name in op.partials else op.vjps[name]
    if rule is None or isinstance(rule, int):  # a Function of the user's; a constant
        return ()
    return (rule,) if isinstance(rule, str) else parameters(rule)
