"""`cond`: one of two functions, chosen by a truth value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.imports import injected
from ...core.modes import current_tracer
from ...core.shape import TensorType, type_of
from ...core.tensor import Tensor
from ...core.tree import TreeMismatchError
from .body import (
    Body,
    as_tensor,
    check_function,
    check_joinable,
    check_predicate,
    symbols_for,
    tensors_of,
)
from .calling import calling
from .ops import COND

_cond_of_batches = injected("cond_of_batches")


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any
) -> Any:
    """Return true_fn(*operands) if `pred` holds, else false_fn(*operands).

    Both functions must return trees of the same structure, shapes and dtypes. In a graph only the
    branch that is taken runs; what they use from outside is computed before. Operands are trees.

    >>> import weft as wf
    >>> x = wf.tensor(-3.0)
    >>> wf.cond(x > 0, lambda v: v, lambda v: -v, x)
    tensor(3.)
    """
    check_function(true_fn, "cond: true_fn")
    check_function(false_fn, "cond: false_fn")
    predicate = as_tensor(pred, "cond: pred")
    check_predicate(type_of(predicate), "cond: pred")
    leaves, _, structure = tensors_of(operands, "cond: operands")
    if predicate.batched:
        return _cond_of_batches(predicate, true_fn, false_fn, leaves, structure)
    tracer = current_tracer()
    if tracer is None or not isinstance(pred, Tensor):
        return _run(bool(predicate), true_fn, false_fn, structure.unflatten(leaves))
    return _trace(tracer, predicate, true_fn, false_fn, leaves, structure)


def _run(holds: bool, true_fn: Any, false_fn: Any, operands: tuple[Any, ...]) -> Any:
    name = "true_fn" if holds else "false_fn"
    result = _called(true_fn if holds else false_fn, name, operands)
    leaves, _, structure = tensors_of(result, f"cond: {name}'s result")
    return structure.unflatten(leaves)


def _called(fn: Any, name: str, operands: tuple[Any, ...]) -> Any:
    names = [f"operand_{i}" for i in range(len(operands))]
    with calling(fn, f"cond: {name}", names, operands):
        return fn(*operands)


def _trace(
    tracer: Any, pred: Tensor, true_fn: Any, false_fn: Any, leaves: list[Tensor], structure: Any
) -> Any:
    values = [tracer.value_of(leaf) for leaf in leaves]
    types = [value.type for value in values]
    yes, no = (
        Body(
            tracer,
            name,
            lambda *args, fn=fn, name=name: _called(fn, name, structure.unflatten(args)),
            types,
            what=f"cond: {name}'s result",
        )
        for name, fn in (("true_fn", true_fn), ("false_fn", false_fn))
    )
    joined = _join(yes, no)
    states = list({s.key: s for s in (*yes.states, *no.states)}.values())
    for body in (yes, no):  # a branch that does not write a state passes it on: that captures it
        body.close(states, ())
    captured = list(dict.fromkeys([*yes.captured, *no.captured]))
    graphs = [body.close(states, captured) for body in (yes, no)]
    inputs = [tracer.value_of(pred), *values, *captured]
    starts = [tracer.read_state(state) for state in states]
    results = len(joined)
    threads = tuple(
        (1 + len(values) + captured.index(start), results + i)
        for i, start in enumerate(starts)
        if start in captured
    )
    types = [*joined, *(state.type for state in states)]
    node = tracer.add(COND, inputs, (*graphs, threads), types)
    for state, value in zip(states, node.outputs[results:], strict=True):
        tracer.write_state(state, value)
    return yes.result.unflatten(symbols_for(tracer, node.outputs[:results]))


def _join(yes: Body, no: Body) -> list[TensorType]:
    """Put the results of both branches into one order; return the types they agree on."""
    tree = no.result.unflatten(no.outputs)
    no.outputs = yes.result.flatten_like(tree, "cond: false_fn's result")
    if yes.result != no.result:
        raise TreeMismatchError(
            "cond: both branches must return trees of one structure (* is a tensor). Received: "
            f"true_fn's result is {yes.result}, false_fn's result is {no.result}"
        )
    names = [name.removeprefix("cond: true_fn's ") for name in yes.names]
    return check_joinable([v.type for v in yes.outputs], [v.type for v in no.outputs], names)
