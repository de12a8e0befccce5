"""The state of a draw: which key and counter of the Philox generator its numbers come from.

A random operator takes the state as its first input, a uint64 tensor of three words: the low and
the high word of the key, and the counter. So it is a pure function, and the only side effect is the
reservation of counters, made here and nowhere else. How many blocks a draw reserves follows from
the operator's rule `blocks`, from shapes, dtypes and attributes alone, never from values: the same
program draws the same numbers in every mode.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import BatchedCall
from ...core.dim import may_equal
from ...core.dispatch import canonical, run
from ...core.draw_rows import current_part, current_rows
from ...core.dtype import uint64
from ...core.errors import ArgumentTypeError, DTypeError, ShapeError
from ...core.imports import deferred_imports
from ...core.modes import current_deferral, current_tracer, drawn_examples, modes
from ...core.op import Op, general, op
from ...core.rng import STATE_SHAPE, Generator, default_generator, make_state
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int
from ...core.tensor import Tensor, wrap


def draw(op: Op, inputs: tuple[Any, ...], attrs: tuple[Any, ...], generator: Any) -> Any:
    """Reserve a state and apply a random operator to it; a bad argument reserves nothing."""
    assert op.blocks_rule is not None, op
    attrs = canonical(op, (None, *inputs), attrs)
    rows, part = current_rows(), current_part()
    if rows is not None or part is not None:
        with deferred_imports:
            from .rows import draw_share  # noqa: PLC0415  (for several processes)
        return draw_share(op, inputs, attrs, generator, rows, part)
    state = reserve_state(generator, op.blocks_rule(*inputs, *attrs))
    return op(state, *inputs, *attrs)


def drawn_at_once(call: BatchedCall) -> Any:
    """Draw for a batch of an operand that has any number of leading axes: a batching rule."""
    return run(call.op, (call.inputs[0], *call.everywhere()[1:]), call.attrs)


def reserve_state(generator: Generator | None, blocks: int) -> Tensor:
    """Take the next blocks of a generator (None = the default one) and return their state."""
    if generator is None:
        generator = default_generator
    elif not isinstance(generator, Generator):
        raise ArgumentTypeError(
            "generator must be a wf.Generator or None. "
            f"Received: {type(generator).__name__} {generator!r:.60}"
        )
    tracer = None
    if modes.interpreters:
        tracer, blocks = current_tracer(), blocks * drawn_examples()
        tracer = current_deferral() if tracer is None else tracer
    if tracer is not None:
        return tracer.reserve(generator, blocks)
    return wrap(make_state(*generator.reserve(blocks)))


@op(general, method=False, advances=True)
def advance_state(state: Tensor, blocks: Any) -> Tensor:
    """Return the state behind a draw of so many blocks: how a graph counts its draws."""


@advance_state.canon
def _(state, blocks):
    check_state(state)
    return (as_int(blocks, "blocks"),)


@advance_state.infer
def _(state, blocks):
    return TensorType(STATE_SHAPE, uint64)


@advance_state.eval
def _(state, blocks):
    advanced = np.array(state)
    advanced[2] += np.uint64(blocks)
    return advanced


@advance_state.place
def _(b, state, blocks):
    counter = b.eq(b.coordinates[0].expr, 2)
    return state.here() + b.select(counter, b.constant(blocks % 2**64, uint64), 0)


@advance_state.samples
def _(s):
    yield Sample(make_state(7, 3), 5)


@advance_state.error_samples
def _(s):
    yield ErrorSample(make_state(7, 3)[:2], 5, error=ValueError, match=r"shape \(3,\).*\(2,\)")
    yield ErrorSample(
        make_state(7, 3), 1.5, error=TypeError, match="blocks must be an integer.*1.5"
    )


def read_state(state: np.ndarray[Any, Any]) -> tuple[int, int]:
    """Return the key and the counter that a state holds."""
    check_state(state)
    low, high, counter = state.tolist()
    return low | high << 64, counter


def check_state(state: Any) -> None:
    """Raise unless an operand can be the state of a draw."""
    if state.dtype != uint64:
        raise DTypeError(f"state must be of dtype uint64. Received: {state.dtype}")
    if not may_equal(tuple(state.shape), STATE_SHAPE):
        raise ShapeError(
            f"state must have shape {STATE_SHAPE}: two words of the key, and the counter. "
            f"Received: {state.shape}"
        )


def get_rng_state() -> dict[str, str]:
    """Return the state of the default generator, to give to set_rng_state later."""
    return default_generator.get_state()


def set_rng_state(state: dict[str, str]) -> None:
    """Let the default generator continue where get_rng_state was called."""
    default_generator.set_state(state)
