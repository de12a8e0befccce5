"""Functions over the elements of tensors: map_fn, scan, foldl, foldr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.control.scanning import scan as weft_scan
from .array_ops import concat, expand_dims
from .bodies import Body, ControlOperation
from .nest import flatten, is_nested, pack_sequence_as
from .recording import Tensor, convert_to_tensor, given, graph_of
from .shapes import TensorShape


class Scan(ControlOperation):
    """Runs a body for each element; what it carries goes from one to the next.

    carried   how many of the inputs, and of the body's outputs, are carried
    """

    def __init__(self, graph: Any, carried: int, *args: Any, reverse: bool = False) -> None:
        self.carried = carried
        self.reverse = reverse
        super().__init__(graph, "Scan", *args)

    def evaluate(self, env: Any, values: Sequence[Any]) -> Any:
        """Build the loop."""
        (body,) = self.bodies
        start = tuple(values[: self.carried])
        xs = tuple(values[self.carried : self.count])
        first = tuple(env.read(variable) for variable in self.writes)

        def step(carry: Any, x: Any) -> Any:
            child = env.child()
            child.written.update(zip(self.writes, carry[self.carried :], strict=True))
            found = body.evaluate(child, (*carry[: self.carried], *x))
            made = [found.symbol(t) for t in body.outputs]
            after = tuple(found.read(variable) for variable in self.writes)
            return (*made[: self.carried], *after), tuple(made[self.carried :])

        last, stacked = weft_scan(step, (*start, *first), xs, reverse=self.reverse)
        for variable, value in zip(self.writes, last[self.carried :], strict=True):
            env.write(variable, value)
        return (*last[: self.carried], *stacked)


def scanned(
    function: Any,
    start: Sequence[Tensor],
    xs: Sequence[Tensor],
    *,
    reverse: bool = False,
    name: str = "scan",
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the last carry and stacked results of `carry, ys = function(carry, elements)`.

    All of them are lists of tensors.
    """
    graph = graph_of([*start, *xs])
    body = Body(graph)
    with graph.name_scope(name):
        with graph.building(body), graph.control_dependencies(None):
            carry = [body.parameter(t.shape, t.dtype) for t in start]
            elements = [body.parameter(_element(t), t.dtype) for t in xs]
            after, results = function(carry, elements)
            after = [convert_to_tensor(a, c.dtype) for a, c in zip(after, start, strict=True)]
            body.outputs = [*after, *[convert_to_tensor(r) for r in results]]
        operation = Scan(graph, len(start), [*start, *xs], [body], "scan", reverse=reverse)
    count = next((t.shape.sizes[0] for t in xs if t.shape.sizes), None)
    last = [given(operation, t.shape, t.dtype) for t in start]
    whole = TensorShape([count])
    stacked = [
        given(operation, whole.concatenate(t.shape), t.dtype) for t in body.outputs[len(start) :]
    ]
    return last, stacked


def _element(tensor: Tensor) -> TensorShape:
    sizes = tensor.shape.sizes
    if sizes == ():
        raise ValueError(f"elems must be at least 1D: {tensor}")
    return TensorShape(None if sizes is None else sizes[1:])


def map_fn(
    fn: Any,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """Return fn of each element of tensors, stacked.

    >>> from weft import tf1 as tf
    >>> tf.Session().run(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0, 3.0]))).tolist()
    [1.0, 4.0, 9.0]
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    xs = [convert_to_tensor(x) for x in flatten(elems)]
    nests: list[Any] = []

    def step(carry: Any, elements: Any) -> Any:
        nest = fn(pack_sequence_as(elems, elements))
        nests.append(nest)
        return [], [convert_to_tensor(x) for x in flatten(nest)]

    _, stacked = scanned(step, [], xs, name=name or "map")
    return pack_sequence_as(nests[0], stacked) if is_nested(nests[0]) else stacked[0]


def scan(
    fn: Any,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Return all a of `a = fn(a, x)` over the elements x of tensors, stacked."""
    start, xs, nest = _start(elems, initializer, reverse)

    def step(carry: Any, elements: Any) -> Any:
        made = fn(pack_sequence_as(nest, carry), pack_sequence_as(elems, elements))
        leaves = [convert_to_tensor(x) for x in flatten(made)]
        return leaves, leaves

    _, stacked = scanned(step, start, xs, reverse=reverse, name=name or "scan")
    if initializer is None:
        stacked = [
            _joined(first, rest, reverse) for first, rest in zip(start, stacked, strict=True)
        ]
    return pack_sequence_as(nest, stacked) if is_nested(nest) else stacked[0]


def _start(elems: Any, initializer: Any, reverse: bool) -> tuple[list[Tensor], list[Tensor], Any]:
    xs = [convert_to_tensor(x) for x in flatten(elems)]
    if initializer is not None:
        return [convert_to_tensor(x) for x in flatten(initializer)], xs, initializer
    if reverse:
        return [x[-1] for x in xs], [x[:-1] for x in xs], elems
    return [x[0] for x in xs], [x[1:] for x in xs], elems


def _joined(first: Tensor, rest: Tensor, reverse: bool) -> Tensor:
    parts = [rest, expand_dims(first, 0)] if reverse else [expand_dims(first, 0), rest]
    return concat(parts, 0)


def foldl(
    fn: Any,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    reverse: bool = False,
) -> Any:
    """Return the last a of `a = fn(a, x)` over the elements x of tensors."""
    start, xs, nest = _start(elems, initializer, reverse)

    def step(carry: Any, elements: Any) -> Any:
        made = fn(pack_sequence_as(nest, carry), pack_sequence_as(elems, elements))
        return [convert_to_tensor(x) for x in flatten(made)], []

    last, _ = scanned(step, start, xs, reverse=reverse, name=name or "foldl")
    return pack_sequence_as(nest, last) if is_nested(nest) else last[0]


def foldr(
    fn: Any,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Return the last a of `a = fn(a, x)` over the elements x of tensors, from the last one on."""
    return foldl(fn, elems, initializer, name=name or "foldr", reverse=True)
