"""`while_loop`: repeat a function as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.effects import TripCount
from ...core.errors import ArgumentError
from ...core.imports import injected
from ...core.modes import current_tracer
from ...core.shape import type_of
from ...core.tensor import Tensor
from .body import (
    Body,
    as_tensor,
    carried,
    check_function,
    check_predicate,
    check_same_types,
    symbols_for,
    tensors_of,
    trace_until_settled,
)
from .calling import calling
from .ops import WHILE

_loop_of_batches = injected("loop_of_batches")

RESULT = "while_loop: body_fn's result"
TEST = "while_loop: cond_fn's result"


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any) -> Any:
    """Return the carry after `carry = body_fn(carry)` was repeated while cond_fn(carry) holds.

    The carry is any tree of tensors, handed to both functions as one argument; it keeps its
    structure, shapes and dtypes. Differentiable in forward and reverse mode with any number of
    trips, which need not be known.

    >>> import weft as wf
    >>> wf.while_loop(lambda i: i < 10, lambda i: i + 1, wf.tensor(0))
    tensor(10)
    """
    check_function(cond_fn, "while_loop: cond_fn")
    check_function(body_fn, "while_loop: body_fn")
    tracer = current_tracer()
    leaves, names, structure = tensors_of(init, "carry")
    if tracer is None:
        return _run(cond_fn, body_fn, leaves, names, structure)
    return _trace(tracer, cond_fn, body_fn, leaves, names, structure)


def _run(cond_fn: Any, body_fn: Any, leaves: list[Tensor], names: list[str], structure: Any) -> Any:
    types = [type_of(leaf) for leaf in leaves]

    def test(carry: list[Tensor]) -> Tensor:
        return _tested(cond_fn, structure.unflatten(carry))

    def step(carry: list[Tensor]) -> list[Tensor]:
        return _stepped(body_fn, structure, structure.unflatten(carry), names, types)

    holds, trip = test(leaves), 0
    with TripCount() as at:
        while not holds.batched and bool(holds):
            at(trip)
            leaves = step(leaves)
            holds, trip = test(leaves), trip + 1
    if holds.batched:  # examples of vmap may take different numbers of trips
        leaves = _loop_of_batches(step, test, leaves, holds, trip)
    return structure.unflatten(leaves)


def _tested(cond_fn: Any, state: Any) -> Tensor:
    """Return what the condition says of a state: one truth value."""
    with calling(cond_fn, "while_loop: cond_fn", ("state",), (state,)):
        predicate = as_tensor(cond_fn(state), TEST)
        check_predicate(type_of(predicate), TEST)
        return predicate


def _stepped(body_fn: Any, structure: Any, state: Any, names: Any, types: Any) -> list[Tensor]:
    """Return the leaves of the state after one step, which keep their types."""
    with calling(body_fn, "while_loop: body_fn", ("state",), (state,)):
        after = carried(structure, body_fn(state), names, RESULT)
        check_same_types(types, [type_of(x) for x in after], names, "while_loop")
        return after


def _trace(
    tracer: Any, cond_fn: Any, body_fn: Any, leaves: list[Tensor], names: list[str], structure: Any
) -> Any:
    values = [tracer.value_of(leaf) for leaf in leaves]
    types = [value.type for value in values]

    def step(*args: Any) -> Any:
        return _stepped(body_fn, structure, structure.unflatten(args), names, types)

    def holds(*args: Any) -> Any:
        return _tested(cond_fn, structure.unflatten(args))

    body = trace_until_settled(tracer, "body_fn", step, types, names)
    states = body.states
    test = Body(tracer, "cond_fn", holds, types, states, labels=names)
    _check_test(test, states)
    captured = list(dict.fromkeys([*body.captured, *test.captured]))
    graphs = (test.close((), captured), body.close(states, captured))
    starts = [tracer.read_state(state) for state in states]
    carries = [*values, *starts]
    threads = tuple((len(values) + i,) * 2 for i in range(len(states)))
    node = tracer.add(
        WHILE,
        [*carries, *captured],
        (*graphs, len(carries), threads),
        [value.type for value in carries],
    )
    for state, value in zip(states, node.outputs[len(values) :], strict=True):
        tracer.write_state(state, value)
    return structure.unflatten(symbols_for(tracer, node.outputs[: len(values)]))


def _check_test(test: Body, states: list[Any]) -> None:
    if [test.tracer.read_state(s) for s in states] != test.threads or len(test.states) != len(
        states
    ):
        raise ArgumentError(
            "while_loop: cond_fn must not draw random numbers, write to tensors or show values "
            "(wf.debug); do it in body_fn"
        )
